// The JSON form of the report, in both directions, and its schema. docs/research/gpu-probe.md describes the same
// fields.
#include <set>

#include "bench/gpu/report.h"
#include "tools/base/json/json.h"

namespace leat::probe {
namespace {

Json json_of(const Summary& s) {
  return {{"n", s.count}, {"min", s.min}, {"p25", s.p25}, {"median", s.median},
          {"p75", s.p75}, {"p99", s.p99}, {"max", s.max}};
}

Json json_of(const Answer& a) {
  Json json = {{"group", a.group},   {"id", a.id},   {"question", a.question},     {"answer", name_of(a.verdict)},
               {"text", text_of(a)}, {"how", a.how}, {"conditions", a.conditions}, {"note", a.note},
               {"device", a.device}};
  if (a.number) {
    json["value"] = a.number->median;
    json["unit"] = a.unit;
    json["spread"] = json_of(*a.number);
  }
  return json;
}

Summary summary_of(const Json& json) {
  return {.count = json.at("n").get<std::size_t>(),
          .min = json.at("min").get<double>(),
          .p25 = json.at("p25").get<double>(),
          .median = json.at("median").get<double>(),
          .p75 = json.at("p75").get<double>(),
          .p99 = json.at("p99").get<double>(),
          .max = json.at("max").get<double>()};
}

// Collects problems of one object: fields that must be there with their type, and nothing else.
struct Check {
  std::vector<std::string>& problems;
  const Json& object;
  std::string where;
  std::set<std::string> known = {};

  bool has(const char* field, Json::Type type, bool required = true) {
    known.insert(field);
    const Json* const found = object.find(field);
    if (found == nullptr) {
      if (required) problems.push_back(where + ": '" + field + "' is missing");
      return false;
    }
    const bool both_numbers = type == Json::Type::real && found->is_number();
    if (found->type() != type && !both_numbers) {
      problems.push_back(where + ": '" + field + "' is a " + found->type_name());
      return false;
    }
    return true;
  }
  void text(const char* field) { has(field, Json::Type::text); }
  void nothing_else() {
    for (const auto& [name, value] : object.items()) {
      if (!known.contains(name)) problems.push_back(where + ": '" + name + "' is unknown");
    }
  }
};

void check_spread(std::vector<std::string>& problems, const Json& spread, const std::string& where) {
  Check check{problems, spread, where + ".spread"};
  double last = -1e300;
  for (const char* field : {"min", "p25", "median", "p75", "max"}) {
    if (!check.has(field, Json::Type::real)) return;
    if (spread[field].get<double>() < last) problems.push_back(check.where + ": '" + field + "' is out of order");
    last = spread[field].get<double>();
  }
  check.has("p99", Json::Type::real);
  check.has("n", Json::Type::integer);
  check.nothing_else();
}

void check_answer(std::vector<std::string>& problems, const Json& answer, const std::string& where) {
  if (!answer.is_object()) {
    problems.push_back(where + ": not an object");
    return;
  }
  Check check{problems, answer, where};
  for (const char* field : {"group", "id", "question", "text", "how", "note", "device"}) check.text(field);
  if (check.has("conditions", Json::Type::object)) {
    for (const auto& [name, value] : answer["conditions"].items()) {
      if (!value.is_string()) problems.push_back(where + ".conditions: '" + name + "' is not text");
    }
  }
  const bool is_number = check.has("answer", Json::Type::text) && answer["answer"] == "number";
  if (answer.contains("answer") && answer["answer"].is_string() &&
      !verdict_named(answer["answer"].get<std::string>())) {
    problems.push_back(where + ": answer '" + answer["answer"].get<std::string>() + "' is unknown");
  }
  check.has("value", Json::Type::real, is_number);
  check.has("unit", Json::Type::text, is_number);
  if (check.has("spread", Json::Type::object, is_number)) check_spread(problems, answer["spread"], where);
  check.nothing_else();
}

void check_unique(std::vector<std::string>& problems, const Json& answers) {
  std::set<std::string> seen;
  for (const Json& answer : answers) {
    if (!answer.is_object() || !answer.contains("id") || !answer.contains("conditions")) continue;
    const std::string key = answer["id"].dump() + answer["conditions"].dump();
    if (!seen.insert(key).second) problems.push_back("answered twice: " + key);
  }
}

}  // namespace

std::string to_json(const Answer& answer) { return json_of(answer).dump(); }

std::string to_json(const Report& report) {
  Json devices = Json::array();
  for (const DeviceName& device : report.devices) devices.push_back({{"uuid", device.uuid}, {"name", device.name}});
  Json answers = Json::array();
  for (const Answer& answer : report.answers) answers.push_back(json_of(answer));
  Json counts = Json::object();
#define X(name, text) counts[#name] = count_of(report, Verdict::name);
  LEAT_PROBE_VERDICTS(X)
#undef X
  const Json json = {{"leat_gpu_probe", kReportVersion},
                     {"started_utc", report.started_utc},
                     {"duration_s", report.duration_s},
                     {"quick", report.quick},
                     {"host", report.host},
                     {"driver", report.driver},
                     {"cuda_driver", report.cuda_driver},
                     {"cuda_build", report.cuda_build},
                     {"devices", devices},
                     {"problem", report.problem},
                     {"counts", counts},
                     {"answers", answers}};
  return json.dump(1) + "\n";
}

Result<Answer> answer_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    std::vector<std::string> problems;
    check_answer(problems, json, "answer");
    if (!problems.empty()) return Error{problems.front()};
    Answer answer{.group = json.at("group").get<std::string>(),
                  .id = json.at("id").get<std::string>(),
                  .question = json.at("question").get<std::string>(),
                  .how = json.at("how").get<std::string>(),
                  .conditions = json.at("conditions").get<Conditions>(),
                  .verdict = *verdict_named(json.at("answer").get<std::string>()),
                  .number = std::nullopt,
                  .unit = json.value("unit", ""),
                  .note = json.at("note").get<std::string>(),
                  .device = json.at("device").get<std::string>()};
    if (json.contains("spread")) answer.number = summary_of(json.at("spread"));
    return answer;
  } catch (const JsonError& problem) {
    return Error{std::string("answer: ") + problem.what()};
  }
}

std::vector<std::string> schema_problems(std::string_view text) {
  const auto parsed = Json::try_parse(text);
  if (!parsed) return {"not JSON"};
  const Json& json = *parsed;
  if (!json.is_object()) return {"not an object"};
  std::vector<std::string> problems;
  Check check{problems, json, "report"};
  check.has("leat_gpu_probe", Json::Type::integer);
  if (json.value("leat_gpu_probe", Json(0)) != Json(kReportVersion)) problems.push_back("report: another version");
  for (const char* field : {"started_utc", "host", "driver", "cuda_driver", "cuda_build", "problem"}) check.text(field);
  check.has("duration_s", Json::Type::real);
  check.has("quick", Json::Type::boolean);
  check.has("counts", Json::Type::object);
  if (check.has("devices", Json::Type::array)) {
    for (const Json& device : json["devices"]) {
      Check inner{problems, device, "device"};
      inner.text("uuid");
      inner.text("name");
      inner.nothing_else();
    }
  }
  if (check.has("answers", Json::Type::array)) {
    for (std::size_t i = 0; i < json["answers"].size(); ++i) {
      check_answer(problems, json["answers"][i], "answers[" + std::to_string(i) + "]");
    }
    check_unique(problems, json["answers"]);
  }
  check.nothing_else();
  return problems;
}

}  // namespace leat::probe
