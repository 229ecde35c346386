// Small models on a device, for tests: pictures of 64 pixels, what they are given and what they answer.
#pragma once

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "engine/exec/onnx/onnx_split.h"
#include "leat/frame_format.h"

namespace leat {

struct Batch {
  Batch(std::uint32_t batch, std::uint8_t seed) : pixels(64 * 64 * 3), answers(batch), items(batch), reports(batch) {
    for (std::size_t p = 0; p < pixels.size(); ++p) pixels[p] = static_cast<std::uint8_t>(p * seed / 7);
    for (std::uint32_t i = 0; i < batch; ++i) {
      items[i].frame.planes[0] = pixels.data();
      items[i].frame.strides[0] = 64 * 3;
      items[i].frame.format = LEAT_FORMAT_rgb24;
      items[i].frame.width = items[i].frame.height = 64;
      items[i].frame.bytes = pixels.size();
      items[i].result = &answers[i];
    }
  }
  std::vector<std::uint8_t> pixels;
  std::vector<leat_result> answers;
  std::vector<exec::Item> items;
  std::vector<exec::ItemReport> reports;
};

struct Classifier {
  using Extra = std::vector<std::pair<std::string, std::string>>;
  explicit Classifier(exec::Device& device, Extra extra = {}, const std::string& model = LEAT_MODELS "/classify.onnx",
                      std::uint32_t batch_max = 4, std::uint32_t sets = 1) {
    exec::ModuleSpec spec;
    spec.name = "graphs/classify";
    spec.model_path = model;
    spec.preprocess = "stretch mean=0.5 std=0.5";
    spec.postprocess = "classes";
    spec.batch_max = batch_max;
    spec.sets = sets;
    spec.device = &device;
    spec.extra = std::move(extra);
    auto opened = exec::Module::open(spec);
    if (opened.ok())
      module = std::move(*opened);
    else
      error = opened.error();
    if (!error.empty()) std::fprintf(stderr, "%s\n", error.c_str());
  }
  // The answers to `batch` pictures of this seed.
  std::vector<leat_result> run(std::uint32_t batch, std::uint8_t seed) {
    Batch items(batch, seed);
    if (!module->run(items.items, items.reports)) return {};
    return items.answers;
  }
  std::unique_ptr<exec::Module> module;
  std::string error;  // why there is none
};

// The same in two stages whose features lie in rows of device memory that move from batch to batch.
struct TwoStages {
  TwoStages(exec::Device& device, std::vector<std::pair<std::string, std::string>> extra = {}) : device_(device) {
    const auto graph = exec::OnnxGraph::read(LEAT_MODELS "/classify.onnx");
    if (!graph.ok() || graph->cuts().empty()) return;
    const exec::OnnxCut& cut = graph->cuts()[graph->cuts().size() / 2];
    row_bytes_ = cut.item_bytes;
    auto memory = device.allocate(kRows * row_bytes_);
    if (!memory.ok()) return;
    rows_ = std::move(*memory);
    for (const bool last : {false, true}) {
      exec::ModuleSpec spec;
      spec.name = last ? "graphs/last" : "graphs/first";
      spec.model_path = LEAT_MODELS "/classify.onnx";
      spec.preprocess = "stretch mean=0.5 std=0.5";
      spec.postprocess = last ? "classes" : "";
      spec.batch_max = 4;
      spec.device = &device;
      spec.extra = extra;
      spec.cuts = {cut.tensor};
      spec.first_block = last ? 1 : 0, spec.end_block = last ? 2 : 1;
      spec.first_stage = !last, spec.last_stage = last;
      spec.picture_width = spec.picture_height = 64;
      auto opened = exec::Module::open(spec);
      if (opened.ok())
        module[last ? 1 : 0] = std::move(*opened);
      else
        std::fprintf(stderr, "%s\n", opened.error().c_str());
    }
  }
  // Features from this row on.
  std::vector<leat_result> run(std::uint32_t batch, std::uint8_t seed, std::uint32_t row) {
    std::byte* const at = rows_.data() + row * row_bytes_;
    Batch items(batch, seed);
    // Whatever lay in the rows before is not what is read.
    const std::vector<std::byte> old(batch * row_bytes_, std::byte{0x7f});
    if (!device_.copy(at, old.data(), old.size()) || !device_.wait()) return {};
    if (!module[0]->run(items.items, items.reports, nullptr, at)) return {};
    if (!module[1]->run(items.items, items.reports, at, nullptr)) return {};
    return items.answers;
  }
  static constexpr std::uint32_t kRows = 16;
  std::array<std::unique_ptr<exec::Module>, 2> module;

 private:
  exec::Device& device_;
  exec::DeviceBuffer rows_;
  std::uint64_t row_bytes_ = 0;
};

inline bool same(const std::vector<leat_result>& a, const std::vector<leat_result>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

}  // namespace leat
