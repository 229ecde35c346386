// A model's blocks opened and run behind each other, each timed: the model alone (Chain), or as the module of a
// configuration, with pre- and post-processing in its first and last block (ModuleChain); and the same kept busy as a
// neighbour. Ownership: a runner owns its sessions and buffers. Thread rule: one thread a runner; its compute threads
// inherit the mask of the thread that opens it. Errors: one line.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "engine/worker/measuring/picture.h"
#include "leat/executor.h"
#include "leat/result.hpp"
#include "tools/base/cli/progress.h"

namespace leat::tools {

// What a configuration puts around the model.
struct ModuleAround {
  std::string name;  // "application/module"
  std::string as = {}, preprocess, postprocess;
  std::vector<std::string> labels;
  std::vector<std::pair<std::string, std::string>> extra;
  bool crops = false;  // it takes crops of an earlier module's detections
  std::uint32_t frame_width = 1280, frame_height = 720;
  std::uint32_t picture_width = 0, picture_height = 0;  // the model's input
};

struct ChainSpec {
  std::string model_path;
  std::vector<std::string> cuts;  // a block more than cuts
  std::uint32_t batch_max = 1;
  std::uint32_t threads = 1;
  std::optional<ModuleAround> around;
  exec::Device* device = nullptr;  // where the blocks run; null: here. It outlives the runner
};

class Runner {
 public:
  virtual ~Runner() = default;
  // Sets the batch of the runs to come (1..batch_max) and draws the inputs anew.
  virtual Status prepare(std::uint32_t batch, std::uint64_t seed) = 0;
  // One batch through all blocks; ns[b]: time of block b. ns: blocks() entries.
  virtual Status run(std::span<std::int64_t> ns) = 0;
  virtual std::uint32_t blocks() const = 0;
  // Of a module whose pictures vary, smallest first; prepare() shows the largest. show(): the runs to come see this
  // one.
  [[nodiscard]] virtual std::vector<exec::Size> sizes() const { return {}; }
  virtual void show(exec::Size) {}
};

// A ModuleChain where spec.around stands, else a Chain. progress: one more for each block opened; may be null.
Result<std::unique_ptr<Runner>> open_runner(const ChainSpec& spec, cli::Progress* progress = nullptr);

class Chain final : public Runner {
 public:
  static Result<Chain> open(const ChainSpec& spec, cli::Progress* progress = nullptr);

  Status prepare(std::uint32_t batch, std::uint64_t seed) override;
  Status run(std::span<std::int64_t> ns) override;
  std::uint32_t blocks() const override { return static_cast<std::uint32_t>(stages_.size()); }
  // Of the last run here, all outputs behind each other, as numbers; never of one on a device.
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
    std::vector<exec::DeviceBuffer> there;  // on a device: what the tensors' data points into
  };
  Status place(std::vector<leat_tensor>& tensors, std::vector<std::vector<std::byte>>& host, Stage& stage);
  exec::Device* device_ = nullptr;
  std::vector<Stage> stages_;
  std::vector<std::vector<std::byte>> input_buffers_;
  std::uint32_t batch_ = 0;
  const leat_executor* executor_ = nullptr;
};

class ModuleChain final : public Runner {
 public:
  // Precondition: spec.around.
  static Result<ModuleChain> open(const ChainSpec& spec, cli::Progress* progress = nullptr);
  Status prepare(std::uint32_t batch, std::uint64_t seed) override;  // the seed does not matter: a grey frame
  Status run(std::span<std::int64_t> ns) override;
  std::uint32_t blocks() const override { return static_cast<std::uint32_t>(stages_.size()); }
  [[nodiscard]] std::vector<exec::Size> sizes() const override { return stages_.front()->sizes(); }
  void show(exec::Size size) override;

 private:
  std::vector<std::unique_ptr<exec::Module>> stages_;
  std::vector<std::vector<std::byte>> features_;    // [b]: from block b to the next
  std::vector<exec::DeviceBuffer> features_there_;  // the same on a device
  std::unique_ptr<worker::Picture> picture_;
  bool crops_ = false;
  std::uint32_t batch_ = 1;
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
