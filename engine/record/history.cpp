#include "engine/record/history.h"

#include <algorithm>
#include <unordered_map>

namespace leat::record {
namespace {

using core::kNone;

class Reading {
 public:
  explicit Reading(Record& record) : record_(record) {}
  Result<History> run();

 private:
  struct Flight {  // a batch on its way
    bool live = false, runs = false, went_on = false;
    core::TimeNs sent_ns = 0, start_ns = 0;
    core::RouteId route = 0;
    std::uint32_t stage = 0, first_stage = 0;
    std::vector<core::PartitionId> path;
    std::uint32_t units = 0, first = 0, count = 0, plan = 0;
    [[nodiscard]] core::PartitionId partition() const { return path[stage - first_stage]; }
  };
  void take(const Entry& e);
  void open(core::StreamId id, const core::StreamConfig& config, core::TimeNs at);
  void sent(const Entry& e);
  void found(const Entry& e);
  void ended(std::uint32_t batch, std::uint32_t stage, core::TimeNs at, bool lost);

  Record& record_;
  History out_;
  std::unordered_map<core::StreamId, std::uint32_t> stream_of_;
  std::unordered_map<std::uint64_t, std::uint32_t> frame_of_;  // by token, of those in flight
  std::unordered_map<std::uint32_t, Flight> flights_;          // by batch
  core::StreamConfig opened_;
  core::TimeNs went_on_ns_ = 0;
};

void Reading::open(core::StreamId id, const core::StreamConfig& config, core::TimeNs at) {
  stream_of_[id] = static_cast<std::uint32_t>(out_.streams.size());
  out_.streams.push_back({.id = id, .config = config, .opened_ns = at});
}

void Reading::sent(const Entry& e) {
  Flight& f = flights_[e.batch];
  f = {.live = true,
       .runs = e.flag,
       .went_on = e.flag,
       .sent_ns = e.flag && went_on_ns_ != 0 ? went_on_ns_ : e.at_ns,
       .route = e.route,
       .stage = e.stage,
       .first_stage = e.stage,
       .path = e.path,
       .first = static_cast<std::uint32_t>(out_.tasks.size()),
       .count = static_cast<std::uint32_t>(e.tasks.size()),
       .plan = static_cast<std::uint32_t>(out_.plans.size() - 1)};
  f.start_ns = f.sent_ns;
  for (const core::TaskRef& t : e.tasks) {
    const auto frame = frame_of_.find(t.token);
    out_.tasks.push_back(
        {.frame = frame == frame_of_.end() ? kNone : frame->second, .item = t.item, .rows = t.items, .units = t.units});
    f.units += t.units;
  }
}

// What a batch's last stage has found, if this is it.
void Reading::found(const Entry& e) {
  const auto flight = flights_.find(e.batch);
  if (flight == flights_.end() || !flight->second.live || flight->second.stage != e.stage) return;
  const Flight& f = flight->second;
  const core::Topology& t = out_.plans[f.plan].plan->topology;
  if (f.route >= t.routes.size() || e.stage + 1 != t.routes[f.route].stages.size()) return;
  for (std::uint32_t i = 0; i < f.count; ++i) {
    if (e.results.empty())
      out_.tasks[f.first + i].fan_out = 1;
    else if (i < e.results.size() && e.results[i].ok)
      out_.tasks[f.first + i].fan_out = e.results[i].fan_out;
  }
}

void Reading::ended(std::uint32_t batch, std::uint32_t stage, core::TimeNs at, bool lost) {
  const auto found = flights_.find(batch);
  if (found == flights_.end() || !found->second.live || found->second.stage != stage) return;
  Flight& f = found->second;
  const core::Topology& t = out_.plans[f.plan].plan->topology;
  if (f.runs && f.route < t.routes.size())
    out_.runs.push_back({.sent_ns = std::min(f.sent_ns, at),
                         .start_ns = std::min(f.start_ns, at),
                         .end_ns = at,
                         .partition = f.partition(),
                         .route = f.route,
                         .module = t.routes[f.route].module,
                         .stage = f.stage,
                         .units = f.units,
                         .first = f.first,
                         .count = f.count,
                         .plan = f.plan,
                         .lost = lost,
                         .went_on = f.went_on,
                         .goes_on = !lost && went_on_ns_ != 0});
  f.runs = false;
  f.sent_ns = at;
  if (lost || ++f.stage - f.first_stage == f.path.size()) f.live = false;
}

void Reading::take(const Entry& e) {
  switch (e.kind) {
    case Kind::plan:
      if (out_.plans.empty()) out_.plans.push_back({e.at_ns, e.plan});
      return;
    case Kind::replace:
      out_.plans.push_back({.at_ns = e.at_ns, .plan = e.plan, .measured_anew = e.flag});
      return;
    case Kind::begin:
      out_.whole = true;
      return;
    case Kind::stream:
      if (!e.context)
        open(e.stream, opened_, e.at_ns);
      else if (!stream_of_.contains(e.stream))
        open(e.stream, e.config, e.at_ns);
      return;
    case Kind::open_stream:
      opened_ = e.config;
      return;
    case Kind::close_stream:
      if (const auto s = stream_of_.find(e.stream); s != stream_of_.end()) {
        out_.streams[s->second].closed_ns = e.at_ns;
        stream_of_.erase(s);
      }
      return;
    case Kind::submit: {
      const auto s = stream_of_.find(e.submission.stream);
      if (s == stream_of_.end()) return;
      frame_of_[e.submission.token] = static_cast<std::uint32_t>(out_.frames.size());
      out_.frames.push_back({.at_ns = e.at_ns,
                             .capture_ns = std::min(e.submission.capture_ns, e.at_ns),
                             .deadline_ns = e.submission.deadline_ns,
                             .stream = s->second,
                             .items = e.submission.items,
                             .key = e.submission.key,
                             .branch_draw = e.submission.branch_draw});
      return;
    }
    case Kind::answer:
      if (const auto f = frame_of_.find(e.submission.token); f != frame_of_.end()) {
        History::Frame& frame = out_.frames[f->second];
        frame.answered_ns = e.at_ns;
        frame.outcome = e.outcome;
        frame.reason = e.reason;
        frame_of_.erase(f);
      }
      return;
    case Kind::dispatch:
      return sent(e);
    case Kind::stage_beside:  // counts from where it has the partition for itself, unless that is lost before
    case Kind::stage_started:
      if (const auto f = flights_.find(e.batch); f != flights_.end() && f->second.live && f->second.stage == e.stage) {
        f->second.runs = true;
        f->second.start_ns = e.at_ns;
      }
      return;
    case Kind::stage_finished:
      went_on_ns_ = e.went_on_ns;
      found(e);
      return ended(e.batch, e.stage, e.at_ns, false);
    case Kind::picture:
      if (const auto s = stream_of_.find(e.stream); e.flag && s != stream_of_.end())
        out_.offers.push_back(
            {.at_ns = e.at_ns, .capture_ns = std::clamp<core::TimeNs>(e.picture_ns, 0, e.at_ns), .stream = s->second});
      return;
    case Kind::schedule:
      if (const auto s = stream_of_.find(e.stream);
          s != stream_of_.end() && out_.streams[s->second].config.waits_for_grants)
        out_.told.push_back({.at_ns = e.at_ns, .stream = s->second, .open = e.flag});
      return;
    case Kind::partition_lost:
      for (auto& [batch, flight] : flights_)
        if (flight.live && flight.partition() == e.partition) ended(batch, flight.stage, e.at_ns, true);
      out_.changes.push_back({e.at_ns, e.partition, false});
      return;
    case Kind::partition_ready:
      out_.changes.push_back({e.at_ns, e.partition, true});
      return;
    case Kind::note:
      out_.notes.push_back({e.at_ns, e.note});
      return;
    default:
      return;
  }
}

Result<History> Reading::run() {
  record_.rewind();
  out_.begin_ns = out_.end_ns = record_.begin_ns();
  Entry e;
  while (record_.next(e)) {
    if (out_.plans.empty() && e.kind != Kind::plan) return Error{"it does not begin with a plan"};
    out_.end_ns = e.at_ns;
    take(e);
  }
  out_.cut = record_.problem();
  if (out_.plans.empty()) return Error{out_.cut.empty() ? "nothing was recorded in it yet" : out_.cut};
  return std::move(out_);
}

}  // namespace

Result<History> history(Record& record) { return Reading(record).run(); }

}  // namespace leat::record
