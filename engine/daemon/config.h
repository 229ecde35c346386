// leatd's configuration: TOML in, plain data out. A pure function of the text and of the files it names; nothing is
// started, opened for writing or created by reading it, so `leat check` and leatd judge a file alike.
//
//   [daemon]                               # every key is optional
//   socket = "/run/leat/leat.sock"         # default: $LEAT_SOCKET, else $XDG_RUNTIME_DIR/leat.sock, else /run/leat/leat.sock
//   socket_mode = "0666"                   # file mode of the socket; who may connect is decided by the lists below
//   allow_uids = [1000]                    # default: everybody when both lists are empty; root and leatd's own uid always
//   allow_gids = [44]
//   event_loop = "auto"                    # auto | io_uring | epoll
//   log_level = "info"                     # debug | info | warning | error
//   scheduler_core = 1                     # default: a core without a partition, if there is one
//   plan = "plan.json"                     # optional: made by leat-plan; "auto": asked for at start
//   recorder = "flight.bin"                # optional: the flight recorder is saved here when leatd ends or gets SIGUSR1
//
//   [limits]                               # clients, streams, requests, memory_mib, client_memory_mib, feature_mib, batch_ms
//   [policy]                               # preset = "leat"; any key of the policy table overrides the preset
//
//   cpu = "auto"                           # top level: one partition a core, but for the scheduler's
//   [[partition]]                          # or partition by partition
//   name = "cpu0"   kind = "cpu"   cores = "0-1"      # class: default "cpu:2" (number of cores)
//   [[partition]]
//   name = "fast"   kind = "emulated"   count = 8     # makes fast0 .. fast7; class: default the name; size, price
//
//   [[application]]
//   name = "shapes"   slo_ms = 200   rate_rps = 120
//     [[application.module]]
//     name = "detect"   model = "detect.onnx"   executor = "onnx"   preprocess = "..."   postprocess = "..."
//     batch = 8   after = ["..."]   fan_out_cap = 8   items_per_request = 1.0   profile = "detect.profile.json"
//     labels = ["circle", "square"]        # or a list of lists, one a head
//     latency_ms = [4.0, 6.5]              # executor "emulated": time of a batch of 1, 2, ... (or a profile)
//     options = { key = "value" }          # the executor's own
//     [[application.stream]]               # streams to be expected, for `leat check` and the warnings at start
//     period_ms = 33   count = 4   max_age_ms = 66   priority = "high"
//
// Paths are relative to the configuration file. Errors: one line, "FILE:LINE: KEY: what is wrong; what to do".
// Thread rule: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/policy.h"
#include "engine/core/scheduler.h"
#include "leat/result.hpp"
#include "planner/application.h"
#include "planner/plan.h"

namespace leat::daemon {

enum class EventLoopKind : std::uint8_t { automatic, io_uring, epoll };

struct PartitionConfig {
  planner::Partition partition;            // name, kind, class, size, price, device
  std::vector<std::uint32_t> cores;        // kind cpu: where the worker is pinned; empty: anywhere
};

// What the worker needs to open a module's session; indexes match planner::Application::modules.
struct ModuleConfig {
  std::string executor = "onnx";           // "onnx" or "emulated"
  std::string model_path;                  // absolute; empty for emulated
  std::string preprocess;                  // executor room's words, checked there
  std::string postprocess;
  std::vector<std::string> labels;         // class names: one text a head, names separated by tabs
  std::uint32_t batch = 8;                 // largest batch
  planner::Profile profile;                // measured; of several classes. No rows: calibrated at start
  std::vector<planner::Latency> latency_by_batch;  // emulated: [b-1] on every class the profile does not have
  std::vector<std::pair<std::string, std::string>> extra;  // executor's own key = value pairs
};

// Streams that will come; only what is said before start uses it: clients declare their own.
struct ExpectedStream {
  double count = 1;
  std::int64_t period_ns = 0, max_age_ns = 0;
  core::Priority priority = core::Priority::normal;
};

struct ApplicationConfig {
  planner::Application application;
  std::vector<ExpectedStream> expected;
  std::vector<ModuleConfig> modules;
};

struct LimitsConfig {
  std::uint32_t clients = 64;
  std::uint32_t streams = 256;             // all clients together
  std::uint32_t requests = 4096;           // in flight, all streams
  std::uint64_t memory_bytes = std::uint64_t{2} << 30;         // slots of all clients
  std::uint64_t client_memory_bytes = std::uint64_t{1} << 30;  // slots of one client
  std::uint64_t feature_bytes = std::uint64_t{1} << 30;        // features between stages, all edges
  std::int64_t batch_ns = 10'000'000'000;  // a worker that runs one batch for longer hangs: it is killed and started again
};

struct Config {
  std::string file;                        // as given, for messages
  std::string socket;
  std::uint32_t socket_mode = 0666;
  std::vector<std::uint32_t> allow_uids, allow_gids;
  EventLoopKind event_loop = EventLoopKind::automatic;
  std::string log_level = "info";
  std::int32_t scheduler_core = -1;        // -1: chosen at start
  std::string plan_path, recorder_path;
  bool plan_auto = false;                  // plan = "auto": leat-plan is asked when leatd starts; plan_path is empty then
  LimitsConfig limits;
  std::string preset = "leat";
  core::Policy policy;                     // the preset with its overrides
  bool cpu_auto = false;
  std::vector<PartitionConfig> partitions; // cpu_auto is resolved on the host, not here
  std::vector<ApplicationConfig> applications;
};

// `file` names the text in messages and is what relative paths are relative to. Reads the profiles it names and looks
// whether models exist; nothing else.
Result<Config> parse_config(std::string_view text, const std::string& file);
Result<Config> read_config(const std::string& file);

}  // namespace leat::daemon
