#include "tools/leat/sim/replay.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "engine/papers/presets.h"
#include "engine/record/replay.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/base/subprocess/run.h"
#include "tools/base/text/formatted.h"

namespace leat::tools {
namespace {

constexpr std::chrono::hours kLimit{2};  // 16 GiB, the largest record there is, take a quarter of it

// In a process of its own: a record that was tampered with can lead a core to a broken invariant, which ends it.
Json replayed(const std::string& file) {
  const rlimit none{};
  (void)::setrlimit(RLIMIT_CORE, &none);
  auto record = record::Record::read_file(file);
  if (!record.ok()) return {{"error", record.error()}};
  const auto again = record::replay(*record, papers::presets());
  if (!again.ok()) return {{"error", file + ": " + again.error()}};
  Json out = {{"file", file},
              {"version", record->version()},
              {"seconds", static_cast<double>(again->end_ns - again->begin_ns) * 1e-9},
              {"from_seconds", static_cast<double>(again->from_ns - again->begin_ns) * 1e-9},
              {"skipped", again->skipped},
              {"events", again->events},
              {"actions", again->actions},
              {"same", again->same},
              {"plans", again->plans},
              {"losses", again->losses},
              {"frames", again->total.submitted - again->before.submitted},
              {"difference", nullptr},
              {"damage", nullptr}};
  if (!again->difference.empty())
    out["difference"] = {{"seconds", static_cast<double>(again->differs_ns - again->begin_ns) * 1e-9},
                         {"kind", record::name_of(again->differs_in)},
                         {"text", again->difference}};
  if (!again->cut.empty()) out["damage"] = again->cut;
  return out;
}

std::string text_of(const Json& r) {
  const auto number = [&](const char* key) { return std::to_string(r.at(key).get<std::uint64_t>()); };
  std::string out = r.at("file").get<std::string>() + ": " + number("same") + " of " + number("actions") +
                    " actions are the same; " + number("events") + " events in " +
                    formatted("%.3f s, ", r.at("seconds").get<double>()) + number("frames") + " frames, " +
                    number("plans") + " plans that took over, " + number("losses") + " partitions lost\n";
  if (r.at("skipped").get<std::uint64_t>() > 0)
    out +=
        formatted(
            "from the first state of the core in it on, %.3f s after the beginning; what led to it was overwritten (",
            r.at("from_seconds").get<double>()) +
        number("skipped") + " actions before it)\n";
  if (const Json& first = r.at("difference"); !first.is_null())
    out += formatted("the first that differs, %.6f s after the beginning (%s): ", first.at("seconds").get<double>(),
                     first.at("kind").get<std::string>().c_str()) +
           first.at("text").get<std::string>() + "\n";
  return out;
}

}  // namespace

int replay_record(const cli::Arguments& args) {
  const std::string program(args.command().name), file = args.text("replay");
  const cli::JsonOutput json(args);
  const auto child = subprocess::run_function([&] { return replayed(file).dump(); }, {.limit = kLimit});
  if (!child.ok()) return cli::fail(program, file + ": " + child.error());
  const auto result = Json::try_parse(child->output);
  if (!child->ending.clean() || !result || !result->is_object()) {
    const std::string why = subprocess::last_line(child->errors);
    return cli::fail(program, file + ": the core that it leads through " + child->ending.text() +
                                  (why.empty() ? "" : " (" + why + ")") +
                                  "; the record is damaged, or this is a fault of leatd's that is worth reporting");
  }
  if (const Json* const error = result->find("error"); error != nullptr)
    return cli::fail(program, error->get<std::string>());
  if (!json.alone()) std::fputs(text_of(*result).c_str(), stdout);
  if (const int failed = json.write(result->dump(2)); failed != 0) return failed;
  if (!result->at("difference").is_null()) return 1;
  if (const Json& damage = result->at("damage"); !damage.is_null())
    return cli::fail(program, file + ": is damaged, and was replayed up to there: " + damage.get<std::string>());
  return 0;
}

}  // namespace leat::tools
