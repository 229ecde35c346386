#include "engine/sim/workload/fault_file.h"

#include <algorithm>
#include <memory>

#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::sim {
namespace {

constexpr double kLongest = 1e6;  // seconds

TimeNs seconds(const JsonCursor& c) { return static_cast<TimeNs>(c.number(0, kLongest) * 1e9); }

// The names of a plan, and where they stand.
struct Names {
  const planner::PlanFile& plan;

  std::vector<core::PartitionId> partitions(const JsonCursor& c) const {
    const std::string name = c.text();
    std::vector<core::PartitionId> out;
    for (std::size_t p = 0; p < plan.plan.partitions.size(); ++p) {
      const std::string& own = plan.plan.partitions[p].name;
      const bool many = name.ends_with('*') && own.starts_with(std::string_view(name).substr(0, name.size() - 1));
      if (many || name == own) out.push_back(static_cast<core::PartitionId>(p));
    }
    if (out.empty())
      c.fail("the plan has no partition '" + name + "'; its first is '" + plan.plan.partitions.front().name +
             "', and 'NAME*' are all that begin so");
    return out;
  }
  std::uint32_t application(const JsonCursor& table) const {
    if (!table.has("application")) return core::kNone;
    const std::string name = table.at("application").text();
    for (std::size_t a = 0; a < plan.applications.size(); ++a) {
      if (name == plan.applications[a].name) return static_cast<std::uint32_t>(a);
    }
    table.at("application")
        .fail("the plan has no application '" + name + "'; its first is '" + plan.applications.front().name + "'");
    return core::kNone;
  }
  core::ModuleId module(const JsonCursor& table) const {
    if (!table.has("module")) return core::kNone;
    const std::string name = table.at("module").text();
    core::ModuleId id = 0;
    for (const planner::Application& a : plan.applications) {
      for (const planner::Module& m : a.modules) {
        if (name == a.name + "/" + m.name) return id;
        ++id;
      }
    }
    table.at("module").fail("the plan has no module '" + name + "'; write APPLICATION/MODULE, such as '" +
                            plan.applications.front().name + "/" + plan.applications.front().modules.front().name +
                            "'");
    return core::kNone;
  }
};

void read_lost(const JsonCursor& c, const Names& names, FaultFile& out) {
  c.only({"partition", "at_s", "back_s"});
  const TimeNs at = seconds(c.at("at_s"));
  const bool back = c.has("back_s");
  const TimeNs until = back ? seconds(c.at("back_s")) : 0;
  if (back && until <= at)
    c.at("back_s").fail("must be later than at_s; leave it out if the partition never comes back");
  for (const core::PartitionId p : names.partitions(c.at("partition"))) {
    out.faults.push_back({at, FaultKind::lose, p, 0});
    if (back) out.faults.push_back({until, FaultKind::restore, p, 0});
  }
}

void read_slow(const JsonCursor& c, const Names& names, FaultFile& out) {
  c.only({"partition", "from_s", "until_s", "factor"});
  const TimeNs from = seconds(c.at("from_s"));
  const bool ends = c.has("until_s");
  const TimeNs until = ends ? seconds(c.at("until_s")) : 0;
  if (ends && until <= from) c.at("until_s").fail("must be later than from_s; leave it out for ever");
  const auto permille = static_cast<std::int64_t>(c.at("factor").number(0.1, 100) * 1000 + 0.5);
  for (const core::PartitionId p : names.partitions(c.at("partition"))) {
    out.faults.push_back({from, FaultKind::slow, p, permille});
    if (ends) out.faults.push_back({until, FaultKind::slow, p, 1000});
  }
}

void read_burst(const JsonCursor& c, const Names& names, FaultFile& out) {
  c.only({"application", "from_s", "until_s", "factor"});
  const Burst b{.application = names.application(c),
                .from_ns = seconds(c.at("from_s")),
                .until_ns = seconds(c.at("until_s")),
                .factor = c.at("factor").number(0, 1000)};
  if (b.until_ns <= b.from_ns) c.at("until_s").fail("must be later than from_s");
  out.bursts.push_back(b);
}

}  // namespace

Result<FaultFile> parse_faults(std::string_view text, const std::string& name, const planner::PlanFile& plan) {
  const std::unique_ptr<JsonDocument> document =
      name.ends_with(".json") ? std::make_unique<JsonDocument>(name, text) : JsonDocument::from_toml(name, text);
  const JsonCursor root = document->root();
  const Names names{plan};
  FaultFile out;
  root.only({"lost", "slow", "clock_step", "burst", "profile_error"});
  for (const JsonCursor& c : root.tables("lost")) read_lost(c, names, out);
  for (const JsonCursor& c : root.tables("slow")) read_slow(c, names, out);
  for (const JsonCursor& c : root.tables("clock_step")) {
    c.only({"at_s", "by_ms"});
    out.faults.push_back({seconds(c.at("at_s")), FaultKind::clock_step, 0,
                          static_cast<std::int64_t>(c.at("by_ms").number(-1e9, 1e9) * 1e6)});
  }
  for (const JsonCursor& c : root.tables("burst")) read_burst(c, names, out);
  for (const JsonCursor& c : root.tables("profile_error")) {
    c.only({"module", "percent"});
    out.profile_errors.push_back({.module = names.module(c), .percent = c.at("percent").integer(-90, 900)});
  }
  if (document->failed()) return document->error();
  std::stable_sort(out.faults.begin(), out.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at_ns < b.at_ns; });
  return out;
}

Result<FaultFile> read_faults(const std::string& path, const planner::PlanFile& plan) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  return parse_faults(*text, path, plan);
}

}  // namespace leat::sim
