// A model's blocks opened as sessions and run behind each other, each timed; and the same kept busy as a neighbour.
// Ownership: a Chain owns its sessions and buffers. Thread rule: one thread a Chain; its compute threads inherit the mask of
// the thread that opens it. Errors: one line.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/exec/executor.h"
#include "leat/result.hpp"
#include "tools/cli/progress.h"

namespace leat::tools {

struct ChainSpec {
  std::string model_path;
  std::vector<std::string> cuts;   // a block more than cuts
  std::uint32_t batch_max = 1;
  std::uint32_t threads = 1;
};

class Chain {
 public:
  // progress: one more for each block opened; may be null.
  static Result<Chain> open(const ChainSpec& spec, cli::Progress* progress = nullptr);

  // Sets the batch of the runs to come (1..batch_max) and draws the model's inputs anew.
  Status prepare(std::uint32_t batch, std::uint64_t seed);
  // One batch through all blocks; ns[b]: time of block b. ns: blocks() entries.
  Status run(std::span<std::int64_t> ns);
  std::uint32_t blocks() const { return static_cast<std::uint32_t>(stages_.size()); }
  // Of the last run, all outputs behind each other, as numbers.
  std::vector<double> answer() const;

 private:
  struct Closer {
    const leat_executor* executor;
    void operator()(leat_session* s) const { executor->close(s); }
  };
  struct Stage {
    std::unique_ptr<leat_session, Closer> session{nullptr, {nullptr}};
    std::vector<leat_tensor> inputs, outputs;  // data points into buffers
    std::vector<std::vector<std::byte>> output_buffers;
  };
  std::vector<Stage> stages_;
  std::vector<std::vector<std::byte>> input_buffers_;
  std::uint32_t batch_ = 0;
  const leat_executor* executor_ = nullptr;
};

// Threads that run the chain's model again and again until this object ends. neighbours[i]: the cores of the i-th.
class BusyNeighbours {
 public:
  BusyNeighbours() = default;
  ~BusyNeighbours();
  BusyNeighbours(const BusyNeighbours&) = delete;
  BusyNeighbours& operator=(const BusyNeighbours&) = delete;
  // Returns when all of them run.
  Status start(const ChainSpec& spec, std::uint32_t batch, const std::vector<std::vector<std::uint32_t>>& neighbours);

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace leat::tools
