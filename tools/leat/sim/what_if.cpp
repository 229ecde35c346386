#include "engine/sim/what_if.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/papers/presets.h"
#include "engine/record/replay.h"
#include "planner/io/plan_io.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/base/subprocess/run.h"
#include "tools/base/text/formatted.h"
#include "tools/leat/sim/what_if.h"

namespace leat::tools {
namespace {

using record::History;

constexpr std::chrono::hours kLongest{2};
constexpr const char* kAsRecorded = "recorded";
constexpr std::uint64_t kDraws = 8;

struct Asked {
  std::string name;  // of the policy, as it was written
  core::Policy policy;
};

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t from = 0, to = 0; to != std::string::npos; from = to + 1) {
    to = list.find(',', from);
    if (std::string word = list.substr(from, to == std::string::npos ? to : to - from); !word.empty())
      out.push_back(std::move(word));
  }
  return out;
}

Result<std::vector<Asked>> policies_of(const cli::Arguments& args, const record::RecordedPlan& recorded) {
  std::vector<Asked> out;
  const auto as_recorded = [&]() -> Status {
    auto policy = record::policy_of(recorded, papers::presets());
    if (!policy.ok()) return Error{policy.error()};
    out.push_back({kAsRecorded, std::move(*policy)});
    return Done{};
  };
  if (!args.given("presets")) {
    if (auto status = as_recorded(); !status) return Error{status.error()};
    return out;
  }
  for (const std::string& word : words_of(args.text("presets"))) {
    if (word == kAsRecorded) {
      if (auto status = as_recorded(); !status) return Error{status.error()};
      continue;
    }
    auto read = papers::read_policies(word);
    if (!read.ok()) return Error{"--presets: " + read.error() + ", and " + kAsRecorded + ", the record's own"};
    for (core::NamedPolicy& p : *read) out.push_back({std::move(p.name), std::move(p.policy)});
  }
  return out;
}

// A plan file as a record would have it. Items are as large as the record's were.
Result<std::vector<History::Plan>> plans_of_file(const std::string& path, const History& history) {
  auto file = planner::read_plan(path);
  if (!file.ok()) return Error{file.error()};
  auto plan = std::make_shared<record::RecordedPlan>();
  plan->topology = core::Topology::from(file->plan, file->applications);
  if (const std::string problem = plan->topology.problem(); !problem.empty()) return Error{path + ": " + problem};
  for (const planner::Application& a : file->applications) {
    plan->names.applications.push_back(a.name);
    for (const planner::Module& m : a.modules) plan->names.modules.push_back(a.name + "/" + m.name);
  }
  for (const planner::Partition& p : file->plan.partitions) plan->names.partitions.push_back(p.name);
  const record::RecordedPlan& was = *history.plans.back().plan;
  for (core::ModuleId m = 0; m < plan->topology.modules.size(); ++m)
    for (core::ModuleId then = 0; then < was.topology.modules.size(); ++then)
      if (module_name(*plan, m) == module_name(was, then))
        plan->topology.modules[m].units_per_item = was.topology.modules[then].units_per_item;
  return std::vector<History::Plan>{{.at_ns = history.begin_ns, .plan = std::move(plan)}};
}

Json totals(const sim::FrameTotals& t) {
  Json reasons = Json::object(),
       out = {
           {"frames", t.frames}, {"left_out", t.left_out}, {"in_time", t.in_time()}, {"of_pictures", t.of_pictures()}};
  for (std::size_t o = 1; o < kOutcomeCount; ++o) out[name_of(static_cast<Outcome>(o))] = t.outcomes[o];
  for (std::size_t r = 1; r < kReasonCount; ++r)
    if (t.reasons[r] != 0) reasons[name_of(static_cast<Reason>(r))] = t.reasons[r];
  out["reasons"] = std::move(reasons);
  return out;
}

// Of one of the totals in each draw: the least, the mean and the most that were in time, and the counts of all draws.
template <class Of>
Json drawn(const std::vector<sim::WhatIf>& draws, Of&& of) {
  sim::FrameTotals sum;
  double low = 1, high = 0;
  for (const sim::WhatIf& d : draws) {
    const sim::FrameTotals& t = of(d);
    sum.frames += t.frames;
    sum.left_out += t.left_out;
    for (std::size_t o = 0; o < kOutcomeCount; ++o) sum.outcomes[o] += t.outcomes[o];
    for (std::size_t r = 0; r < kReasonCount; ++r) sum.reasons[r] += t.reasons[r];
    low = std::min(low, t.in_time());
    high = std::max(high, t.in_time());
  }
  Json out = totals(sum);
  out["least_in_time"] = low;
  out["most_in_time"] = high;
  return out;
}

Result<Json> answer(const cli::Arguments& args) {
  const std::string file = args.text("replay");
  auto record = record::Record::read_file(file);
  if (!record.ok()) return Error{record.error()};
  const auto history = record::history(*record);
  if (!history.ok()) return Error{file + ": " + history.error()};
  if (history->frames.empty()) return Error{file + ": no frame was submitted in it"};
  const auto policies = policies_of(args, history->plan());
  if (!policies.ok()) return Error{policies.error()};
  sim::Question question;
  if (args.given("plan")) {
    auto plans = plans_of_file(args.text("plan"), *history);
    if (!plans.ok()) return Error{plans.error()};
    question.plans = std::move(*plans);
    question.by_name = true;
  } else if (args.given("without") || args.given("twice")) {
    auto plans = sim::with_partitions(*history, words_of(args.text("without")), words_of(args.text("twice")));
    if (!plans.ok()) return Error{plans.error()};
    question.plans = std::move(*plans);
  }
  const std::uint64_t count = args.given("seeds") ? static_cast<std::uint64_t>(args.integer("seeds")) : kDraws;
  Json out = {{"file", file},
              {"version", record->version()},
              {"seconds", static_cast<double>(history->end_ns - history->begin_ns) * 1e-9},
              {"seed", args.integer("seed")},
              {"draws", count},
              {"damage", history->cut.empty() ? Json(nullptr) : Json(history->cut)},
              {"policies", Json::array()}};
  for (const Asked& asked : *policies) {
    question.policy = asked.policy;
    std::vector<sim::WhatIf> draws;
    double cpu_seconds = 0;
    for (std::uint64_t k = 0; k < count; ++k) {
      question.seed = static_cast<std::uint64_t>(args.integer("seed")) + k;
      auto one = sim::what_if(*history, question);
      if (!one.ok()) return Error{file + ": " + one.error()};
      cpu_seconds += one->cpu_seconds;
      draws.push_back(std::move(*one));
    }
    const sim::WhatIf& first = draws.front();
    if (out["policies"].empty()) {
      out["open"] = first.open;
      out["recorded"] = totals(first.was);
      out["recorded"]["applications"] = Json::object();
      for (const auto& a : first.applications)
        if (a.was.frames > 0) out["recorded"]["applications"][a.name] = totals(a.was);
    }
    Json is = drawn(draws, [](const sim::WhatIf& d) -> const sim::FrameTotals& { return d.is; });
    is["name"] = asked.name;
    is["batches"] = first.batches;
    is["unseen_batches"] = first.unseen;
    is["cpu_seconds"] = cpu_seconds;
    is["applications"] = Json::object();
    for (std::size_t a = 0; a < first.applications.size(); ++a)
      if (first.applications[a].was.frames > 0)
        is["applications"][first.applications[a].name] =
            drawn(draws, [a](const sim::WhatIf& d) -> const sim::FrameTotals& { return d.applications[a].is; });
    out["policies"].push_back(std::move(is));
  }
  return out;
}

double part(const Json& totals, std::string_view outcome) {
  const double frames = totals.at("frames").get<double>();
  return frames == 0 ? 0 : 100 * totals.at(std::string(outcome)).get<double>() / frames;
}

// A line of the table. Of draws also how far apart they are.
std::string line_of(const std::string& what, const std::string& policy, const Json& t) {
  std::string out = formatted("%-20s %-12s %9.2f", what.c_str(), policy.c_str(), 100 * t.at("in_time").get<double>());
  out += t.contains("least_in_time") ? formatted("  %6.2f to %6.2f", 100 * t.at("least_in_time").get<double>(),
                                                 100 * t.at("most_in_time").get<double>())
                                     : std::string(18, ' ');
  out += formatted(" %10.2f", 100 * t.at("of_pictures").get<double>());
  for (const Outcome o : {Outcome::late, Outcome::dropped, Outcome::failed, Outcome::rejected})
    out += formatted(" %9.2f", part(t, name_of(o)));
  return out + "\n";
}

std::string totals_text(const Json& r) {
  const Json& recorded = r.at("recorded");
  std::string out = r.at("file").get<std::string>() +
                    formatted(": %.3f s, %llu frames that were answered; batch times drawn %llu times from seed %lld\n",
                              r.at("seconds").get<double>(), recorded.at("frames").get<unsigned long long>(),
                              r.at("draws").get<unsigned long long>(), r.at("seed").get<long long>());
  out += formatted("%-20s %-12s %9s  %16s %10s %9s %9s %9s %9s\n", "application", "policy", "in time %", "draws",
                   "pictures %", "late %", "dropped %", "failed %", "rejected %");
  const auto block = [&](const std::string& name, const Json& was, auto&& of) {
    out += line_of(name, "as it was", was);
    for (const Json& p : r.at("policies")) out += line_of("", p.at("name").get<std::string>(), of(p));
  };
  for (const auto& [name, was] : recorded.at("applications").items())
    block(name, was, [&](const Json& p) -> const Json& { return p.at("applications").at(name); });
  if (recorded.at("applications").size() > 1) block("all", recorded, [](const Json& p) -> const Json& { return p; });
  for (const Json& p : r.at("policies")) {
    const double unseen = p.at("unseen_batches").get<double>(), batches = p.at("batches").get<double>();
    if (unseen > 0.01 * batches)
      out += formatted(
          "%s: %.1f %% of the batches are of sizes or partitions that the record has no times of; their times are "
          "the plan's, in the record's proportion\n",
          p.at("name").get<std::string>().c_str(), 100 * unseen / batches);
  }
  return out;
}

}  // namespace

bool asks_what_if(const cli::Arguments& args) {
  return std::ranges::any_of(std::array{"presets", "plan", "without", "twice"},
                             [&](const char* option) { return args.given(option); });
}

int ask_what_if(const cli::Arguments& args) {
  const std::string program(args.command().name), file = args.text("replay");
  const cli::JsonOutput json(args);
  // In a process of its own, as the replay: a record that was tampered with can end it.
  const auto child = subprocess::run_function(
      [&] {
        const rlimit none{};
        (void)::setrlimit(RLIMIT_CORE, &none);
        const auto out = answer(args);
        return (out.ok() ? *out : Json{{"error", out.error()}}).dump();
      },
      {.limit = kLongest});
  if (!child.ok()) return cli::fail(program, file + ": " + child.error());
  const auto result = Json::try_parse(child->output);
  if (!child->ending.clean() || !result || !result->is_object()) {
    const std::string why = subprocess::last_line(child->errors);
    return cli::fail(program, file + ": the simulation that it leads to " + child->ending.text() +
                                  (why.empty() ? "" : " (" + why + ")") + "; the record is damaged");
  }
  if (const Json* const error = result->find("error"); error != nullptr)
    return cli::fail(program, error->get<std::string>());
  if (!json.alone()) std::fputs(totals_text(*result).c_str(), stdout);
  if (const int failed = json.write(result->dump(2)); failed != 0) return failed;
  if (const Json& damage = result->at("damage"); !damage.is_null())
    return cli::fail(program, file + ": is damaged, and was read up to there: " + damage.get<std::string>());
  return 0;
}

}  // namespace leat::tools
