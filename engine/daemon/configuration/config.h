// leatd's configuration: TOML in, plain data out. A pure function of the text and of the files it names; nothing is
// started, opened for writing or created by reading it, so `leat check` and leatd judge a file alike.
//
//   [daemon]                               # every key is optional
//   socket = "/run/leat/leat.sock"         # default: $LEAT_SOCKET, else $XDG_RUNTIME_DIR/leat.sock, else that
//   socket_mode = "0660"                   # file mode of the socket
//   socket_group = "video"                 # its group, by name or number; default: leatd's own
//   allow_uids = [1000]                    # of those whom the mode lets in; default: everybody when both lists are
//   allow_gids = [44]                      # empty; root and leatd's own user always. Supplementary groups count
//   subuid_file = "/etc/subuid"            # subordinate uids count as the login that owns them; "": they do not
//   observers = "own"                      # or "all": what ordinary users see of the counters
//   observer_uids = [1000]                 # who sees all of them besides root and leatd's own user
//   observer_gids = [44]
//   log_level = "info"                     # debug, info, warning or error
//   scheduler_core = 1                     # default: a core without a partition, if there is one
//   plan = "plan.json"                     # optional: made by leat-plan; "auto": asked for at start
//   replan = "auto"                        # models move between partitions with the load, where memory binds
//   replan_look_ms = 10000                 # how often that is looked at
//   recorder = "leatd.record"              # optional: the record of what happens is written here
//
//   [limits]                               # clients, streams, requests, memory_mib, client_memory_mib, feature_mib,
//                                          # batch_timeout_ms, handshake_timeout_ms
//   [limits.user]                          # one user: sessions, streams, requests, memory_mib, descriptors,
//                                          # priority = "normal", min_slo_ms = 50, overload = ["latest", "fifo"],
//                                          # share = 2
//   [limits.groups.video]                  # the same keys, for the members of a group, by name or number
//   [limits.users.camera]                  # the same keys, for one user
//   [policy]                               # preset = "leat"; any key of the policy table overrides the preset
//
//   [workers]                              # sandbox = "on" | "devices" | "off", overlap, user, max_backoff_ms,
//                                          # worker_start_timeout_ms
//
//   cpu = "auto"                           # top level: one partition a core, but for the scheduler's
//   [[partition]]                          # or partition by partition
//   name = "cpu0"   kind = "cpu"   cores = "0-1"      # class: default "cpu:2" (number of cores)
//   [[partition]]
//   name = "fast"   kind = "emulated"   count = 8     # makes fast0 .. fast7; class: default the name; size, price
//
//   [[partition]]
//   name = "left"   kind = "mps"   gpu = "GPU-..."   percent = 25
//                                          # also kind "gpu" (whole) and "mig" (gpu = "MIG-...")
//   memory_mib = 8000                      # of any kind: what its models may take together
//
//   [[application]]
//   name = "shapes"   slo_ms = 200 (or "auto")   rate_rps = 120   share = 2
//     [[application.module]]
//     name = "detect"   model = "detect.onnx"   executor = "onnx"   preprocess = "..."   postprocess = "..."
//     as = "arcface"                       # the known model that it is, in place of the words
//     batch = 8   after = ["..."]   fan_out_cap = 8   items_per_request = 1.0   profile = "detect.profile.json"
//     labels = ["circle", "square"]        # or a list of lists, one a head; "coco-80"; or labels_file = "names.txt"
//     latency_ms = [4.0, 6.5]              # executor "emulated": time of a batch of 1, 2, ... (or a profile)
//     options = { key = "value" }          # the executor's own
//     memory_mib = 600                     # what it takes of a partition's; default: what the profile says
//     [[application.stream]]               # streams to be expected, for `leat check` and the warnings at start
//     period_ms = 33   count = 4   max_age_ms = 66   priority = "high"
//
// Paths are relative to the configuration file. Errors: one line, "FILE:LINE: KEY: what is wrong; what to do".
// Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/policy/policy.h"
#include "engine/core/policy/policy_keys.h"
#include "engine/core/scheduler.h"
#include "engine/daemon/configuration/user_limits.h"
#include "engine/worker/link/overlap_choice.h"
#include "engine/worker/sandbox/sandbox.h"
#include "leat/result.hpp"
#include "planner/application.h"
#include "planner/plan.h"

namespace leat::daemon {

// Where something stands: "FILE:LINE: KEY: ", the beginning of a message about what is found out after reading.
using Place = std::string;

// A partition of a kind that is on a device (planner/partition_kind.h).
struct GpuConfig {
  std::string uuid;           // of the GPU or MIG device, or what the plug-in calls it; empty: the partition has none
  std::uint32_t percent = 0;  // of a share: of the multiprocessors
  std::string plugin;         // exec::Device::open
  // Found out at start (gpu_tool.h), not configured: the device's multiprocessors, 0 where nobody knows, and where its
  // memory can be shared: within one GPU, or one GPU instance.
  std::uint32_t multiprocessors = 0;
  std::string place;
};

struct PartitionConfig {
  planner::Partition partition;      // name, kind, class, size, price, device
  std::vector<std::uint32_t> cores;  // where the worker is pinned; empty (not for kind cpu): anywhere
  Place cores_place;
  GpuConfig gpu;
};

// What the worker needs to open a module's session; indexes match planner::Application::modules.
struct ModuleConfig {
  std::string executor = "onnx";  // "onnx" or "emulated"
  std::string model_path;         // absolute; empty for emulated
  std::string as;                 // the known model that it is, checked by the executor room; empty: nobody says
  std::string preprocess;         // executor room's words, checked there
  std::string postprocess;
  std::vector<std::string> labels;                         // class names: one text a head, names separated by tabs
  std::uint32_t batch = 8;                                 // largest batch
  std::int64_t memory_bytes = 0;                           // of a partition's; 0: nobody says
  planner::Profile profile;                                // measured; of several classes. No rows: calibrated at start
  std::vector<planner::Latency> latency_by_batch;          // emulated: [b-1] on every class the profile does not have
  std::vector<std::pair<std::string, std::string>> extra;  // executor's own key = value pairs
  struct Places {
    Place module, model, executor, as, preprocess, postprocess, labels, profile, batch;
  } places;
};

// Streams that will come; only what is said before start uses it: clients declare their own.
struct ExpectedStream {
  double count = 1;
  std::int64_t period_ns = 0, max_age_ns = 0;
  core::Priority priority = core::Priority::normal;
};

struct ApplicationConfig {
  planner::Application application;
  bool retired = false;   // it was served, and keeps its number for what may come after it; there is none in a file
  bool slo_auto = false;  // its slo_ns stands in for what leatd chooses when it has measured (objective.h)
  std::uint32_t share_permille = 0;  // weight of its part of each user's share; 0: it has none of its own
  std::vector<ExpectedStream> expected;
  std::vector<ModuleConfig> modules;
};

struct LimitsConfig {
  std::uint32_t clients = 64;
  std::uint32_t streams = 256;                          // all clients together
  std::uint32_t requests = 4096;                        // in flight, all streams
  std::uint64_t memory_bytes = std::uint64_t{2} << 30;  // slots of all clients
  std::string memory_capped_by;  // file of the memory cgroup that leaves no more than that; empty: as configured
  std::uint64_t client_memory_bytes = std::uint64_t{1} << 30;  // slots of one client
  std::uint64_t feature_bytes = std::uint64_t{1} << 30;        // features between stages, all edges
  std::int64_t batch_timeout_ns =
      10'000'000'000;  // a worker that runs one batch for longer hangs: it is killed and started again
  std::int64_t handshake_timeout_ns = 2'000'000'000;  // a connection that has not said hello by then is ended
  UserTables user;                                    // of one user
};

struct WorkersConfig {
  worker::Sandbox sandbox = worker::Sandbox::on;
  worker::Overlap overlap = worker::Overlap::measured;
  std::string user;                             // empty: leatd's own
  std::int64_t max_backoff_ns = 5'000'000'000;  // before one that dies soon after its start is started again
  std::int64_t worker_start_timeout_ns = 1'800'000'000'000;  // for models and their calibration; then it is ended
};

struct Config {
  std::string file;              // as given, for messages; the model's where it was made from one
  bool made_from_model = false;  // by a command line: messages name its options in the place of lines and keys
  std::string text, text_file;   // what it was read from
  std::string socket;
  std::uint32_t socket_mode = 0660;
  std::optional<std::uint32_t> socket_group;  // none: leatd's own
  std::vector<std::uint32_t> allow_uids, allow_gids;
  std::string subuid_file;         // whose subordinate a uid is; empty: nobody's
  bool observers_see_all = false;  // else root, leatd's own user and those named next
  std::vector<std::uint32_t> observer_uids, observer_gids;
  std::string log_level = "info";
  Place socket_place, scheduler_core_place, plan_place;
  std::int32_t scheduler_core = -1;  // -1: chosen at start
  std::string plan_path, recorder_path;
  std::uint64_t recorder_bytes = 16 << 20;  // of the record, in memory and in its file
  bool plan_auto = false;  // plan = "auto": leat-plan is asked when leatd starts; plan_path is empty then
  bool replan_auto = false;
  std::int64_t replan_look_ns = 10'000'000'000;  // how often what arrives is laid against what is carried
  LimitsConfig limits;
  WorkersConfig workers;
  std::string preset = "leat";
  core::PolicySettings policy_settings;  // the overrides, as written
  core::Policy policy;                   // the preset with them
  Place policy_place;
  std::vector<std::string> warnings;  // a line each: words of the version before, keys that say nothing any more
  bool cpu_auto = false;
  std::vector<PartitionConfig> partitions;  // cpu_auto is resolved on the host, not here
  std::vector<ApplicationConfig> applications;
};

// `file` names the text in messages and is what relative paths are relative to. Reads the profiles it names and looks
// whether models exist; nothing else. `model`: the one that a command line made the text from, as typed; empty: nobody
// did.
Result<Config> parse_config(std::string_view text, const std::string& file, const std::string& model = {});
Result<Config> read_config(const std::string& file, const std::string& model = {});

}  // namespace leat::daemon
