#include "tools/leat/record/summary.h"

#include <cstddef>
#include <ctime>
#include <vector>

#include "engine/record/segments.h"
#include "tools/base/text/formatted.h"
#include "tools/base/text/units.h"

namespace leat::tools {
namespace {

using record::Kind;

constexpr std::size_t kWidth = 120;  // of a line

std::string utc_text(std::int64_t wall_ns) {
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  char text[32];
  if (gmtime_r(&seconds, &parts) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return "-";
  return text;
}

std::string policy_text(const record::Names& names) {
  std::string out = names.preset;
  for (const auto& [key, value] : names.settings) out += ", " + key + " = " + value;
  return out;
}

// A name and its value, in lines that are not too long.
void add(std::string& out, const char* name, const std::vector<std::string>& words) {
  std::string line = formatted("  %-13s", name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (line.size() > 15 && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = std::string(15, ' ');
    }
    line += " " + word;
  }
  out += line + "\n";
}

std::string counted(std::uint64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what);
}

// Those that its routes use; leatd keeps room for others.
std::vector<std::string> partitions_of(const record::RecordedPlan& plan) {
  std::vector<std::uint8_t> used(plan.topology.partitions.size());
  for (const core::RouteSpec& route : plan.topology.routes)
    for (const core::StageSpec& stage : route.stages)
      for (const core::PartitionId p : stage.pool) used[p] = 1;
  std::vector<std::string> out;
  for (core::PartitionId p = 0; p < used.size(); ++p)
    if (used[p] != 0) out.push_back(partition_name(plan, p));
  return out;
}

std::string beginning_of(const RecordSummary& s) {
  if (s.whole) return "where leatd began, so that it can be replayed exactly";
  const std::string lost = "not where leatd began: " + counted(s.segments_before, "segments before it are lost, ");
  return lost + (s.replays_from_ns < 0 ? std::string("so that it cannot be replayed exactly")
                                       : "and it can be replayed exactly from " + text::time_text(s.replays_from_ns) +
                                             " after its beginning on");
}

template <class Reason>
std::vector<std::string> reasons_of(const RecordSummary& s, Reason name) {
  std::vector<std::string> out;
  for (std::size_t r = 1; r < s.reasons.size(); ++r)
    if (s.reasons[r] != 0) out.push_back(counted(s.reasons[r], name(static_cast<leat::Reason>(r))));
  return out;
}

}  // namespace

Result<RecordSummary> summary_of(record::Record& record) {
  record.rewind();
  RecordSummary out{.version = record.version(),
                    .segments = record.segments(),
                    .segment_bytes = record.segment_bytes(),
                    .bytes = record.bytes(),
                    .segments_before = record.first_sequence() - 1,
                    .wall_ns = record.wall_ns()};
  record::Entry e;
  bool complete = false;  // the state of which a piece was read: its first is there
  while (record.next(e)) {
    ++out.entries[static_cast<std::size_t>(e.kind)];
    out.span_ns = e.at_ns - record.begin_ns();
    if (out.plan == nullptr && e.kind == Kind::plan) out.plan = e.plan;
    if (e.kind == Kind::begin) out.whole = true;
    if (e.kind == Kind::state) {
      if (e.first) complete = true;
      if (e.last && complete && out.replays_from_ns < 0) out.replays_from_ns = out.span_ns;
    }
    if (e.kind == Kind::replace) ++out.plans;
    if (e.kind != Kind::answer) continue;
    ++out.outcomes[static_cast<std::size_t>(e.outcome)];
    ++out.reasons[static_cast<std::size_t>(e.reason)];
  }
  out.problem = record.problem();
  out.unread_bytes = record.unread_bytes();
  if (out.plan == nullptr) return Error{out.problem.empty() ? record::kEmpty : out.problem};
  return out;
}

std::string summary_text(const RecordSummary& s) {
  std::string out = "leatd " + s.version + ", format " + std::to_string(record::kFormat) + ": " +
                    text::time_text(s.span_ns) + " from " + utc_text(s.wall_ns) + "\n";
  const core::Topology& t = s.plan->topology;
  add(out, "kept",
      {text::bytes_text(s.bytes) + " in " + std::to_string(s.segments) + " segments of " +
       text::bytes_text(s.segment_bytes)});
  add(out, "beginning", {beginning_of(s)});
  if (!s.problem.empty()) add(out, "unread", {text::bytes_text(s.unread_bytes) + ": " + s.problem});
  add(out, "policy", {policy_text(s.plan->names)});
  std::vector<std::string> applications;
  for (std::uint32_t a = 0; a < t.applications.size(); ++a)
    if (!t.applications[a].retired)
      applications.push_back(application_name(*s.plan, a) + " (" + text::exact_time_text(t.applications[a].slo_ns) +
                             ")");
  add(out, "applications", applications);
  add(out, "partitions", partitions_of(*s.plan));
  add(out, "plan",
      {counted(t.modules.size(), "modules"), counted(t.routes.size(), "routes"),
       s.plans == 0 ? "no other took over"
                    : formatted("then %llu others took over", static_cast<unsigned long long>(s.plans))});
  std::vector<std::string> frames{counted(s.of(Kind::submit), "submitted")};
  for (std::size_t o = 0; o < s.outcomes.size(); ++o)
    if (s.outcomes[o] != 0) frames.push_back(counted(s.outcomes[o], name_of(static_cast<Outcome>(o))));
  add(out, "frames", frames);
  if (const auto reasons = reasons_of(s, [](leat::Reason r) { return name_of(r); }); !reasons.empty())
    add(out, "because", reasons);
  std::vector<std::string> entries;
  for (std::size_t k = 0; k < s.entries.size(); ++k)
    if (s.entries[k] != 0) entries.push_back(counted(s.entries[k], record::name_of(static_cast<Kind>(k))));
  add(out, "entries", entries);
  return out;
}

Json summary_json(const RecordSummary& s) {
  const core::Topology& t = s.plan->topology;
  Json applications = Json::array();
  for (std::uint32_t a = 0; a < t.applications.size(); ++a) {
    Json modules = Json::array();
    for (const core::ModuleId m : t.applications[a].modules) modules.push_back(module_name(*s.plan, m));
    applications.push_back({{"name", application_name(*s.plan, a)},
                            {"slo_ms", static_cast<double>(t.applications[a].slo_ns) * 1e-6},
                            {"retired", t.applications[a].retired},
                            {"modules", std::move(modules)}});
  }
  Json settings = Json::object(), frames = {{"submitted", s.of(Kind::submit)}}, reasons = Json::object(),
       entries = Json::object();
  for (const auto& [key, value] : s.plan->names.settings) settings[key] = value;
  for (std::size_t o = 1; o < s.outcomes.size(); ++o) frames[name_of(static_cast<Outcome>(o))] = s.outcomes[o];
  for (std::size_t r = 1; r < s.reasons.size(); ++r)
    if (s.reasons[r] != 0) reasons[name_of(static_cast<Reason>(r))] = s.reasons[r];
  for (std::size_t k = 0; k < s.entries.size(); ++k)
    if (s.entries[k] != 0) entries[record::name_of(static_cast<Kind>(k))] = s.entries[k];
  return {{"version", s.version},
          {"format", record::kFormat},
          {"begins", utc_text(s.wall_ns)},
          {"seconds", static_cast<double>(s.span_ns) * 1e-9},
          {"bytes", s.bytes},
          {"segments", s.segments},
          {"segment_bytes", s.segment_bytes},
          {"lost", {{"segments_before", s.segments_before}, {"unread_bytes", s.unread_bytes}, {"problem", s.problem}}},
          {"whole", s.whole},
          {"replays_from_seconds", s.whole                 ? Json(0)
                                   : s.replays_from_ns < 0 ? Json(nullptr)
                                                           : Json(static_cast<double>(s.replays_from_ns) * 1e-9)},
          {"preset", s.plan->names.preset},
          {"settings", std::move(settings)},
          {"applications", std::move(applications)},
          {"partitions", partitions_of(*s.plan)},
          {"routes", t.routes.size()},
          {"plans_after", s.plans},
          {"frames", std::move(frames)},
          {"reasons", std::move(reasons)},
          {"entries", std::move(entries)}};
}

}  // namespace leat::tools
