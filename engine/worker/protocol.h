// What leatd and a worker say to each other over the socket pair the worker is born with: one message a packet.
// Both ends are the same release and trust each other's format; a message that does not parse ends the worker.
//
//   leatd -> worker  Setup {channel, worker's bell, leatd's bell}, once; then Edge {features} for each of Setup::edges;
//                    then AddPool {frames, results} and ForgetPool, Stop
//   worker -> leatd  Ready with the latencies measured, or Failed with one line; both once
//
// Order: a worker reads messages in the order sent, and reads at least DispatchCell::control of them before it runs that
// cell, so a pool is always known before its frames come. A forgotten pool is one no dispatched batch names any more.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "leat/result.hpp"
#include "planner/profile.h"
#include "shm/src/feature_slots.h"
#include "shm/src/layout.h"

namespace leat::worker {

inline constexpr int kControlFd = 3;  // the worker's end, at exec
inline constexpr std::uint32_t kNoEdge = UINT32_MAX;

struct ModuleSetup {
  std::string application, name;
  std::string executor, model_path, preprocess, postprocess;
  std::vector<std::string> labels;
  std::uint32_t batch = 1;                          // largest
  bool after_fan_out = false;                       // its input is a crop of a detection an earlier module wrote
  std::uint32_t fan_out_cap = 1;                    // of the modules behind it
  std::vector<planner::Latency> latency_by_batch;   // emulated: what to imitate
  std::vector<std::pair<std::string, std::string>> extra;
  // A stage: the blocks it holds, and where its features come from and go to (of Setup::edges). kNoEdge: it takes frames, it
  // ends with results.
  std::uint32_t first_block = 0, end_block = UINT32_MAX;
  std::vector<std::string> cuts;                    // onnx: the tensors at which the model's blocks meet
  std::uint32_t edge_in = kNoEdge, edge_out = kNoEdge;
};

// The features between two stages, as one of them sees them.
struct EdgeSetup {
  std::uint32_t edge = 0;            // leatd's number
  bool writes = false;               // else it reads
  shm::FeatureSpec spec;
};

struct Setup {
  std::string partition;
  std::vector<std::uint32_t> cores;  // empty: not pinned
  std::uint32_t threads = 1;
  std::uint32_t yields = 0;          // waiting policy: sched_yield so often before parking
  bool calibrate = false;            // measure latency by batch and report it in Ready
  std::vector<EdgeSetup> edges;      // their descriptors follow, one a message, in this order
  std::vector<ModuleSetup> modules;  // indexes are DispatchCell::module
};

struct Ready {
  std::vector<std::vector<planner::Latency>> latency_by_batch;  // [module][b-1]; empty unless calibrated
};

struct AddPool {
  std::uint32_t pool = 0, generation = 0;
  shm::PoolSpec spec;
};
struct ForgetPool {
  std::uint32_t pool = 0, generation = 0;
};

enum class ControlType : std::uint32_t { setup = 1, add_pool = 2, forget_pool = 3, stop = 4, edge = 5, ready = 16, failed = 17 };

// Packets. decode_* return one line on a packet that is not what it should be.
std::vector<std::byte> encode(const Setup& setup);
std::vector<std::byte> encode(const Ready& ready);
std::vector<std::byte> encode(const AddPool& add);
std::vector<std::byte> encode(const ForgetPool& forget);
std::vector<std::byte> encode_edge();
std::vector<std::byte> encode_stop();
std::vector<std::byte> encode_failed(const std::string& line);

Result<ControlType> type_of(const std::vector<std::byte>& packet);
Result<Setup> decode_setup(const std::vector<std::byte>& packet);
Result<Ready> decode_ready(const std::vector<std::byte>& packet);
Result<AddPool> decode_add_pool(const std::vector<std::byte>& packet);
Result<ForgetPool> decode_forget_pool(const std::vector<std::byte>& packet);
std::string decode_failed(const std::vector<std::byte>& packet);

}  // namespace leat::worker
