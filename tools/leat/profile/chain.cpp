#include "tools/leat/profile/chain.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <future>
#include <random>
#include <span>

#include "engine/exec/onnx/onnx_split.h"
#include "engine/exec/registry.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

namespace leat::tools {
namespace {

constexpr std::uint32_t kMaxTensors = 16;
constexpr std::size_t kErrorBytes = 512;
constexpr std::uint16_t kHalfOne = 0x3c00;

// Floats from a standard normal distribution; halves of size one, of either sign; whole numbers zero: indexes that
// every model takes.
void draw(std::vector<std::byte>& at, std::uint8_t dtype, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::fill(at.begin(), at.end(), std::byte{0});
  for (std::size_t i = 0; dtype == LEAT_F32 && i + 4 <= at.size(); i += 4) {
    const float value = normal(random);
    std::memcpy(at.data() + i, &value, 4);
  }
  for (std::size_t i = 0; dtype == LEAT_F16 && i + 2 <= at.size(); i += 2) {
    const std::uint16_t value = static_cast<std::uint16_t>(kHalfOne | (random() & 0x8000));
    std::memcpy(at.data() + i, &value, 2);
  }
}

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023, sign = (bits & 0x8000) != 0 ? -1 : 1;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

std::size_t append(const leat_tensor& t, const std::byte* at, std::vector<double>& out) {
  switch (t.dtype) {
    case LEAT_F32:
      return out.push_back(read<float>(at)), 4;
    case LEAT_F16:
      return out.push_back(half(read<std::uint16_t>(at))), 2;
    case LEAT_I64:
      return out.push_back(static_cast<double>(read<std::int64_t>(at))), 8;
    case LEAT_I32:
      return out.push_back(read<std::int32_t>(at)), 4;
    default:
      return out.push_back(read<std::uint8_t>(at)), 1;
  }
}

}  // namespace

Result<Chain> Chain::open(const ChainSpec& spec, cli::Progress* progress) {
  Chain out;
  out.executor_ = exec::onnx_executor();
  out.device_ = spec.device;
  const auto blocks = static_cast<std::uint32_t>(spec.cuts.size()) + 1;
  const std::string extra = spec.cuts.empty() ? "" : "cuts=" + exec::join_cuts(spec.cuts) + "\n";
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const leat_session_options options{.model_path = spec.model_path.c_str(),
                                       .first_block = b,
                                       .end_block = spec.cuts.empty() ? UINT32_MAX : b + 1,
                                       .batch_max = spec.batch_max,
                                       .threads = spec.threads,
                                       .extra = extra.c_str(),
                                       .device_api = spec.device != nullptr ? spec.device->api() : nullptr,
                                       .device = spec.device != nullptr ? spec.device->handle() : nullptr};
    leat_session* session = nullptr;
    char error[kErrorBytes] = "";
    if (out.executor_->open(&options, &session, error, sizeof error) != 0) return Error{error};
    out.stages_.emplace_back();
    out.stages_.back().session = {session, Closer{out.executor_}};
    if (progress != nullptr) progress->add(1);
  }
  return out;
}

// Buffers for these tensors, on the device with what is in `host`.
Status Chain::place(std::vector<leat_tensor>& tensors, std::vector<std::vector<std::byte>>& host, Stage& stage) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].data = host[i].data();
    if (device_ == nullptr) continue;
    auto made = device_->allocate(tensors[i].bytes);
    if (!made.ok()) return Error{made.error()};
    if (!device_->copy(made->data(), host[i].data(), host[i].size()) || !device_->wait())
      return Error{device_->error()};
    tensors[i].data = made->data();
    stage.there.push_back(std::move(*made));
  }
  return Done{};
}

Status Chain::prepare(std::uint32_t batch, std::uint64_t seed) {
  batch_ = batch;
  std::mt19937_64 random(seed);
  for (std::size_t b = 0; b < stages_.size(); ++b) {
    Stage& stage = stages_[b];
    leat_tensor inputs[kMaxTensors], outputs[kMaxTensors];
    std::uint32_t input_count = kMaxTensors, output_count = kMaxTensors;
    char error[kErrorBytes] = "";
    if (executor_->describe(stage.session.get(), batch, inputs, &input_count, outputs, &output_count, error,
                            sizeof error) != 0)
      return Error{error};
    for (const leat_tensor& in : std::span(inputs, b == 0 ? input_count : 0))
      if (std::any_of(in.shape, in.shape + in.rank, [](auto size) { return size <= 0; }))
        return Error{
            "the model leaves the size of its input open; name leatd's configuration, which says it, with --config "
            "(leat serve --print MODEL -o leatd.toml makes one)"};
    stage.inputs.assign(inputs, inputs + input_count);
    stage.outputs.assign(outputs, outputs + output_count);
    stage.output_buffers.resize(output_count);
    for (std::uint32_t i = 0; i < output_count; ++i) stage.output_buffers[i].assign(outputs[i].bytes, std::byte{0});
    stage.there.clear();
    if (auto placed = place(stage.outputs, stage.output_buffers, stage); !placed) return placed;
    if (b > 0) {  // one tensor crosses each cut
      stage.inputs[0].data = stages_[b - 1].outputs[0].data;
      continue;
    }
    input_buffers_.resize(input_count);
    for (std::uint32_t i = 0; i < input_count; ++i) {
      input_buffers_[i].resize(inputs[i].bytes);
      draw(input_buffers_[i], inputs[i].dtype, random);
    }
    if (auto placed = place(stage.inputs, input_buffers_, stage); !placed) return placed;
  }
  return Done{};
}

Status Chain::run(std::span<std::int64_t> ns) {
  char error[kErrorBytes] = "";
  for (std::size_t b = 0; b < stages_.size(); ++b) {
    Stage& s = stages_[b];
    const std::int64_t start = shm::monotonic_ns();
    if (executor_->run(s.session.get(), batch_, s.inputs.data(), static_cast<std::uint32_t>(s.inputs.size()),
                       s.outputs.data(), static_cast<std::uint32_t>(s.outputs.size()), error, sizeof error) != 0)
      return Error{error};
    if (device_ != nullptr && !device_->wait()) return Error{device_->error()};
    if (device_ != nullptr && executor_->finish(s.session.get(), error, sizeof error) != 0) return Error{error};
    ns[b] = shm::monotonic_ns() - start;
  }
  return Done{};
}

std::vector<double> Chain::answer() const {
  std::vector<double> out;
  for (const leat_tensor& t : stages_.back().outputs) {
    const auto* at = static_cast<const std::byte*>(t.data);
    for (std::size_t i = 0; i < t.bytes;) i += append(t, at + i, out);
  }
  return out;
}

Result<ModuleChain> ModuleChain::open(const ChainSpec& spec, cli::Progress* progress) {
  const ModuleAround& around = *spec.around;
  ModuleChain out;
  out.crops_ = around.crops;
  out.picture_ = std::make_unique<worker::Picture>(around.crops, around.frame_width, around.frame_height);
  const auto last = static_cast<std::uint32_t>(spec.cuts.size());
  for (std::uint32_t b = 0; b <= last; ++b) {
    exec::ModuleSpec m{.name = around.name,
                       .executor = "onnx",
                       .model_path = spec.model_path,
                       .as = around.as,
                       .preprocess = around.preprocess,
                       .postprocess = around.postprocess,
                       .labels = around.labels};
    m.batch_max = spec.batch_max, m.threads = spec.threads;
    m.first_block = b, m.end_block = last == 0 ? UINT32_MAX : b + 1;
    m.cuts = spec.cuts;
    m.first_stage = b == 0, m.last_stage = b == last;
    m.picture_width = around.picture_width, m.picture_height = around.picture_height;
    m.extra = around.extra;
    m.device = spec.device;
    auto module = exec::Module::open(m);
    if (!module) return Error{module.error()};
    const std::uint64_t bytes = (*module)->feature_bytes_out() * spec.batch_max;
    out.features_.emplace_back(spec.device == nullptr ? bytes : 0);
    if (spec.device != nullptr) {
      auto there = spec.device->allocate(bytes);
      if (!there.ok()) return Error{there.error()};
      out.features_there_.push_back(std::move(*there));
    }
    out.stages_.push_back(std::move(*module));
    if (progress != nullptr) progress->add(1);
  }
  return out;
}

Status ModuleChain::prepare(std::uint32_t batch, std::uint64_t) {
  batch_ = batch;
  if (const auto all = sizes(); !all.empty()) show(all.back());
  return Done{};
}

void ModuleChain::show(exec::Size size) {
  picture_ = std::make_unique<worker::Picture>(worker::Picture::of_size(crops_, size));
}

Status ModuleChain::run(std::span<std::int64_t> ns) {
  std::array<exec::ItemReport, exec::kMaxRows> reports;
  const auto items = picture_->items(batch_);
  const auto features = [&](std::size_t b) {
    return features_there_.empty() ? features_[b].data() : features_there_[b].data();
  };
  for (std::size_t b = 0; b < stages_.size(); ++b) {
    const std::int64_t start = shm::monotonic_ns();
    if (!stages_[b]->run(items, {reports.data(), batch_}, b == 0 ? nullptr : features(b - 1),
                         b + 1 == stages_.size() ? nullptr : features(b)))
      return Error{std::string(stages_[b]->error())};
    ns[b] = shm::monotonic_ns() - start;
  }
  return Done{};
}

Result<std::unique_ptr<Runner>> open_runner(const ChainSpec& spec, cli::Progress* progress) {
  if (spec.around) {
    auto chain = ModuleChain::open(spec, progress);
    if (!chain) return Error{chain.error()};
    return std::unique_ptr<Runner>(std::make_unique<ModuleChain>(std::move(*chain)));
  }
  auto chain = Chain::open(spec, progress);
  if (!chain) return Error{chain.error()};
  return std::unique_ptr<Runner>(std::make_unique<Chain>(std::move(*chain)));
}

BusyNeighbours::~BusyNeighbours() {
  stop_.store(true, std::memory_order_relaxed);  // join() orders the rest
  for (auto& t : threads_) t.join();
}

Status BusyNeighbours::start(const ChainSpec& spec, std::uint32_t batch,
                             const std::vector<std::vector<std::uint32_t>>& neighbours) {
  std::vector<std::future<std::string>> running;  // empty text: it runs
  for (const auto& cores : neighbours) {
    std::promise<std::string> told;
    running.push_back(told.get_future());
    ChainSpec mine = spec;
    mine.threads = static_cast<std::uint32_t>(cores.size());
    threads_.emplace_back([this, mine, batch, cores, told = std::move(told)]() mutable {
      if (auto pinned = pin_thread(cores); !pinned) return told.set_value(pinned.error());
      auto chain = open_runner(mine);
      if (!chain) return told.set_value(chain.error());
      std::vector<std::int64_t> ns((*chain)->blocks());
      auto status = (*chain)->prepare(batch, 1);
      if (status) status = (*chain)->run(ns);
      told.set_value(status ? "" : status.error());
      while (status && !stop_.load(std::memory_order_relaxed)) status = (*chain)->run(ns);
    });
  }
  for (auto& r : running) {
    if (const std::string problem = r.get(); !problem.empty()) return Error{"a busy neighbour cannot run: " + problem};
  }
  return Done{};
}

}  // namespace leat::tools
