// What leatd and a worker say to each other over the socket pair the worker is born with: one message a packet.
// Both ends are the same release and trust each other's format; a message that does not parse ends the worker.
//
//   leatd -> worker  Setup {channel, bell}, once; then File {model file} for each of its modules' files; then Edge
//   {features} for each of Setup::edges that it does not make
//                    itself; AddPool {frames, results} and ForgetPool, Stop
//   worker -> leatd  EdgeMade {memory} for each of Setup::edges that it makes, before it waits for the others;
//   worker -> leatd  Opening before each module, so that leatd knows which one ended it or takes too long;
//                    MeasuringProgress while it measures a module, so that people see how far the start is;
//                    Ready with the latencies measured, once; or Failed with one line, once for each module that
//                    misses words, behind its Opening
//   leatd -> worker  Measure, once it is ready; it answers with Measured, and has been asked for no other meanwhile
//   worker -> leatd  NotFinite {module}, once for each module whose outputs held a value that is infinite or no number,
//                    while it starts or serves
//   worker -> leatd  Memory, once ready, whenever what it has of its device's memory has changed
//
// Order: a worker reads messages in the order sent, and reads at least DispatchCell::control of them before it runs
// that cell, so a pool is always known before its frames come. A forgotten pool is one no dispatched batch names any
// more.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/exec/model_files/pinned_models.h"
#include "engine/exec/part.h"
#include "engine/exec/recognise/recognise.h"
#include "engine/worker/link/device_facts.h"
#include "engine/worker/link/overlap_choice.h"
#include "engine/worker/sandbox/sandbox.h"
#include "leat/result.hpp"
#include "planner/profile.h"
#include "shm/src/segments/feature_slots.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::worker {

inline constexpr int kControlFd = 3;  // the worker's end, at exec
inline constexpr std::uint32_t kNoEdge = UINT32_MAX;

struct ModuleSetup {
  std::string application, name;
  std::uint32_t index = 0;  // among the application's modules: whose parts of a result it writes
  std::string executor, model_path, as, preprocess, postprocess;
  std::vector<std::string> labels;
  std::uint32_t first_head = 0;                    // of the application's, whose first it is
  std::uint32_t batch = 1;                         // largest
  bool after_fan_out = false;                      // its input is a crop of a detection an earlier module wrote
  std::vector<planner::Latency> latency_by_batch;  // emulated: what to imitate
  std::vector<std::pair<std::string, std::string>> extra;
  // A stage: the blocks it holds, and where its features come from and go to (of Setup::edges). kNoEdge: it takes
  // frames, it ends with results.
  std::uint32_t first_block = 0, end_block = UINT32_MAX;
  std::vector<std::string> cuts;  // onnx: the tensors at which the model's blocks meet
  std::uint32_t edge_in = kNoEdge, edge_out = kNoEdge;
  std::vector<exec::ModelFile> files;  // the model first; their descriptors follow the setup. None: nothing is pinned
  std::uint64_t version = 0;           // of all of the application's models: leat_result::model_version
};

// The features between two stages, as one of them sees them.
struct EdgeSetup {
  std::uint32_t edge = 0;  // leatd's number
  bool writes = false;     // else it reads
  bool device = false;     // in the memory of the partition's device
  bool make = false;       // this worker makes that memory and sends its descriptor
  bool peer = false;       // it is another device's, mapped here: batches are copied out of it
  shm::FeatureSpec spec;
};

// The device of a partition that has one; no plug-in: it has none.
struct DeviceSetup {
  std::string plugin;  // exec::Device::open
  std::string uuid;    // what must be found
  std::uint32_t multiprocessors_min = 0, multiprocessors_max = UINT32_MAX;
  std::string group;  // partitions of one group are lost together, and start again together; empty: it is alone
  std::vector<std::pair<std::string, std::string>> environment;  // of the process; set before it starts
};

// Exit status of a worker whose device was lost: nothing of it can be used until every process that shares it has
// ended.
inline constexpr int kDeviceLost = 75;

struct Setup {
  std::string partition;
  std::vector<std::uint32_t> cores;  // empty: not pinned
  std::uint32_t threads = 1;
  std::uint32_t yields = 0;       // waiting policy: sched_yield so often before parking
  bool calibrate = false;         // measure latency by batch and report it in Ready
  bool alone_only = false;        // of those latencies only a batch of one's
  std::string user;               // becomes this user before it loads anything; empty: stays leatd's
  Sandbox sandbox = Sandbox::on;  // in force before Ready
  Overlap overlap = Overlap::measured;
  std::vector<std::uint32_t> overlap_permille;  // Ready's, of an earlier start; empty: to be measured
  DeviceSetup device;
  std::vector<EdgeSetup> edges;      // their descriptors follow, one a message, in this order
  std::vector<ModuleSetup> modules;  // indexes are DispatchCell::module
};

struct Ready {
  std::vector<std::vector<planner::Latency>> latency_by_batch;  // [module][b-1]; empty unless calibrated
  std::vector<std::vector<planner::Latency>> latency_by_size;   // [module][class]: Calibration's; empty: one size
  std::uint32_t undisturbed_percent = 100;                      // of calibration; the least of its modules'
  std::vector<std::uint32_t> overlap_permille;                  // [module]: core::StageSpec's; 0: none
  Sandbox sandbox = Sandbox::off;                               // in force
  std::string not_enclosed;                                     // why that is less than was asked for
  std::vector<std::vector<exec::PartSpec>> parts;               // [module]: what its answer about one item needs
  std::vector<std::vector<leat_tensor_shape>> tensors;          // [module]: the frames it takes; empty: pictures
  std::vector<std::vector<std::string>> tensor_names;           // of each of those
  std::vector<exec::Recognised> recognised;                     // [module]: its words, and what they come from
  DeviceFacts device;
};

// Runs of the module that it opens: done, and at most to come in all.
struct MeasuringProgress {
  std::uint32_t done = 0, max = 0;
};

struct AddPool {
  std::uint32_t pool = 0, generation = 0;
  shm::PoolSpec spec;
};
struct ForgetPool {
  std::uint32_t pool = 0, generation = 0;
};
// A module is to be measured once more, run by run while no batch comes; batches longer than this are not tried, and
// nothing goes on that is disturbed more than this.
struct Measure {
  std::uint32_t module = 0;
  std::int64_t longest_ns = 0;
  std::uint32_t undisturbed_percent = 100;
};
struct Measured {
  std::uint32_t module = 0;
  std::vector<planner::Latency> latency_by_batch, latency_by_size;  // as in Ready; empty: it was interrupted
  std::uint32_t undisturbed_percent = 100;
};
// What was measured while others had more of the core than this leaves is in doubt.
inline constexpr std::uint32_t kUndisturbedPercent = 80;

enum class ControlType : std::uint32_t {
  setup = 1,
  add_pool = 2,
  forget_pool = 3,
  stop = 4,
  edge = 5,
  file = 6,
  measure = 7,
  ready = 16,
  failed = 17,
  opening = 18,
  edge_made = 19,
  memory = 20,
  measuring = 21,
  measured = 22,
  not_finite = 23
};

// Packets. decode_* return one line on a packet that is not what it should be.
std::vector<std::byte> encode(const Setup& setup);
std::vector<std::byte> encode(const Ready& ready);
std::vector<std::byte> encode(const AddPool& add);
std::vector<std::byte> encode(const ForgetPool& forget);
std::vector<std::byte> encode_edge(std::uint32_t index);  // of Setup::edges
std::vector<std::byte> encode_edge_made(std::uint32_t index);
std::vector<std::byte> encode_file();
std::vector<std::byte> encode_stop();
std::vector<std::byte> encode_failed(const std::string& line);
std::vector<std::byte> encode_opening(std::uint32_t module);
std::vector<std::byte> encode_not_finite(std::uint32_t module);
std::vector<std::byte> encode(const DeviceMemory& memory);
std::vector<std::byte> encode(const Measure& measure);
std::vector<std::byte> encode(const MeasuringProgress& progress);
std::vector<std::byte> encode(const Measured& measured);

Result<ControlType> type_of(const std::vector<std::byte>& packet);
Result<Setup> decode_setup(const std::vector<std::byte>& packet);
Result<Ready> decode_ready(const std::vector<std::byte>& packet);
Result<AddPool> decode_add_pool(const std::vector<std::byte>& packet);
Result<ForgetPool> decode_forget_pool(const std::vector<std::byte>& packet);
Result<DeviceMemory> decode_memory(const std::vector<std::byte>& packet);
Result<MeasuringProgress> decode_measuring(const std::vector<std::byte>& packet);  // done <= max, max > 0
Result<Measure> decode_measure(const std::vector<std::byte>& packet);
Result<Measured> decode_measured(const std::vector<std::byte>& packet);
Result<std::uint32_t> decode_opening(const std::vector<std::byte>& packet);
Result<std::uint32_t> decode_not_finite(const std::vector<std::byte>& packet);
std::string decode_failed(const std::vector<std::byte>& packet);          // one line, whatever it holds
Result<std::uint32_t> decode_edge(const std::vector<std::byte>& packet);  // edge and edge_made

}  // namespace leat::worker
