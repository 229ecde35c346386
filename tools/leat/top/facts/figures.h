// What `leat top` knows of one second: figures of every stream, partition, module and user, the sentence, and what only
// this second knew. Values: pages read nothing else, so that a page of now, of a minute ago and of a recording are made
// alike. Not a number is unknown, which is not zero.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leat/outcome.h"

namespace leat::tools::top {

inline constexpr float kUnknownFigure = std::numeric_limits<float>::quiet_NaN();
[[nodiscard]] inline bool known(double v) noexcept { return !std::isnan(v); }

inline constexpr std::int64_t kSecondNs = 1'000'000'000;

// One life of a record: an index that is used again begins another.
struct Key {
  std::uint32_t index = UINT32_MAX, epoch = 0;
  auto operator<=>(const Key&) const = default;
};

// How a stream is, the worse below. Signs, colours and the order of rows follow it.
enum class Mark : std::uint8_t { well, near, silent, late, dropping, failing };

// A source that a feeder of this user feeds to leatd, as that feeder says.
struct CameraFigures {
  std::string name, source, application, state;  // state: a word of LEAT_CAMERA_STATES
  std::string error;                             // its last, in one line; empty: none yet
  float rate = kUnknownFigure, breaks = kUnknownFigure, damaged = kUnknownFigure, format_changes = kUnknownFigure;
  std::int64_t last_picture_ns = 0, error_ns = 0;  // 0: never
  [[nodiscard]] bool runs() const noexcept { return state == "running"; }
};

// How hot a GPU is. Its MIG instances share it.
struct HeatFigures {
  std::string uuid, held_back;  // what lowers its clocks; empty: nothing
  float temperature_c = kUnknownFigure, power_w = kUnknownFigure, power_cap_w = kUnknownFigure,
        sm_clock_mhz = kUnknownFigure, memory_used_mib = kUnknownFigure, memory_mib = kUnknownFigure;
};

// What does not change while a stream is open.
struct StreamIdentity {
  Key key;
  std::string name, application, client, user;  // printable: control characters are '?'
  std::uint32_t client_index = UINT32_MAX, user_index = UINT32_MAX;
  std::int64_t pid = 0, opened_ns = 0;  // 0: unknown
  double slo_ms = kUnknownFigure, period_ms = kUnknownFigure;
  double width = kUnknownFigure, height = kUnknownFigure, slots = kUnknownFigure, depth = kUnknownFigure;
  std::string format, priority, overload;
  bool coordinated = false;
};

struct StreamFigures {
  std::shared_ptr<const StreamIdentity> who;
  float in = kUnknownFigure, good = kUnknownFigure, late = kUnknownFigure, dropped = kUnknownFigure,
        failed = kUnknownFigure, rejected = kUnknownFigure;  // a second, of 5 s
  float miss = kUnknownFigure, miss10 = kUnknownFigure;      // per cent of answers, of 5 s and of 10 s
  float p50 = kUnknownFigure, p99 = kUnknownFigure;          // capture to answer, ms, of 5 s
  float p99_minute = kUnknownFigure;                         // of 60 s
  float wait50 = kUnknownFigure, wait99 = kUnknownFigure;    // submission to first dispatch, ms, of 5 s
  float came = kUnknownFigure, done = kUnknownFigure, lost = kUnknownFigure;  // frames of this second alone
  float in_flight = kUnknownFigure;
  float busy = kUnknownFigure;  // of one partition, per cent
  float cause_percent = kUnknownFigure;
  Reason cause = Reason::none;  // the most frequent of 60 s; none: nothing missed
  Mark mark = Mark::well;
  std::int64_t since_ns = 0;                    // of the mark
  std::shared_ptr<const CameraFigures> camera;  // whose pictures it has; null: no feeder says
};
// A camera without a stream is a row among streams all the same: its key's index is from here on.
inline constexpr std::uint32_t kCameraRows = 1U << 20;

enum class PartitionState : std::uint8_t { down, starting, up, lost, unknown };

struct PartitionFigures {
  Key key;
  std::string name;
  PartitionState state = PartitionState::unknown;
  float busy = kUnknownFigure, over = kUnknownFigure;           // per cent, of 5 s
  float queued = kUnknownFigure, items = kUnknownFigure;        // now; a batch, of 5 s
  float batches = kUnknownFigure, items_rate = kUnknownFigure;  // a second
  float p50 = kUnknownFigure, p99 = kUnknownFigure;             // of a batch, ms
  float overhead_us = kUnknownFigure;                           // of a batch
  float restarts = kUnknownFigure, failures = kUnknownFigure;
  float busy_now = kUnknownFigure;                              // of this second alone
  std::int64_t started_ns = 0, lost_ns = 0, next_start_ns = 0;  // 0: unknown
  std::int64_t pid = 0;
  float end_status = kUnknownFigure;                     // of its latest worker: its exit status, or 256 + its signal
  std::shared_ptr<const HeatFigures> heat;               // null: not known
  std::vector<std::pair<std::uint32_t, float>> modules;  // index of the module, per cent of the partition, 60 s
};

struct ModuleFigures {
  Key key;
  std::string name;  // application/module
  std::string application;
  float tasks = kUnknownFigure, batch = kUnknownFigure;
  float wait50 = kUnknownFigure, wait99 = kUnknownFigure, run50 = kUnknownFigure, run99 = kUnknownFigure;  // ms
  float waiting = kUnknownFigure, left_out = kUnknownFigure;
  float oldest = kUnknownFigure;                           // ms that the one that waits longest has waited
  float come = kUnknownFigure, given_up = kUnknownFigure;  // a second
  float squeezed = kUnknownFigure;
  float not_finite_minute = kUnknownFigure;  // answers that NaN or infinity spoiled, in 60 s
  float held = kUnknownFigure;               // partitions' worth of time, of 5 s
};

struct ClientFigures {
  Key key;
  std::string name;
  std::int64_t pid = 0, connected_ns = 0;
  std::uint32_t user = UINT32_MAX;
  float streams = kUnknownFigure, in = kUnknownFigure, good = kUnknownFigure, miss = kUnknownFigure;
};

struct UserFigures {
  Key key;
  std::string name;
  float streams = kUnknownFigure, in = kUnknownFigure, good = kUnknownFigure, miss = kUnknownFigure;
  float share = kUnknownFigure, within = kUnknownFigure;  // weight; requests within it, a second
  float held = kUnknownFigure;                            // partitions' worth of time
  struct Used {
    float now = kUnknownFigure, most = kUnknownFigure;
  } stream_places, depths, memory_mib, connections;
  float refused = kUnknownFigure;
  std::string last_refusal;
  std::int64_t last_refusal_ns = 0;
};

struct DaemonFigures {
  std::int64_t pid = 0, started_ns = 0;
  float phase = kUnknownFigure;
  float turns = kUnknownFigure, turns_with_work = kUnknownFigure, parks = kUnknownFigure, wakes = kUnknownFigure;
  float stalls = kUnknownFigure, own_stalls = kUnknownFigure;                // ever
  float stalls_minute = kUnknownFigure, own_stalls_minute = kUnknownFigure;  // of 60 s
  float turn50_us = kUnknownFigure, turn99_us = kUnknownFigure, longest_us = kUnknownFigure,
        longest_own_us = kUnknownFigure;
  float sessions = kUnknownFigure, clients = kUnknownFigure, accepted = kUnknownFigure, refused = kUnknownFigure,
        violated = kUnknownFigure, pauses = kUnknownFigure, unsent = kUnknownFigure, memory_mib = kUnknownFigure;
  float retries = kUnknownFigure, idled = kUnknownFigure, undecided = kUnknownFigure, stale = kUnknownFigure;
  float change_step = kUnknownFigure, change_wave = kUnknownFigure, change_waves = kUnknownFigure;  // while serving
  float changes = kUnknownFigure, changes_failed = kUnknownFigure;                                  // ever
  float missed_ever = kUnknownFigure;  // frames missed since it began, as the sentence counts them
};

struct ReasonFigures {
  Reason reason = Reason::none;
  float minute = kUnknownFigure, ever = kUnknownFigure;
};

// The thirteen states, the worse above; of those in force the uppermost is shown.
enum class State : std::uint8_t {
  no_leatd,
  starting,
  stuck,
  failing,
  worker_down,
  overload,
  late,
  silent,
  refusing,
  tight,
  watching,
  idle,
  all_well
};
inline constexpr std::size_t kStates = static_cast<std::size_t>(State::all_well) + 1;
[[nodiscard]] std::string_view name_of(State state) noexcept;

struct Sentence {
  State state = State::watching;
  std::string text;          // without the state's name
  std::string word, reason;  // second line: because, meanwhile or room, and what it says
  std::int64_t since_ns = 0;
  std::vector<State> others;  // in force besides
};

// One line of what changed.
struct Change {
  std::int64_t at_ns = 0;
  std::string text;
  Mark meaning = Mark::well;
  Key stream, partition;  // whom it is about, where it is about one
};

// What leatd's status says of a partition, beyond its counters.
struct PartitionStatus {
  std::string kind, gpu, cores, last_end, why_down, sandbox;
  std::string device;  // the UUID of its GPU; empty: it has none
};
struct DaemonStatus {
  std::string version;
  std::map<std::string, PartitionStatus> partitions;
};

struct Second {
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC
  bool gone = false;       // leatd was not there: all figures are as they were
  DaemonFigures daemon;
  StreamFigures total;
  std::vector<StreamFigures> streams;  // by index, as all lists are
  std::vector<PartitionFigures> partitions;
  std::vector<ModuleFigures> modules;
  std::vector<ClientFigures> clients;
  std::vector<UserFigures> users;
  std::vector<ReasonFigures> reasons;  // most first
  Sentence sentence;
};

[[nodiscard]] const StreamFigures* find(const Second& second, Key key) noexcept;

}  // namespace leat::tools::top
