#include "tools/leat/top/columns.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "leat/leat.h"
#include "planner/partition_kind.h"
#include "shm/src/protocol/color_text.h"
#include "tools/base/json/json.h"
#include "tools/leat/top/users.h"

namespace leat::tools {
namespace {

using shm::DaemonCounter;
using shm::EdgeCounter;
using shm::ModuleCounter;
using shm::PartitionCounter;
using shm::RecordSnapshot;
using shm::StreamCounter;
using shm::UserCounter;
using shm::Which;

template <auto Counter>
Value count(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto value = record.value(Counter);
  return value ? Value(static_cast<double>(*value)) : Value();
}

// A counter never touched is none rather than unknown once its record lives; a gauge stays unknown.
template <auto Counter>
double counted(const RecordSnapshot& record) {
  return static_cast<double>(record.value(Counter).value_or(0));
}

template <auto Counter>
Value rate(const Window& window, const RecordSnapshot& record, const RecordSnapshot* before) {
  if (before == nullptr || window.seconds() <= 0) return {};
  return (counted<Counter>(record) - counted<Counter>(*before)) / window.seconds();
}

template <auto Counter, int Divisor>
Value scaled(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto value = record.value(Counter);
  return value ? Value(static_cast<double>(*value) / Divisor) : Value();
}

// The part of the histogram that fell into the window.
std::optional<double> window_quantile_ns(const RecordSnapshot& record, const RecordSnapshot* before, Which which,
                                         double q) {
  if (before == nullptr) return std::nullopt;
  RecordSnapshot part;
  part.buckets = record.buckets;
  auto& buckets = part.buckets[static_cast<std::size_t>(which)];
  const auto& old = before->buckets[static_cast<std::size_t>(which)];
  for (std::size_t i = 0; i < std::min(buckets.size(), old.size()); ++i) buckets[i] -= std::min(buckets[i], old[i]);
  return part.quantile_ns(which, q);
}

template <Which W, int Percent, int NsPerUnit>
Value quantile(const Window&, const RecordSnapshot& record, const RecordSnapshot* before) {
  const auto ns = window_quantile_ns(record, before, W, Percent / 100.0);
  return ns ? Value(*ns / NsPerUnit) : Value();
}
constexpr int kMs = 1'000'000, kUs = 1'000, kPercent = 10'000;

// Part of the window, in per cent: `Counter` holds nanoseconds.
template <auto Counter>
Value busy(const Window& window, const RecordSnapshot& record, const RecordSnapshot* before) {
  if (before == nullptr || window.seconds() <= 0) return {};
  return std::min(100.0, (counted<Counter>(record) - counted<Counter>(*before)) / window.seconds() / 1e7);
}

template <auto Above, auto Below>
Value ratio(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const double below = counted<Below>(record);
  return below > 0 ? Value(counted<Above>(record) / below) : Value();
}

Value overhead(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const double batches = counted<PartitionCounter::batches>(record);
  return batches > 0 ? Value(counted<PartitionCounter::overhead_ns>(record) / batches / 1e3) : Value();
}

template <auto Counter>
Value since(const Window& window, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto value = record.value(Counter);  // 0: there is no such time now
  return value && *value != 0 ? Value((static_cast<double>(window.now.at_ns) - static_cast<double>(*value)) / 1e9)
                              : Value();
}

// A gauge that is an index into a list of words.
template <auto Counter>
Value word(const RecordSnapshot& record, std::initializer_list<const char*> words) {
  const auto value = record.value(Counter);
  if (!value) return {};
  return *value < words.size() ? std::string(words.begin()[*value]) : "unknown";
}

Value label(const Window&, const RecordSnapshot& record, const RecordSnapshot*) { return record.label; }
Value partition_device(const Window& window, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto found = window.devices.find(std::string(record.label));
  return found != window.devices.end() ? Value(found->second.uuid) : Value();
}
Value edge_way(const Window& window, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto found = window.ways.find(std::string(record.label));
  return found != window.ways.end() && !found->second.empty() ? Value(found->second) : Value();
}
template <double GpuFacts::*Member>
Value partition_gpu(const Window& window, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto found = window.devices.find(std::string(record.label));
  return found != window.devices.end() && found->second.*Member >= 0 ? Value(found->second.*Member) : Value();
}
Value partition_state(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  return word<PartitionCounter::state>(record, {"down", "starting", "up", "lost"});
}
Value partition_kind(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto kind = record.value(PartitionCounter::kind);
  return kind ? Value(planner::name_of(static_cast<planner::PartitionKind>(*kind))) : Value();
}

Value misses(const Window& window, const RecordSnapshot& record, const RecordSnapshot* before) {
  if (before == nullptr || window.seconds() <= 0) return {};
  const auto answers = [](const RecordSnapshot& r) {
    return counted<StreamCounter::completed>(r) + counted<StreamCounter::late>(r) + counted<StreamCounter::dropped>(r) +
           counted<StreamCounter::failed>(r) + counted<StreamCounter::rejected>(r);
  };
  const double all = answers(record) - answers(*before);
  const double good = counted<StreamCounter::completed>(record) - counted<StreamCounter::completed>(*before);
  return all > 0 ? Value(100 * (all - good) / all) : Value();
}

Value client_name(const Window& window, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto index = record.value(StreamCounter::client);
  for (const RecordSnapshot& client : window.now.clients) {
    if (index && client.index == *index) return client.label;
  }
  return {};
}

Value daemon_phase(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  return word<DaemonCounter::phase>(record, {"starting", "serving", "draining", "stopping"});
}

Value stream_priority(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  static constexpr const char* kWords[] = {"background", "normal", "high", "protected"};
  const auto terms = record.value(StreamCounter::terms);
  const std::uint32_t priority = terms ? shm::priority_of_terms(*terms) : 0;
  return terms && priority < std::size(kWords) ? Value(std::string(kWords[priority])) : Value();
}

Value stream_color(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto color = record.value(StreamCounter::color);
  if (!color) return {};
  const shm::ColorFact fact = shm::color_fact(*color);
  const auto format = static_cast<std::uint32_t>(record.value(StreamCounter::format).value_or(0));
  const auto height = static_cast<std::uint32_t>(record.value(StreamCounter::height).value_or(0));
  if (fact.of_bitstream && (!fact.range_stated || !fact.matrix_stated)) return std::string("as its bitstream states");
  std::string text = shm::color_text(fact.color, fact.range_stated, fact.matrix_stated, format, height);
  return text.empty() ? Value() : Value(std::move(text));
}

Value stream_overload(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto terms = record.value(StreamCounter::terms);
  if (!terms) return {};
#define X(name, value, meaning) \
  if (shm::overload_of_terms(*terms) == (value)) return std::string(#name);
  LEAT_OVERLOADS(X)
#undef X
  return {};
}

Value standing(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  static constexpr const char* kWords[] = {"-", "waiting", "admitted", "silent", "open", "turns"};
  const auto value = record.value(StreamCounter::standing);
  return value && *value > 0 && *value < std::size(kWords) ? Value(std::string(kWords[*value])) : Value();
}

// Of a limit: unknown where there is none.
template <auto Counter>
Value user_max(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto value = record.value(Counter);
  return value && *value < UINT32_MAX ? Value(static_cast<double>(*value)) : Value();
}

constexpr Column kDaemon[] = {
    {"pid", "pid", "process", Unit::count, 8, 0, count<DaemonCounter::pid>},
    {"uptime_seconds", "up", "time since start", Unit::seconds, 8, 0, since<DaemonCounter::started_ns>},
    {"clients", "clients", "connected", Unit::count, 7, 0, count<DaemonCounter::clients>},
    {"streams", "streams", "open", Unit::count, 7, 0, count<DaemonCounter::streams>},
    {"memory_bytes", "memory", "shared memory held for clients", Unit::bytes, 8, 0, count<DaemonCounter::memory_bytes>},
    {"sessions", "conns", "connections: clients, observers, and who has not said hello", Unit::count, 5, 1,
     count<DaemonCounter::sessions>},
    {"clients_refused", "refused", "connections refused", Unit::count, 7, 1, count<DaemonCounter::clients_refused>},
    {"clients_violated", "violated", "connections ended for a violation", Unit::count, 8, 1,
     count<DaemonCounter::clients_violated>},
    {"accept_pauses", "pauses", "times accepting paused: no descriptor left, or a flood", Unit::count, 6, 2,
     count<DaemonCounter::accept_pauses>},
    {"sends_exhausted", "unsent", "messages that could not be sent for want of descriptors or memory", Unit::count, 6,
     2, count<DaemonCounter::sends_exhausted>},
    {"loops_per_second", "turns/s", "turns of the scheduler thread", Unit::rate, 8, 0, rate<DaemonCounter::loops>},
    {"parks_per_second", "parks/s", "times the scheduler thread went to sleep", Unit::rate, 8, 1,
     rate<DaemonCounter::parks>},
    {"wakes_per_second", "wakes/s", "system calls made to wake somebody", Unit::rate, 8, 1,
     rate<DaemonCounter::wakes_sent>},
    {"loop_us_p50", "turn p50", "time of a turn of the scheduler thread", Unit::us, 8, 0,
     quantile<Which::first, 50, kUs>},
    {"loop_us_p99", "p99", "time of a turn of the scheduler thread", Unit::us, 8, 0, quantile<Which::first, 99, kUs>},
    {"loop_us_max", "max", "longest turn since start", Unit::us, 8, 0, scaled<DaemonCounter::loop_ns_max, kUs>},
    {"loop_own_us_max", "own max", "longest turn, the scheduler thread's own CPU time, at most 100 us too much",
     Unit::us, 8, 1, scaled<DaemonCounter::loop_own_ns_max, kUs>},
    {"stalls", "stalls", "turns over 1 ms since start", Unit::count, 7, 0, count<DaemonCounter::stalls>},
    {"own_stalls", "own",
     "of them those over 1 ms of the thread's own CPU time: it was not only kept waiting for a core", Unit::count, 6, 1,
     count<DaemonCounter::own_stalls>},
    {"taken_us_p99", "taken p99", "time from a frame's capture to its being taken by the scheduler", Unit::us, 9, 1,
     quantile<Which::second, 99, kUs>},
    {"phase", "", "starting, serving, draining or stopping", Unit::text, 0, 0, daemon_phase},
    {"requests", "", "requests that open streams may have in flight", Unit::count, 0, 0,
     count<DaemonCounter::requests>},
    {"max_clients", "", "most clients", Unit::count, 0, 0, count<DaemonCounter::max_clients>},
    {"max_streams", "", "most streams", Unit::count, 0, 0, count<DaemonCounter::max_streams>},
    {"max_requests", "", "most requests in flight", Unit::count, 0, 0, count<DaemonCounter::max_requests>},
    {"max_memory_bytes", "", "most memory", Unit::count, 0, 0, count<DaemonCounter::max_memory_bytes>},
    {"retries", "", "tasks queued again after their partition was lost", Unit::count, 0, 0,
     count<DaemonCounter::retries>},
    {"idled_on_purpose", "", "decisions to leave a partition idle for who is about to need it", Unit::count, 0, 0,
     count<DaemonCounter::idled_on_purpose>},
    {"left_undecided", "", "requests that a policy had forgotten, answered all the same", Unit::count, 0, 0,
     count<DaemonCounter::left_undecided>},
    {"stale_events", "", "reports about what is no longer there", Unit::count, 0, 0,
     count<DaemonCounter::stale_events>},
    {"change_step", "", "step of a change while serving; 0: none is under way", Unit::count, 0, 0,
     count<DaemonCounter::change_step>},
    {"change_wave", "", "wave of that change", Unit::count, 0, 0, count<DaemonCounter::change_wave>},
    {"change_waves", "", "waves that it has", Unit::count, 0, 0, count<DaemonCounter::change_waves>},
    {"changes", "", "changes while serving that are in force", Unit::count, 0, 0, count<DaemonCounter::changes>},
    {"changes_failed", "", "changes while serving that were given up", Unit::count, 0, 0,
     count<DaemonCounter::changes_failed>},
};

#define LEAT_STREAM_FIGURES                                                                                             \
  {"submitted_per_second",        "sub/s", "requests taken from the client per second", Unit::rate, 7, 2,               \
   rate<StreamCounter::submitted>},                                                                                     \
      {"goodput_fps",                                                                                                   \
       "good/s",                                                                                                        \
       "completed by their deadline per second",                                                                        \
       Unit::rate,                                                                                                      \
       7,                                                                                                               \
       0,                                                                                                               \
       rate<StreamCounter::completed>},                                                                                 \
      {"miss_percent", "miss %", "late, dropped, failed and rejected among the answers", Unit::percent, 6, 1, misses},  \
      {"submitted", "submitted", "requests taken from the client", Unit::count, 9, 6, count<StreamCounter::submitted>}, \
      {"completed", "completed", "answered by their deadline", Unit::count, 9, 7, count<StreamCounter::completed>},     \
      {"late", "late", "answered after their deadline", Unit::count, 6, 4, count<StreamCounter::late>},                 \
      {"dropped", "dropped", "given up, see the reasons", Unit::count, 7, 3, count<StreamCounter::dropped>},            \
      {"failed", "failed", "started and not finished", Unit::count, 6, 5, count<StreamCounter::failed>},                \
      {"rejected", "rejected", "never admitted", Unit::count, 8, 5, count<StreamCounter::rejected>},                    \
      {"in_flight", "in flight", "submitted and not answered", Unit::count, 9, 3, count<StreamCounter::in_flight>},     \
      {"latency_ms_p50", "p50 ms", "capture to answer", Unit::ms, 7, 0, quantile<Which::first, 50, kMs>},               \
      {"latency_ms_p95", "p95 ms", "capture to answer", Unit::ms, 7, 3, quantile<Which::first, 95, kMs>},               \
      {"latency_ms_p99", "p99 ms", "capture to answer", Unit::ms, 7, 0, quantile<Which::first, 99, kMs>}, {             \
    "wait_ms_p99", "wait p99", "submission to first dispatch", Unit::ms, 8, 8, quantile<Which::second, 99, kMs>         \
  }

constexpr Column kTotal[] = {
    LEAT_STREAM_FIGURES,
    {"bytes_copied_per_frame", "copied", "bytes of a frame copied after the producer's write", Unit::bytes, 7, 9,
     ratio<StreamCounter::bytes_copied, StreamCounter::submitted>},
};
constexpr Column kStreams[] = {
    {"name", "stream", "name", Unit::text, 16, 0, label},
    {"client", "client", "the client's name", Unit::text, 0, 0, client_name},
    LEAT_STREAM_FIGURES,
    {"slo_ms", "slo ms", "objective, from capture to answer", Unit::ms, 7, 4, scaled<StreamCounter::slo_ns, kMs>},
    {"width", "width", "pixels", Unit::count, 0, 0, count<StreamCounter::width>},
    {"height", "height", "pixels", Unit::count, 0, 0, count<StreamCounter::height>},
    {"color", "", "range and matrix of its latest frame, and why", Unit::text, 0, 0, stream_color},
    {"damaged", "damaged", "frames that its client marked as damaged", Unit::count, 0, 0,
     count<StreamCounter::damaged>},
    {"slots", "slots", "frame slots", Unit::count, 0, 0, count<StreamCounter::slots>},
    {"depth", "depth", "requests that may wait or run at once", Unit::count, 0, 0, count<StreamCounter::depth>},
    {"priority", "", "background, normal, high or protected", Unit::text, 0, 0, stream_priority},
    {"overload", "", "its rule for when more comes than can be done", Unit::text, 0, 0, stream_overload},
    {"age_seconds", "", "time since it was opened", Unit::seconds, 0, 0, since<StreamCounter::opened_ns>},
    {"busy_percent", "", "of one partition, what its frames took in the window", Unit::percent, 0, 0,
     busy<StreamCounter::busy_ns>},
    {"within_share", "", "requests within their user's share, where users compete", Unit::count, 0, 0,
     count<StreamCounter::within_share>},
    {"standing", "coordinated",
     "coordinated: waiting (evicted or not yet admitted), admitted or silent; waits for grants: open (every frame is "
     "wanted) or turns",
     Unit::text, 11, 9, standing},
    {"offered", "", "waits for grants: frames that it had, submitted or not, by its client's word", Unit::count, 0, 0,
     count<StreamCounter::offered>},
    {"granted", "", "waits for grants: turns that it was given while there was no room for all", Unit::count, 0, 0,
     count<StreamCounter::granted>},
    {"interval", "every", "coordinated: frames from one that is sent to the next", Unit::count, 5, 9,
     count<StreamCounter::interval>},
    {"sla_drop_percent", "SLA %", "coordinated: accuracy that it may lose", Unit::percent, 5, 10,
     scaled<StreamCounter::sla_drop_ppm, kPercent>},
    {"planned_drop_percent", "plan %", "coordinated: accuracy that the plan loses, as estimated", Unit::percent, 6, 10,
     scaled<StreamCounter::planned_drop_ppm, kPercent>},
    {"measured_drop_percent", "lost %", "coordinated: accuracy lost in the last second, by what its client reported",
     Unit::percent, 6, 10, scaled<StreamCounter::measured_drop_ppm, kPercent>},
    {"margin_percent", "margin %", "coordinated: share of what it may lose that the plan leaves alone", Unit::percent,
     8, 11, scaled<StreamCounter::margin_ppm, kPercent>},
    {"task_group", "", "coordinated: its client's number of the group that it takes turns in", Unit::count, 0, 0,
     count<StreamCounter::task_group>},
    {"evictions", "evicted", "coordinated: times it had to make room", Unit::count, 7, 10,
     count<StreamCounter::evictions>},
    {"observations", "", "coordinated: reports of what tracking lost", Unit::count, 0, 0,
     count<StreamCounter::observations>},
    {"observations_ignored", "", "coordinated: reports out of range, or without an answer to speak of", Unit::count, 0,
     0, count<StreamCounter::observations_ignored>},
};
#undef LEAT_STREAM_FIGURES

constexpr Column kModules[] = {
    {"name", "module", "name", Unit::text, 16, 0, label},
    {"queued", "queued", "tasks waiting", Unit::count, 6, 0, count<ModuleCounter::queued>},
    {"running", "running", "tasks running", Unit::count, 7, 1, count<ModuleCounter::running>},
    {"tasks_per_second", "tasks/s", "tasks finished per second", Unit::rate, 8, 0, rate<ModuleCounter::tasks>},
    {"batches_per_second", "batch/s", "batches finished per second", Unit::rate, 8, 2, rate<ModuleCounter::batches>},
    {"batch_mean", "per batch", "tasks in a batch, since start", Unit::rate, 9, 2,
     ratio<ModuleCounter::tasks, ModuleCounter::batches>},
    {"queue_ms_p50", "queue p50", "time in the queue, ms", Unit::ms, 9, 4, quantile<Which::first, 50, kMs>},
    {"queue_ms_p99", "queue p99", "time in the queue, ms", Unit::ms, 9, 1, quantile<Which::first, 99, kMs>},
    {"run_ms_p50", "run p50", "time running, ms", Unit::ms, 8, 3, quantile<Which::second, 50, kMs>},
    {"run_ms_p99", "run p99", "time running, ms", Unit::ms, 8, 1, quantile<Which::second, 99, kMs>},
    {"tasks", "tasks", "tasks finished", Unit::count, 9, 6, count<ModuleCounter::tasks>},
    {"dropped", "dropped", "tasks given up here", Unit::count, 7, 2, count<ModuleCounter::dropped>},
    {"failed", "failed", "tasks failed here", Unit::count, 6, 3, count<ModuleCounter::failed>},
    {"left_out", "left out", "sub-requests over the fan-out cap", Unit::count, 8, 5, count<ModuleCounter::left_out>},
    {"squeezed", "squeezed", "tasks whose picture was too wide for the model, and squeezed", Unit::count, 8, 5,
     count<ModuleCounter::squeezed>},
    {"not_finite", "not finite", "tasks whose model answered NaN or infinity", Unit::count, 10, 5,
     count<ModuleCounter::not_finite>},
    {"arrived", "", "tasks that came here", Unit::count, 0, 0, count<ModuleCounter::arrived>},
    {"items", "", "rows of its batches", Unit::count, 0, 0, count<ModuleCounter::items>},
    {"busy_ns", "", "time of partitions that its batches took", Unit::count, 0, 0, count<ModuleCounter::busy_ns>},
    {"queue_ns", "", "time that tasks waited here", Unit::count, 0, 0, count<ModuleCounter::queue_ns>},
    {"oldest_seconds", "", "how long the task that waits longest has waited", Unit::seconds, 0, 0,
     since<ModuleCounter::oldest_ns>},
};

constexpr Column kPartitions[] = {
    {"name", "partition", "name", Unit::text, 16, 0, label},
    {"kind", "kind", "cpu, mig, mps, gpu or emulated", Unit::text, 8, 3, partition_kind},
    {"device", "GPU", "GPU or MIG device", Unit::text, 24, 3, partition_device},
    {"gpu_instance", "inst", "GPU instance, where it is a MIG device", Unit::count, 4, 7,
     partition_gpu<&GpuFacts::instance>},
    {"share_percent", "share %", "of the device's multiprocessors that it may use", Unit::count, 7, 5,
     partition_gpu<&GpuFacts::share_percent>},
    {"multiprocessors", "SMs", "multiprocessors that its worker sees", Unit::count, 4, 4,
     partition_gpu<&GpuFacts::multiprocessors>},
    {"device_bytes", "GPU mem", "device memory its worker has made, by its own account", Unit::bytes, 8, 3,
     partition_gpu<&GpuFacts::memory_bytes>},
    {"state", "state", "down, starting, up or lost", Unit::text, 8, 0, partition_state},
    {"pid", "pid", "its worker", Unit::count, 8, 4, count<PartitionCounter::pid>},
    {"cores", "cores", "cores it runs on", Unit::count, 5, 5, count<PartitionCounter::cores>},
    {"busy_percent", "busy %", "part of the window spent running batches", Unit::percent, 6, 0,
     busy<PartitionCounter::busy_ns>},
    {"batches_per_second", "batch/s", "batches finished per second", Unit::rate, 8, 1, rate<PartitionCounter::batches>},
    {"items_per_second", "items/s", "rows of those batches per second", Unit::rate, 8, 1,
     rate<PartitionCounter::items>},
    {"queued", "queued", "batches sent and not finished", Unit::count, 6, 2, count<PartitionCounter::queued>},
    {"batch_ms_p50", "batch p50", "time of a batch, ms", Unit::ms, 9, 2, quantile<Which::first, 50, kMs>},
    {"batch_ms_p99", "batch p99", "time of a batch, ms", Unit::ms, 9, 2, quantile<Which::first, 99, kMs>},
    {"gap_ms_p50", "gap p50", "time between batches, ms", Unit::ms, 8, 6, quantile<Which::second, 50, kMs>},
    {"overhead_us", "over us", "mean time a batch holds it besides running, us", Unit::us, 8, 6, overhead},
    {"batches", "batches", "batches finished", Unit::count, 8, 7, count<PartitionCounter::batches>},
    {"restarts", "restarts", "times its worker was started again", Unit::count, 8, 3,
     count<PartitionCounter::restarts>},
    {"backoff_ms", "backoff ms", "how long its worker is kept from starting again, while it is lost", Unit::count, 10,
     5, count<PartitionCounter::backoff_ms>},
    {"failures", "", "times that its worker ended in a row", Unit::count, 0, 0, count<PartitionCounter::failures>},
    {"end_status", "", "how its latest worker ended: its exit status, or 256 + its signal", Unit::count, 0, 0,
     count<PartitionCounter::end_status>},
};

constexpr Column kEdges[] = {
    {"name", "edge", "from stage to stage", Unit::text, 16, 0, label},
    {"transfers_per_second", "moves/s", "batches handed over per second", Unit::rate, 8, 0,
     rate<EdgeCounter::transfers>},
    {"way", "way", "between devices: in place, peer or host, as measured", Unit::text, 8, 1, edge_way},
    {"bytes_in_place", "in place", "bytes the next stage read where they were", Unit::bytes, 9, 0,
     count<EdgeCounter::bytes_in_place>},
    {"bytes_copied", "copied", "bytes copied on the way", Unit::bytes, 9, 0, count<EdgeCounter::bytes_copied>},
    {"slots_in_use", "in use", "feature slots written, waiting or read now", Unit::count, 6, 1,
     count<EdgeCounter::slots_in_use>},
    {"slots", "", "feature slots", Unit::count, 0, 0, count<EdgeCounter::slots>},
};

constexpr Column kUsers[] = {
    {"name", "user", "name, as this host knows the uid", Unit::text, 16, 0, user_name},
    {"uid", "uid", "number of the user", Unit::count, 0, 0, count<UserCounter::uid>},
    {"sessions", "conns", "connections: clients, observers, and who has not said hello", Unit::count, 5, 0,
     count<UserCounter::sessions>},
    {"clients", "clients", "clients", Unit::count, 7, 1, count<UserCounter::clients>},
    {"streams", "streams", "open streams", Unit::count, 7, 0, count<UserCounter::streams>},
    {"requests", "max in flight", "requests his streams may have in flight", Unit::count, 13, 2,
     count<UserCounter::requests>},
    {"in_flight", "in flight", "requests in flight", Unit::count, 9, 1, user_in_flight},
    {"memory_bytes", "memory", "shared memory held for him", Unit::bytes, 7, 1, count<UserCounter::memory_bytes>},
    {"descriptors", "fds", "file descriptors sent and not received yet", Unit::count, 5, 3,
     count<UserCounter::descriptors>},
    {"refused", "refused", "connections and requests refused", Unit::count, 8, 0, count<UserCounter::refused>},
    {"refused_per_second", "ref/s", "refusals per second", Unit::rate, 7, 2, rate<UserCounter::refused>},
    {"violated", "violated", "connections ended for a violation", Unit::count, 8, 1, count<UserCounter::violated>},
    {"last_refusal", "last refusal", "why he was refused last", Unit::text, 12, 1, user_last_refusal},
    {"last_refusal_seconds", "ago", "time since", Unit::seconds, 7, 4, since<UserCounter::last_refusal_ns>},
    {"max_sessions", "", "most connections", Unit::count, 0, 0, user_max<UserCounter::max_sessions>},
    {"max_streams", "", "most streams", Unit::count, 0, 0, user_max<UserCounter::max_streams>},
    {"max_requests", "", "most requests in flight", Unit::count, 0, 0, user_max<UserCounter::max_requests>},
    {"max_memory_bytes", "", "most memory", Unit::count, 0, 0, count<UserCounter::max_memory_bytes>},
    {"max_descriptors", "", "most descriptors in flight", Unit::count, 0, 0, count<UserCounter::max_descriptors>},
    {"max_priority", "", "highest priority", Unit::text, 0, 0, user_priority},
    {"least_slo", "", "shortest SLO", Unit::text, 0, 0, user_min_slo},
    {"overload", "", "overload rules allowed", Unit::text, 0, 0, user_rules},
    {"share", "share", "weight of his share of the partitions, beside others'", Unit::rate, 6, 2,
     scaled<UserCounter::share_permille, 1000>},
    {"within_share", "within", "requests of his open streams that were within it, where users compete", Unit::count, 8,
     3, user_within_share},
    {"submitted", "", "requests of all his streams ever", Unit::count, 0, 0, count<UserCounter::submitted>},
    {"good", "", "of them answered by their deadline", Unit::count, 0, 0, count<UserCounter::good>},
    {"missed", "", "of them answered otherwise", Unit::count, 0, 0, count<UserCounter::missed>},
    {"busy_ns", "", "time of partitions that they took", Unit::count, 0, 0, count<UserCounter::busy_ns>},
};

Json row_json(Pane pane, const Window& window, const RecordSnapshot& record) {
  Json row;
  const RecordSnapshot* before = earlier(window, record);
  for (const Column& column : columns_of(pane)) {
    const Value value = column.value(window, record, before);
    auto& cell = row[std::string(column.name)];
    if (const auto* number = std::get_if<double>(&value)) {
      cell = column.unit == Unit::count ? Json(std::llround(*number)) : Json(*number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      cell = *text;
    }
  }
  if (pane == Pane::users) {
    auto& refusals = row["refusals"] = Json::object();
    for (const ReasonCount& r : user_refusals(record)) refusals[std::string(r.name)] = r.count;
    auto& violations = row["violations"] = Json::object();
    for (const ReasonCount& r : user_violations(record)) violations[std::string(r.name)] = r.count;
  }
  return row;
}

Json table_json(Pane pane, const Window& window) {
  auto list = Json::array();
  for (const RecordSnapshot& record : records_of(pane, window.now)) list.push_back(row_json(pane, window, record));
  return list;
}

}  // namespace

std::span<const Column> columns_of(Pane pane) {
  switch (pane) {
    case Pane::daemon:
      return kDaemon;
    case Pane::total:
      return kTotal;
    case Pane::streams:
      return kStreams;
    case Pane::modules:
      return kModules;
    case Pane::partitions:
      return kPartitions;
    case Pane::edges:
      return kEdges;
    case Pane::users:
      return kUsers;
  }
  return {};
}

std::string_view name_of(Pane pane) {
  static constexpr std::string_view kNames[] = {"daemon",     "total", "streams", "modules",
                                                "partitions", "edges", "users"};
  return kNames[static_cast<std::size_t>(pane)];
}

std::span<const RecordSnapshot> records_of(Pane pane, const Sample& sample) {
  switch (pane) {
    case Pane::daemon:
      return sample.daemon ? std::span(&*sample.daemon, 1) : std::span<const RecordSnapshot>();
    case Pane::total:
      return sample.total ? std::span(&*sample.total, 1) : std::span<const RecordSnapshot>();
    case Pane::streams:
      return sample.streams;
    case Pane::modules:
      return sample.modules;
    case Pane::partitions:
      return sample.partitions;
    case Pane::edges:
      return sample.edges;
    case Pane::users:
      return sample.users;
  }
  return {};
}

std::string shown(const Value& value, Unit unit) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return "-";
  const double n = *number;
  char text[40];
  switch (unit) {
    case Unit::text:
    case Unit::count:
      std::snprintf(text, sizeof text, "%.0f", n);
      break;
    case Unit::bytes: {
      static constexpr const char* kSizes[] = {"", "K", "M", "G", "T"};
      double size = n;
      std::size_t i = 0;
      for (; size >= 9999.5 && i + 1 < std::size(kSizes); ++i) size /= 1024;
      std::snprintf(text, sizeof text, "%.0f%s", size, kSizes[i]);
      break;
    }
    case Unit::seconds: {
      const auto s = static_cast<long long>(n);
      if (s < 3600) {
        std::snprintf(text, sizeof text, "%lld:%02lld", s / 60, s % 60);
      } else {
        std::snprintf(text, sizeof text, "%lldh%02lld", s / 3600, s / 60 % 60);
      }
      break;
    }
    case Unit::rate:
    case Unit::ms:
    case Unit::us:
    case Unit::percent:
      std::snprintf(text, sizeof text, n < 9.995 ? "%.2f" : n < 999.95 ? "%.1f" : "%.0f", n);
      break;
  }
  return text;
}

std::vector<ReasonCount> reasons(const Sample& sample) {
  std::vector<ReasonCount> found;
  if (!sample.total) return found;
  for (std::size_t r = 1; r < kReasonCount; ++r) {
    const auto reason = static_cast<Reason>(r);
    const std::uint64_t n = sample.total->causes[r];
    if (n > 0 && n != shm::kUnknown) found.push_back({name_of(reason), text_of(reason), n});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const ReasonCount& a, const ReasonCount& b) { return a.count > b.count; });
  return found;
}

std::string top_json(const Window& window) {
  Json json;
  json["window_seconds"] = window.seconds();
  for (const Pane pane : {Pane::daemon, Pane::total}) {
    auto& object = json[std::string(name_of(pane))];
    for (const RecordSnapshot& record : records_of(pane, window.now)) object = row_json(pane, window, record);
  }
  if (json["total"].is_object()) {
    auto& by_reason = json["total"]["reasons"] = Json::object();
    for (const ReasonCount& reason : reasons(window.now)) by_reason[std::string(reason.name)] = reason.count;
  }
  for (const Pane pane : kTables) json[std::string(name_of(pane))] = table_json(pane, window);
  return json.dump(2) + "\n";
}

std::string users_json(const Window& window) { return table_json(Pane::users, window).dump(2) + "\n"; }

std::string column_help() {
  std::string out;
  for (const Pane pane :
       {Pane::daemon, Pane::total, Pane::streams, Pane::modules, Pane::partitions, Pane::edges, Pane::users}) {
    out += std::string(name_of(pane)) + "\n";
    for (const Column& column : columns_of(pane)) {
      std::string head = "  " + std::string(column.title);
      head.resize(std::max<std::size_t>(head.size() + 1, 14), ' ');
      head += column.name;
      head.resize(std::max<std::size_t>(head.size() + 1, 38), ' ');
      out += head + std::string(column.text) + "\n";
    }
  }
  return out;
}

}  // namespace leat::tools
