// The counters segment: what `leat top` and `leat status` read, without a lock and without asking anybody.
//
// One record per thing counted (the total, a stream, a module, a partition, ...). A record has a label, up to 40
// values, up to 64 causes (of streams and the total: reasons) and two latency histograms. Which value means what
// is in the tables below, and nowhere else.
//   * Each record is written by one thread. Values are relaxed atomics; a writer brackets what must be seen together
//     (a ledger) with Update, and a reader's snapshot is taken between brackets.
//   * A value never set reads as unknown, not as zero.
//   * Labels are written before the record's state is release-stored; a reader acquires the state first.
// The segment is sealed FUTURE_WRITE: readers, of whatever user, cannot write it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/outcome.h"
#include "leat/result.hpp"
#include "shm/src/protocol/color.h"
#include "shm/src/rings/fences.h"
#include "shm/src/segments/segment.h"
#include "shm/src/segments/segment_layout.h"

// X(name, gauge, text): gauge 1 = a current value, 0 = counts up since the record began.
#define LEAT_STREAM_COUNTERS(X)                                                 \
  X(submitted, 0, "requests taken from the client")                             \
  X(completed, 0, "answered by their deadline")                                 \
  X(late, 0, "answered after their deadline")                                   \
  X(dropped, 0, "given up; by reason in the causes")                            \
  X(failed, 0, "started and not finished; by reason in the causes")             \
  X(rejected, 0, "never admitted; by reason in the causes")                     \
  X(in_flight, 1, "submitted and not answered")                                 \
  X(within_share, 0, "requests within their user's share, where users compete") \
  X(bytes_in, 0, "bytes of the frames submitted")                               \
  X(bytes_copied, 0, "bytes of frames copied after the producer's write")       \
  X(slots, 1, "frame slots of the stream")                                      \
  X(depth, 1, "requests that may wait or run at once")                          \
  X(slo_ns, 1, "objective, from capture to answer")                             \
  X(period_ns, 1, "declared period")                                            \
  X(client, 1, "index of the client's record")                                  \
  X(width, 1, "pixels")                                                         \
  X(height, 1, "pixels")                                                        \
  X(format, 1, "leat_format")                                                   \
  X(last_answer_ns, 1, "time of the latest answer, CLOCK_MONOTONIC")            \
  X(standing, 1, "coordinated, or waits for grants: leat_standing")             \
  X(interval, 1, "coordinated: frames from one sent to the next")               \
  X(sla_drop_ppm, 1, "coordinated: accuracy it may lose, millionths")           \
  X(planned_drop_ppm, 1, "coordinated: what the plan loses, estimated")         \
  X(measured_drop_ppm, 1, "coordinated: lost in the last second")               \
  X(evictions, 1, "coordinated: times it had to make room")                     \
  X(observations, 0, "reports of what tracking lost")                           \
  X(observations_ignored, 0, "reports out of range, or without an answer")      \
  X(margin_ppm, 1, "coordinated: share of the SLA that is left alone")          \
  X(task_group, 1, "coordinated: its client's number of the group of tasks")    \
  X(offered, 0, "waits for grants: frames that it had, by its client's word")   \
  X(granted, 0, "waits for grants: turns that it was given")                    \
  X(opened_ns, 1, "when it was opened, CLOCK_MONOTONIC")                        \
  X(terms, 1, "priority, and the overload rule above: see terms_of()")          \
  X(busy_ns, 0, "time of partitions that its frames took")                      \
  X(damaged, 0, "frames that its client marked as damaged")                     \
  X(color, 1, "color range and matrix of its latest frame: see ColorFact")

#define LEAT_CLIENT_COUNTERS(X)                             \
  X(pid, 1, "process, as the kernel told at connect")       \
  X(uid, 1, "user, as the kernel told at connect")          \
  X(streams, 1, "open streams")                             \
  X(memory_bytes, 1, "shared memory held for it")           \
  X(submissions, 0, "descriptors taken")                    \
  X(late_cancels, 0, "cancels of what was answered")        \
  X(completions, 0, "answers given")                        \
  X(connected_ns, 1, "time of connection, CLOCK_MONOTONIC") \
  X(user, 1, "index of the record of the user it counts as")

// A user (uid; subordinate uids count as their login). What he has, what he may have (max_*), and what was refused him:
// the causes of his record hold refusals (Refusal) and, from kViolationCauses on, the violations his connections were
// ended for.
#define LEAT_USER_COUNTERS(X)                                                      \
  X(uid, 1, "user, as the kernel told at connect")                                 \
  X(sessions, 1, "connections: clients, observers, and who has not said hello")    \
  X(clients, 1, "clients")                                                         \
  X(streams, 1, "open streams")                                                    \
  X(requests, 1, "requests his streams may have in flight: their depths together") \
  X(memory_bytes, 1, "shared memory held for him")                                 \
  X(descriptors, 1, "file descriptors sent and not received yet")                  \
  X(max_sessions, 1, "most sessions")                                              \
  X(max_streams, 1, "most streams")                                                \
  X(max_requests, 1, "most requests in flight")                                    \
  X(max_memory_bytes, 1, "most memory")                                            \
  X(max_descriptors, 1, "most descriptors in flight")                              \
  X(max_priority, 1, "highest priority, leat_priority")                            \
  X(min_slo_ns, 1, "shortest SLO; kQuarterSlo: a quarter of the application's")    \
  X(overload_set, 1, "bit 1 << leat_overload for each rule allowed")               \
  X(share_permille, 1, "weight of his share of the partitions, in thousandths")    \
  X(refused, 0, "requests and connections refused; by Refusal in the causes")      \
  X(violated, 0, "connections ended for a violation; by Violation in the causes")  \
  X(last_refusal, 1, "Refusal of the latest")                                      \
  X(last_refusal_ns, 1, "when, CLOCK_MONOTONIC")                                   \
  X(submitted, 0, "requests of all his streams ever")                              \
  X(good, 0, "of them answered by their deadline")                                 \
  X(missed, 0, "of them answered otherwise")                                       \
  X(busy_ns, 0, "time of partitions that they took")

// LEAT_REFUSALS(X): X(name, value, text). Why leatd said no to a user; the text is the operator's.
#define LEAT_REFUSALS(X)                                                                     \
  X(none, 0, "none")                                                                         \
  X(not_allowed, 1, "not among allow_uids and allow_gids")                                   \
  X(sessions, 2, "more connections than limits.user sessions")                               \
  X(table_full, 3, "every connection leatd has room for is taken")                           \
  X(displaced, 4, "an observer gave way to a newer connection of the same user")             \
  X(silent, 5, "no hello within limits.handshake_timeout_ms")                                \
  X(clients, 6, "more clients than limits.clients")                                          \
  X(streams, 7, "more streams than limits.user streams or limits.streams")                   \
  X(requests, 8, "more requests in flight than limits.user requests")                        \
  X(memory, 9, "more memory than limits.user memory_mib, client_memory_mib or memory_mib")   \
  X(descriptors, 10, "descriptors that were sent are not received: limits.user descriptors") \
  X(priority, 11, "a priority above limits.user priority")                                   \
  X(slo, 12, "an SLO below limits.user min_slo_ms")                                          \
  X(overload, 13, "an overload rule that is not in limits.user overload")                    \
  X(bad_stream, 14, "a stream that cannot be: no such application, format or slots")         \
  X(no_files, 15, "leatd has few file descriptors left")                                     \
  X(no_memory, 16, "memory could not be had")                                                \
  X(not_ready, 17, "leatd was starting or stopping")                                         \
  X(repeated, 18, "asked twice for what a connection gets once")                             \
  X(accuracy, 19, "a coordinated stream, where limits.user coordinated_share is 0")          \
  X(dear_wakes, 20, "a moment ago his sockets took long to wake")

// The causes of its record: answers that were given up here, by Reason.
#define LEAT_MODULE_COUNTERS(X)                                                  \
  X(queued, 1, "tasks waiting")                                                  \
  X(running, 1, "tasks running")                                                 \
  X(tasks, 0, "tasks finished")                                                  \
  X(batches, 0, "batches finished")                                              \
  X(dropped, 0, "tasks given up here")                                           \
  X(failed, 0, "tasks failed here")                                              \
  X(left_out, 0, "sub-requests over the fan-out cap, not run")                   \
  X(application, 1, "index of its application")                                  \
  X(squeezed, 0, "tasks whose picture was too wide for the model, and squeezed") \
  X(arrived, 0, "tasks that came here")                                          \
  X(items, 0, "rows of its batches")                                             \
  X(queue_ns, 0, "time that tasks waited here")                                  \
  X(busy_ns, 0, "time of partitions that its batches took")                      \
  X(oldest_ns, 1, "when the task that waits longest came here; 0: none waits")   \
  X(not_finite, 0, "tasks whose model answered NaN or infinity")

// The causes of its record: nanoseconds that batches of the first kMaxCauses modules took, by module.
#define LEAT_PARTITION_COUNTERS(X)                                                       \
  X(state, 1, "0 down, 1 starting, 2 up, 3 lost, backing off")                           \
  X(kind, 1, "number of its row in planner/partition_kind.h")                            \
  X(pid, 1, "its worker")                                                                \
  X(cores, 1, "cores it runs on")                                                        \
  X(queued, 1, "batches sent and not finished")                                          \
  X(batches, 0, "batches finished")                                                      \
  X(items, 0, "rows of those batches")                                                   \
  X(busy_ns, 0, "time spent running batches")                                            \
  X(overhead_ns, 0, "time they held it besides: wakes, reports")                         \
  X(restarts, 0, "times its worker was started again")                                   \
  X(started_ns, 1, "when its worker became ready, CLOCK_MONOTONIC")                      \
  X(backoff_ms, 1, "how long its worker is kept from starting again, while it is lost")  \
  X(running_since_ns, 1, "since when a batch runs, CLOCK_MONOTONIC; 0: none does")       \
  X(running_module, 1, "the module of the batch that began last")                        \
  X(lost_ns, 1, "when it was lost last, CLOCK_MONOTONIC")                                \
  X(next_start_ns, 1, "when its worker starts again, while it is lost, CLOCK_MONOTONIC") \
  X(failures, 1, "times that its worker ended in a row")                                 \
  X(device_bytes, 1, "device memory that its worker has made, by its own account")       \
  X(end_status, 1, "how its latest worker ended: its exit status, or 256 + its signal")

#define LEAT_EDGE_COUNTERS(X)                                       \
  X(transfers, 0, "batches handed over")                            \
  X(bytes_in_place, 0, "bytes the next stage read where they were") \
  X(bytes_copied, 0, "bytes copied on the way")                     \
  X(slots_in_use, 1, "feature slots written, waiting or read now")  \
  X(slots, 1, "feature slots")

#define LEAT_DAEMON_COUNTERS(X)                                                              \
  X(pid, 1, "leatd")                                                                         \
  X(started_ns, 1, "start, CLOCK_MONOTONIC")                                                 \
  X(loops, 0, "turns of the scheduler thread")                                               \
  X(loops_with_work, 0, "turns that found something to do")                                  \
  X(parks, 0, "times the scheduler thread went to sleep")                                    \
  X(stalls, 0, "turns that took over 1 ms")                                                  \
  X(own_stalls, 0, "turns that took over 1 ms of the thread's own CPU time")                 \
  X(loop_ns_max, 1, "longest turn")                                                          \
  X(loop_own_ns_max, 1, "longest turn, the thread's own CPU time")                           \
  X(clients, 1, "connected")                                                                 \
  X(clients_accepted, 0, "connections accepted")                                             \
  X(clients_refused, 0, "connections refused")                                               \
  X(sessions, 1, "connections: clients, observers, and who has not said hello")              \
  X(accept_pauses, 0, "times accepting paused: no descriptor left, or a flood")              \
  X(sends_exhausted, 0, "messages that could not be sent for want of descriptors or memory") \
  X(clients_violated, 0, "connections ended for a violation; by cause in the causes")        \
  X(streams, 1, "open")                                                                      \
  X(memory_bytes, 1, "shared memory held for clients")                                       \
  X(wakes_sent, 0, "system calls made to wake somebody")                                     \
  X(events_lost, 0, "segments of the record that its file lacks")                            \
  X(phase, 1, "0 starting, 1 serving, 2 draining, 3 stopping")                               \
  X(max_clients, 1, "limits.clients")                                                        \
  X(max_streams, 1, "limits.streams")                                                        \
  X(max_requests, 1, "limits.requests")                                                      \
  X(max_memory_bytes, 1, "limits.memory_mib")                                                \
  X(requests, 1, "requests that open streams may have in flight")                            \
  X(retries, 0, "tasks queued again after their partition was lost")                         \
  X(idled_on_purpose, 0, "decisions to leave a partition idle for who is about to need it")  \
  X(left_undecided, 0, "requests that a policy had forgotten, answered all the same")        \
  X(stale_events, 0, "reports about what is no longer there, ignored")                       \
  X(change_step, 1, "of a change while serving; 0: none is under way")                       \
  X(change_wave, 1, "of its waves, the one that starts or was last")                         \
  X(change_waves, 1, "of partitions that get other workers")                                 \
  X(changes, 0, "changes while serving that are in force")                                   \
  X(changes_failed, 0, "changes while serving that were given up")

namespace leat::shm {

#define X(name, gauge, text) name,
enum class StreamCounter : std::uint8_t { LEAT_STREAM_COUNTERS(X) count_ };
enum class ClientCounter : std::uint8_t { LEAT_CLIENT_COUNTERS(X) count_ };
enum class ModuleCounter : std::uint8_t { LEAT_MODULE_COUNTERS(X) count_ };
enum class PartitionCounter : std::uint8_t { LEAT_PARTITION_COUNTERS(X) count_ };
enum class EdgeCounter : std::uint8_t { LEAT_EDGE_COUNTERS(X) count_ };
enum class UserCounter : std::uint8_t { LEAT_USER_COUNTERS(X) count_ };
enum class DaemonCounter : std::uint8_t { LEAT_DAEMON_COUNTERS(X) count_ };
#undef X

enum class Refusal : std::uint8_t {
#define X(name, value, text) name = value,
  LEAT_REFUSALS(X)
#undef X
};
std::string_view name_of(Refusal refusal) noexcept;
std::string_view text_of(Refusal refusal) noexcept;
inline constexpr std::uint32_t kRefusals = 32;  // room in a user's causes
inline constexpr std::uint64_t kQuarterSlo = UINT64_MAX - 1;
inline constexpr std::uint32_t kViolationCauses = 32;  // where the violations begin there

enum class RecordKind : std::uint8_t { daemon, total, client, stream, module, partition, edge, user, count_ };
inline constexpr std::uint32_t kRecordKinds = static_cast<std::uint32_t>(RecordKind::count_);
// Most records of each kind, in the order of RecordKind. `total` has the streams' counters, over all streams ever.
inline constexpr std::array<std::uint32_t, kRecordKinds> kMaxRecords = {1, 1, 64, 256, 128, 128, 128, 128};

struct CounterName {
  std::string_view name;
  bool gauge;
  std::string_view text;
};
std::span<const CounterName> counter_names(RecordKind kind) noexcept;  // in the order of the values
std::string_view name_of(RecordKind kind) noexcept;                    // "daemon", "total", "client", ...

// StreamCounter::terms: leat_priority and leat_overload in one word.
constexpr std::uint64_t terms_of(std::uint32_t priority, std::uint32_t overload) noexcept {
  return priority | std::uint64_t{overload} << 8;
}
constexpr std::uint32_t priority_of_terms(std::uint64_t terms) noexcept { return terms & 0xff; }
constexpr std::uint32_t overload_of_terms(std::uint64_t terms) noexcept { return terms >> 8 & 0xff; }

// StreamCounter::color: what the latest frame was served with, and which of it was stated rather than the default
// rule's. of_bitstream: what is not stated may be stated by the bitstream, which its decoder alone reads.
struct ColorFact {
  Color color;
  bool range_stated = false, matrix_stated = false, of_bitstream = false;
  bool operator==(const ColorFact&) const = default;
};
constexpr std::uint64_t to_counter(const ColorFact& f) noexcept {
  return std::uint64_t{f.color.range} | std::uint64_t{f.color.matrix} << 8 | std::uint64_t{f.range_stated} << 16 |
         std::uint64_t{f.matrix_stated} << 17 | std::uint64_t{f.of_bitstream} << 18;
}
constexpr ColorFact color_fact(std::uint64_t value) noexcept {
  return {{static_cast<std::uint8_t>(value & 0xff), static_cast<std::uint8_t>(value >> 8 & 0xff)},
          (value >> 16 & 1) != 0,
          (value >> 17 & 1) != 0,
          (value >> 18 & 1) != 0};
}
constexpr ColorFact color_fact_of(Color stated, std::uint32_t format, std::uint32_t height, bool bitstream) noexcept {
  return {color_of(stated, {}, format, height), stated.range != LEAT_COLOR_RANGE_unspecified,
          stated.matrix != LEAT_COLOR_MATRIX_unspecified, bitstream};
}

// The histograms of a record and what they mean, by kind: first, second.
//   total, stream: capture to answer; submission to first dispatch     module: time in queue; time running
//   partition: time of a batch; time between batches                   daemon: time of a turn; age of a frame when
//   taken
enum class Which : std::uint8_t { first, second };

// Log buckets, 16 per octave: relative error at most 1/32. Values in nanoseconds, from 1 us (below: first bucket) to
// 68 s (above: last bucket).
inline constexpr std::uint32_t kSubBuckets = 16;
inline constexpr std::uint32_t kLowestOctave = 10;
inline constexpr std::uint32_t kOctaves = 26;
inline constexpr std::uint32_t kBuckets = kSubBuckets * kOctaves;
std::uint32_t bucket_of(std::uint64_t ns) noexcept;
std::uint64_t bucket_low_ns(
    std::uint32_t bucket) noexcept;  // smallest value of the bucket; bucket_low_ns(kBuckets): the end

inline constexpr std::uint32_t kMaxValues = 40;
inline constexpr std::uint32_t kMaxCauses = 64;
inline constexpr std::uint64_t kUnknown = UINT64_MAX;
static_assert(kReasonCount <= kMaxCauses);

enum class RecordState : std::uint32_t { unused = 0, live = 1, ended = 2 };

struct alignas(kLine) RecordLayout {
  std::uint32_t state;    // RecordState
  std::uint32_t version;  // odd while its writer is between begin and end of an Update
  std::uint32_t epoch;    // raised each time the record is begun anew
  std::uint32_t reserved;
  char label[112];  // NUL-terminated; written before `state`
  std::uint64_t values[kMaxValues];
  std::uint64_t causes[kMaxCauses];
  std::uint64_t buckets[2][kBuckets];
};
static_assert(sizeof(RecordLayout) % kLine == 0);

// ---- flight recorder: the latest events, always on ----
#define LEAT_EVENTS(X)                                                              \
  X(none, 0)                                                                        \
  X(submitted, 1)      /* stream, a = slot, token */                                \
  X(dispatched, 2)     /* a = batch, b = partition, token; c = module */            \
  X(stage_finished, 4) /* a = batch, b = partition, c = stage */                    \
  X(answered, 5)       /* stream, a = outcome, b = reason, token; c = latency_ns */ \
  X(stream_opened, 6)  /* stream, a = client */                                     \
  X(stream_closed, 7)                                                               \
  X(client_connected, 8) /* a = client, b = uid, token = pid */                     \
  X(client_gone, 9)      /* a = client */                                           \
  X(violation, 10)       /* a = client, b = cause */                                \
  X(worker_ready, 11)    /* a = partition, token = pid */                           \
  X(worker_lost, 12)     /* a = partition, token = the pid it had */                \
  X(stall, 13)           /* c = ns of the turn */                                   \
  X(cancelled, 14)       /* stream, token */                                        \
  X(plan_replaced, 15)                                                              \
  X(refused, 16)       /* a = user's record, b = Refusal; ten a second at most */   \
  X(worker_failed, 17) /* before it was ready: a = partition, b = end_status */

enum class EventKind : std::uint32_t {
#define X(name, value) name = value,
  LEAT_EVENTS(X)
#undef X
};
std::string_view name_of(EventKind kind) noexcept;

struct alignas(kLine) Event {
  std::uint64_t sequence = 0;  // n + 1 for the n-th event; 0 while being written
  std::int64_t at_ns = 0;
  EventKind kind = EventKind::none;
  std::uint32_t stream = UINT32_MAX;
  std::uint64_t token = 0;
  std::uint64_t a = 0, b = 0, c = 0;
  std::uint64_t reserved = 0;
};
static_assert(sizeof(Event) == kLine);
inline constexpr std::uint32_t kEvents = 32768;  // a power of two

struct CountersLayout {
  std::array<std::uint64_t, kRecordKinds> offset{};
  std::uint64_t events_head = 0;  // one line: the number of events ever written
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
};
constexpr CountersLayout counters_layout() noexcept {
  CountersLayout l{};
  std::uint64_t at = sizeof(SegmentHeader);
  for (std::uint32_t k = 0; k < kRecordKinds; ++k) {
    l.offset[k] = at;
    at += kMaxRecords[k] * sizeof(RecordLayout);
  }
  l.events_head = at;
  l.events = round_up(at + kLine, kPage);
  l.bytes = l.events + kEvents * sizeof(Event);
  return l;
}

// A record being written. A cheap view; one thread writes a record. An empty one swallows everything (tables full).
class Record {
 public:
  Record() = default;
  explicit Record(RecordLayout* layout) noexcept : r_(layout) {}
  explicit operator bool() const noexcept { return r_ != nullptr; }

  template <class Counter>
  void add(Counter c, std::uint64_t n = 1) noexcept {
    if (r_) bump(r_->values[static_cast<std::size_t>(c)], n);
  }
  template <class Counter>
  void set(Counter c, std::uint64_t value) noexcept {
    if (r_) atomic_ref(r_->values[static_cast<std::size_t>(c)]).store(value, std::memory_order_relaxed);
  }
  // As it is now, for the process that writes it; 0 when unknown.
  template <class Counter>
  [[nodiscard]] std::uint64_t value(Counter c) const noexcept {
    const std::uint64_t v =
        r_ ? atomic_ref(r_->values[static_cast<std::size_t>(c)]).load(std::memory_order_relaxed) : kUnknown;
    return v == kUnknown ? 0 : v;
  }
  void cause(std::uint32_t index, std::uint64_t n = 1) noexcept {
    if (r_ && index < kMaxCauses) bump(r_->causes[index], n);
  }
  void cause(Reason reason, std::uint64_t n = 1) noexcept { cause(static_cast<std::uint32_t>(reason), n); }
  void observe(Which which, std::int64_t ns) noexcept {
    if (r_)
      bump(r_->buckets[static_cast<std::size_t>(which)][bucket_of(ns < 0 ? 0 : static_cast<std::uint64_t>(ns))], 1);
  }

  // Everything written between construction and destruction is seen together by a snapshot.
  class Update {
   public:
    explicit Update(Record& record) noexcept : r_(record.r_) {
      if (!r_) return;
      atomic_ref version(r_->version);
      version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      release_fence();  // the odd version before the values; partner: the acquire fence in CountersReader::snapshot
    }
    ~Update() {
      if (!r_) return;
      atomic_ref version(r_->version);
      // release: the values before the even version; partner: the first load in CountersReader::snapshot.
      version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    Update(const Update&) = delete;
    Update& operator=(const Update&) = delete;

   private:
    RecordLayout* r_;
  };

 private:
  // One writer: a relaxed load and store, no locked instruction. Unknown counts as zero here.
  static void bump(std::uint64_t& value, std::uint64_t n) noexcept {
    atomic_ref ref(value);
    const std::uint64_t old = ref.load(std::memory_order_relaxed);
    ref.store(old == kUnknown ? n : old + n, std::memory_order_relaxed);
  }
  RecordLayout* r_ = nullptr;
};

// The daemon's side. begin() and end() from one thread at a time; each record from its own one thread.
class CountersWriter {
 public:
  static Result<CountersWriter> create();

  // Begins record `index` of a kind: counters 0, gauges unknown, histograms empty, label as given (cut at 111 bytes).
  // An index out of range gives an empty Record.
  Record begin(RecordKind kind, std::uint32_t index, std::string_view label) noexcept;
  void end(RecordKind kind, std::uint32_t index) noexcept;  // its last values stay readable until begun anew
  Record record(RecordKind kind, std::uint32_t index) noexcept;

  void event(const Event& event) noexcept;  // one thread: the scheduler's. `sequence` is filled in

  Result<Fd> share() const { return segment_.share_read_only(); }
  std::uint64_t bytes() const noexcept { return segment_.bytes(); }
  RecordLayout* at(RecordKind kind, std::uint32_t index) const noexcept;  // where it lies; null: out of range

 private:
  Segment segment_;
};

// A record as read: plain values.
struct RecordSnapshot {
  RecordKind kind = RecordKind::daemon;
  std::uint32_t index = 0;
  std::uint32_t epoch = 0;
  bool live = false;     // false: ended
  bool together = true;  // false: its writer was busy at every try; the values are each right, but of different moments
  std::string label;
  std::array<std::uint64_t, kMaxValues> values{};
  std::array<std::uint64_t, kMaxCauses> causes{};
  std::array<std::vector<std::uint64_t>, 2> buckets;

  template <class Counter>
  std::optional<std::uint64_t> value(Counter c) const {
    const std::uint64_t v = values[static_cast<std::size_t>(c)];
    return v == kUnknown ? std::nullopt : std::optional(v);
  }
  std::uint64_t observations(Which which) const;
  // The q-quantile (0..1) in nanoseconds, interpolated within its bucket; unknown when nothing was observed.
  std::optional<double> quantile_ns(Which which, double q) const;
};

// Anybody's side. Thread rule: one thread per reader.
class CountersReader {
 public:
  CountersReader() = default;
  // `bytes` as told over the socket. Refuses another layout version. A view (counters_view.h) has no events.
  static Result<CountersReader> map(Fd fd, std::uint64_t bytes);
  // Empty: the record was never used. Looks again so often while its writer is busy.
  std::optional<RecordSnapshot> snapshot(RecordKind kind, std::uint32_t index, int tries = 1000) const;
  std::vector<RecordSnapshot> live(RecordKind kind) const;
  // Events from sequence number `from` on (0-based), at most out.size(), oldest first; *next: where to go on.
  // Events already overwritten are skipped.
  std::uint32_t events(std::uint64_t from, std::span<Event> out, std::uint64_t* next) const;

 private:
  Mapping memory_;
};

}  // namespace leat::shm
