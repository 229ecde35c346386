// The ledger: streams, requests, how far each has come through its application's DAG, and the answers. Every submission
// is answered exactly once, here; submitted = completed + late + dropped + failed + rejected + in flight, always.
//
// It knows nothing of queues, partitions and policies. Only the scheduler's own flows (submission.cpp, completion.cpp)
// change it; a policy sees it constant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/core/counters.h"
#include "engine/core/ledger/actions.h"
#include "engine/core/ledger/quarantine.h"
#include "engine/core/ledger/served_up_to.h"
#include "engine/core/queue/pool.h"
#include "engine/core/queue/task.h"
#include "engine/core/scheduler.h"
#include "engine/core/snapshot.h"

namespace leat::core {

inline constexpr std::uint32_t kPriorities = 4;
// A task's level: its class, and above every class whether its request is within its user's share (shares.h).
inline constexpr std::uint32_t kLevels = 2 * kPriorities;
[[nodiscard]] inline std::uint8_t class_of(std::uint8_t level) noexcept { return level % kPriorities; }

struct Stream {
  StreamConfig config;
  bool open = false;
  std::uint32_t live = 0;                     // requests waiting or running
  std::uint32_t first = kNone, last = kNone;  // its requests, by arrival
  TimeNs accepted_capture_ns = INT64_MIN;     // of its latest request
  TimeNs gap_ns = 0;                          // between that and the one before
  ServedUpTo served;                          // by its requests of which something was sent
  TimeNs newest_capture_ns = INT64_MIN;
  TimeNs next_expected_ns = kNever;  // periodic: when its next request should come
  TimeNs transit_ns = 0;             // periodic: least time from capture to arrival seen lately
  TimeNs covered_ns = 0;             // periodic: end of the last window in which a fresh result was delivered
  std::uint64_t misses = 0;          // weakly hard: the last 64 requests, bit set: missed
};

// What is looked at while it is on its way stands in the first of its two cache lines.
struct alignas(64) Request {
  StreamId stream = kNone;
  std::uint32_t tasks = kNone;                   // list of its live tasks
  std::uint32_t placed = 0;                      // of them in a batch that was sent
  std::uint32_t previous = kNone, next = kNone;  // of its stream
  std::uint16_t modules_left = 0;
  bool started = false;       // some task was sent
  bool within_share = false;  // of its user, where users compete
  Company company = Company::anybody;
  std::uint8_t deaths = 0;          // partitions lost while they ran some task of it; from the first on it runs alone
  Outcome doom = Outcome::pending;  // decided, answered once nothing of it runs any more
  Reason doom_reason = Reason::none;
  ModuleId doom_where = kNone;
  TimeNs capture_ns = 0, deadline_ns = 0, give_up_ns = 0;
  std::uint64_t token = 0;

  std::uint64_t branch_draw = 0;
  std::uint32_t items = 1, key = 0;
  std::uint32_t death = 0;  // which loss was the last
  std::uint32_t application = 0;
  bool competes = false;     // what it takes is counted for its user (shares.h)
  bool dear = false;         // its user's take more than planned
  bool gated = false;        // its tasks pass one at a time (queue/gate.h)
  std::uint8_t grant = 255;  // as what it counts among those that were granted (grants/grants.h)
  TimeNs charged_ns = 0;     // to its user's share when it came
  double spent_ns = 0;       // what its batches took, in the same measure

  // When the core answers what its scheduler has left undecided: as long after its end as it had until then.
  [[nodiscard]] TimeNs overdue_ns() const noexcept {
    return give_up_ns == kNever ? kNever : 2 * give_up_ns - capture_ns;
  }
};

struct Progress {                 // of one request at one module of its application
  std::uint16_t before_left = 0;  // predecessors not complete
  std::uint16_t tasks_left = 0;
  std::uint32_t made = 0;     // sub-requests its tasks made
  std::uint32_t offered = 0;  // sub-requests its predecessors made
  bool fed = false;           // some predecessor ran (was not skipped)
};

class Ledger {
 public:
  Ledger(const Limits& limits, const Topology& topology, Actions& actions);

  // ---- to read ----
  [[nodiscard]] const Stream& stream(StreamId id) const noexcept { return streams_[id]; }
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }
  [[nodiscard]] bool open(StreamId id) const noexcept { return id < streams_.size() && streams_[id].open; }
  [[nodiscard]] const Request& request(std::uint32_t id) const noexcept { return requests_[id]; }
  [[nodiscard]] RequestHandle handle(std::uint32_t id) const noexcept { return {id, requests_.generation(id)}; }
  [[nodiscard]] bool valid(RequestHandle h) const noexcept { return requests_.valid(h.index, h.generation); }
  // Open periodic streams of applications of one module that have submitted something.
  [[nodiscard]] const std::vector<StreamId>& periodic() const noexcept { return periodic_; }
  [[nodiscard]] std::uint64_t periodic_version() const noexcept { return periodic_version_; }  // changes with the list
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  // Weakly hard: a stream that may miss no more of its window goes one class up.
  [[nodiscard]] std::uint8_t priority_of(const Stream& stream) const noexcept;

  // ---- streams ----
  [[nodiscard]] StreamId open_stream(const StreamConfig& config, const ApplicationSpec& application) noexcept;
  void close_stream(StreamId id) noexcept;
  // A periodic stream's next request is due one period after the last capture, plus the least transit seen.
  void expect_next(StreamId id, TimeNs capture, TimeNs now, bool plannable) noexcept;

  // ---- requests ----
  void submitted(StreamId stream) noexcept;  // counted, not yet accepted
  [[nodiscard]] std::uint32_t accept(const Submission& s, TimeNs capture, bool keeps_late) noexcept;  // kNone: no room
  void refuse(const Submission& s, Outcome outcome, Reason reason) noexcept;  // answers what was never accepted
  void answer(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where, TimeNs now) noexcept;
  void doom(std::uint32_t request, Outcome outcome, Reason reason, ModuleId where) noexcept;  // the first doom stays
  void sent(std::uint32_t request) noexcept;                                                  // the first of its tasks
  // Task::turn_ns: where the stream's next request is expected to take its place before its deadline; else 0.
  [[nodiscard]] TimeNs turn_ns(std::uint32_t request) const noexcept;
  [[nodiscard]] Progress& progress(std::uint32_t request, std::uint32_t local) noexcept {
    return progress_[std::size_t{request} * stride_ + local];
  }
  // Asks for what its tasks' ends will look at.
  void fetch(std::uint32_t request) const noexcept {
    __builtin_prefetch(&requests_[request]);
    __builtin_prefetch(&progress_[std::size_t{request} * stride_]);
  }
  [[nodiscard]] Request& change(std::uint32_t request) noexcept { return requests_[request]; }
  [[nodiscard]] std::uint32_t in_flight(std::uint32_t application) const noexcept { return in_flight_[application]; }
  void inherit(StreamId stream, std::uint32_t application) noexcept {
    streams_[stream].config.application = application;
  }
  [[nodiscard]] Counters& count() noexcept { return counters_; }

  void audit() const;  // every stream's list and counters
  void visit_state(Snapshot& state);

 private:
  void count(StreamId stream, Outcome outcome, Reason reason) noexcept;
  void delivered(Stream& stream, TimeNs capture, TimeNs now) noexcept;
  static void record_miss(Stream& stream, bool missed) noexcept {
    stream.misses = stream.misses << 1 | (missed ? 1 : 0);
  }

  Actions& actions_;
  std::vector<Stream> streams_;
  std::vector<StreamId> periodic_;
  std::uint64_t periodic_version_ = 1;
  Pool<Request> requests_;
  std::vector<Progress> progress_;
  std::uint32_t stride_ = 1;
  std::vector<std::uint32_t> in_flight_;  // accepted requests, by application
  Counters counters_;
};

}  // namespace leat::core
