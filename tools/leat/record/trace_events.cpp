#include "tools/leat/record/trace_events.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/outcome.h"
#include "shm/src/counters/counters.h"
#include "tools/base/json/json.h"
#include "tools/base/text/formatted.h"

namespace leat::tools {
namespace {

using core::kNone;
using core::TimeNs;
using record::History;

// Rows of the viewer are threads, in groups that are processes.
enum Group : std::uint32_t { kPartitions = 1, kUnserved = 2, kDaemon = 3 };

class Writer {
 public:
  explicit Writer(const History& history) : h_(history), runs_of_(history.frames.size()) {}

  TraceEvents write() &&;

 private:
  void event(const char* phase, const std::string& name, std::uint32_t group, std::uint64_t row, TimeNs at,
             const std::string& rest);
  void row(Group group, std::uint64_t row, const std::string& name);
  void group(Group group, const char* name);
  void run(std::uint32_t index);
  void arrows_to(std::uint32_t index, TimeNs start);
  [[nodiscard]] std::uint32_t before(const History::Run& run, std::uint32_t frame) const;
  void unserved(const History::Frame& frame);
  void marks();
  [[nodiscard]] double us(TimeNs at) const { return static_cast<double>(at - h_.begin_ns) * 1e-3; }
  [[nodiscard]] const record::RecordedPlan& latest() const { return *h_.plans.back().plan; }
  [[nodiscard]] std::string application_of(const History::Stream& s) const {
    return application_name(latest(), s.config.application);
  }

  const History& h_;
  TraceEvents out_;
  std::map<core::PartitionId, TimeNs> rows_end_ns_;  // of what is drawn on each partition's row so far
  std::vector<std::pair<TimeNs, TimeNs>> drawn_;     // [run], its slice
  std::vector<std::vector<std::uint32_t>> runs_of_;  // [frame], in the order in which they ended
  std::set<std::pair<std::uint64_t, std::string>> reasons_;
};

std::string quoted(const std::string& text) { return Json(text).dump(); }

void Writer::event(const char* phase, const std::string& name, std::uint32_t group, std::uint64_t row, TimeNs at,
                   const std::string& rest) {
  out_.json += out_.json.empty() ? "" : ",\n";
  out_.json += formatted("{\"ph\":\"%s\",\"pid\":%u,\"tid\":%llu,\"ts\":%.3f,\"name\":", phase, group,
                         static_cast<unsigned long long>(row), us(at));
  out_.json += quoted(name) + rest + "}";
}

void Writer::row(Group group, std::uint64_t row, const std::string& name) {
  event("M", "thread_name", group, row, h_.begin_ns, ",\"args\":{\"name\":" + quoted(name) + "}");
  event("M", "thread_sort_index", group, row, h_.begin_ns,
        formatted(",\"args\":{\"sort_index\":%llu}", static_cast<unsigned long long>(row)));
}

void Writer::group(Group group, const char* name) {
  event("M", "process_name", group, 0, h_.begin_ns, ",\"args\":{\"name\":" + quoted(name) + "}");
  event("M", "process_sort_index", group, 0, h_.begin_ns, formatted(",\"args\":{\"sort_index\":%u}", group));
}

// The run that a frame came from into this one: the stage before in the same batch, else a module before its own.
std::uint32_t Writer::before(const History::Run& run, std::uint32_t frame) const {
  const core::Topology& t = h_.plans[run.plan].plan->topology;
  const auto& earlier = runs_of_[frame];
  for (auto it = earlier.rbegin(); it != earlier.rend(); ++it) {
    const History::Run& r = h_.runs[*it];
    if (r.lost || r.end_ns > run.end_ns) continue;
    if (r.first == run.first) return r.stage + 1 == run.stage ? *it : kNone;
    if (std::ranges::find(t.modules[run.module].before, r.module) != t.modules[run.module].before.end()) return *it;
  }
  return kNone;
}

// An arrow for each batch that some of its frames come from.
void Writer::arrows_to(std::uint32_t index, TimeNs start) {
  const History::Run& to = h_.runs[index];
  std::set<std::uint32_t> from;
  for (std::uint32_t i = to.first; i < to.first + to.count; ++i)
    if (const std::uint32_t frame = h_.tasks[i].frame; frame != kNone)
      if (const std::uint32_t run = before(to, frame); run != kNone) from.insert(run);
  for (const std::uint32_t f : from) {
    const History::Run& r = h_.runs[f];
    const char* const name = r.first == to.first ? "stage" : "sequel";
    const std::string id = formatted(",\"cat\":\"route\",\"id\":%llu", static_cast<unsigned long long>(++out_.arrows));
    // Within the slice: at its end another begins.
    event("s", name, kPartitions, r.partition, std::max(drawn_[f].first, drawn_[f].second - 1), id);
    event("f", name, kPartitions, to.partition, start, id + ",\"bp\":\"e\"");
  }
}

void Writer::run(std::uint32_t index) {
  const History::Run& r = h_.runs[index];
  const record::RecordedPlan& plan = *h_.plans[r.plan].plan;
  // A partition runs one batch at a time, but its worker's report of an end may be read after that of the next's
  // begin; slices that overlap are not drawn.
  TimeNs& row_end = rows_end_ns_.try_emplace(r.partition, h_.begin_ns).first->second;
  const TimeNs end = std::max(r.end_ns, row_end), start = std::clamp(r.start_ns, row_end, end);
  row_end = end;
  drawn_.emplace_back(start, end);
  std::set<std::uint32_t> streams, frames;
  for (std::uint32_t i = r.first; i < r.first + r.count; ++i)
    if (h_.tasks[i].frame != kNone && frames.insert(h_.tasks[i].frame).second)
      streams.insert(h_.streams[h_.frames[h_.tasks[i].frame].stream].id);
  const core::RouteSpec& route = plan.topology.routes[r.route];
  std::string name = module_name(plan, r.module);
  if (route.stages.size() > 1) name += formatted(" %u/%zu", r.stage + 1, route.stages.size());
  std::string rest =
      formatted(",\"dur\":%.3f,\"cat\":\"batch\",\"args\":{\"size\":%u,\"tasks\":%u,\"route\":%u,\"application\":",
                static_cast<double>(end - start) * 1e-3, r.units, r.count, r.route) +
      quoted(application_name(plan, plan.topology.modules[r.module].application)) + ",\"streams\":[";
  for (bool first = true; const std::uint32_t s : streams) {
    rest += (first ? "" : ",") + std::to_string(s);
    first = false;
  }
  event("X", name, kPartitions, r.partition, start, rest + (r.lost ? "],\"lost\":true}" : "]}"));
  ++out_.slices;
  arrows_to(index, start);
  for (const std::uint32_t frame : frames) runs_of_[frame].push_back(index);
}

void Writer::unserved(const History::Frame& f) {
  if (f.answered_ns == 0 || f.outcome == Outcome::completed) return;
  const History::Stream& stream = h_.streams[f.stream];
  const std::string name(f.reason == Reason::none ? name_of(f.outcome) : name_of(f.reason));
  const std::uint64_t row = f.reason == Reason::none ? kReasonCount + static_cast<std::uint64_t>(f.outcome)
                                                     : static_cast<std::uint64_t>(f.reason);
  reasons_.emplace(row, name);
  event("i", name, kUnserved, row, f.answered_ns,
        ",\"s\":\"t\",\"cat\":\"" + std::string(name_of(f.outcome)) + "\",\"args\":{\"outcome\":\"" +
            std::string(name_of(f.outcome)) + "\",\"stream\":" + std::to_string(stream.id) +
            ",\"application\":" + quoted(application_of(stream)) +
            formatted(",\"after_ms\":%.3f}", static_cast<double>(f.answered_ns - f.capture_ns) * 1e-6));
  ++out_.unserved;
}

void Writer::marks() {
  for (std::size_t i = 1; i < h_.plans.size(); ++i, ++out_.marks)
    event("i", formatted("plan %zu takes over", i + 1), kDaemon, 0, h_.plans[i].at_ns, ",\"s\":\"g\",\"cat\":\"plan\"");
  for (const History::Change& c : h_.changes) {
    rows_end_ns_.try_emplace(c.partition, h_.begin_ns);
    event("i", c.up ? "ready" : "lost", kPartitions, c.partition, c.at_ns, ",\"s\":\"t\",\"cat\":\"partition\"");
    ++out_.marks;
  }
  for (const History::Happened& n : h_.notes) {
    const std::string_view name = shm::name_of(static_cast<shm::EventKind>(n.note.kind));
    event("i", name.empty() ? "note" : std::string(name), kDaemon, 1, n.at_ns,
          ",\"s\":\"t\",\"cat\":\"note\",\"args\":{\"a\":" + std::to_string(n.note.a) +
              ",\"b\":" + std::to_string(n.note.b) + ",\"c\":" + std::to_string(n.note.c) + "}");
    ++out_.marks;
  }
}

TraceEvents Writer::write() && {
  drawn_.reserve(h_.runs.size());
  for (std::uint32_t i = 0; i < h_.runs.size(); ++i) run(i);
  for (const History::Frame& f : h_.frames) unserved(f);
  marks();
  group(kPartitions, "partitions");
  for (const auto& [partition, end] : rows_end_ns_) row(kPartitions, partition, partition_name(latest(), partition));
  group(kUnserved, "frames not served in time");
  for (const auto& [at, name] : reasons_) row(kUnserved, at, name);
  group(kDaemon, "leatd");
  row(kDaemon, 0, "plans");
  row(kDaemon, 1, "clients and workers");
  out_.json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + out_.json + "\n]}\n";
  return std::move(out_);
}

}  // namespace

TraceEvents trace_events(const record::History& history) { return Writer(history).write(); }

}  // namespace leat::tools
