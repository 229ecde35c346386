// What latencies are measured on: a grey NV12 frame, and for modules that take crops a result whose one detection
// covers its middle; for modules that take tensors, tensors of zeros. Thread rule: one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/exec/module.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::worker {

class Picture {
 public:
  explicit Picture(bool crops, std::uint32_t width = 1280, std::uint32_t height = 720)
      : crops_(crops),
        width_(width),
        height_(height),
        box_width_(static_cast<float>(width) / 2),
        box_height_(static_cast<float>(height) / 2),
        pixels_(std::size_t{width} * height * 3 / 2, 128),
        results_(exec::kMaxRows) {}

  // For a module whose pictures vary in size: what is given that size.
  static Picture of_size(bool crops, exec::Size size) {
    const auto even = [](std::uint32_t n) { return (n + 1) / 2 * 2; };
    if (!crops) return Picture(false, even(size.width), even(size.height));
    Picture out(true);
    const float w = static_cast<float>(size.width), h = static_cast<float>(size.height);
    const float scale = std::min({1.0f, static_cast<float>(out.width_) / w, static_cast<float>(out.height_) / h});
    out.box_width_ = scale * w, out.box_height_ = scale * h;
    return out;
  }

  // For a module that takes tensors of these shapes.
  explicit Picture(std::vector<leat_tensor_shape> tensors)
      : crops_(false), width_(0), height_(0), tensors_(std::move(tensors)), results_(exec::kMaxRows) {
    std::uint64_t bytes = 0;
    for (const leat_tensor_shape& t : tensors_) bytes += shm::round_up(shm::tensor_bytes(t), shm::kLine);
    pixels_.resize(bytes);
  }

  // A batch of `count` items, at most kMaxRows, all of this frame; valid until the next call.
  std::span<const exec::Item> items(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      leat_result& r = results_[i];
      r = {};
      r.version = LEAT_RESULT_VERSION;
      r.kind = LEAT_RESULT_DETECTIONS;
      r.frame_width = width_;
      r.frame_height = height_;
      r.detection_count = 1;
      const float w = static_cast<float>(width_), h = static_cast<float>(height_);
      r.detections[0].x0 = (w - box_width_) / 2, r.detections[0].x1 = (w + box_width_) / 2;
      r.detections[0].y0 = (h - box_height_) / 2, r.detections[0].y1 = (h + box_height_) / 2;
      exec::FrameView f;
      if (!tensors_.empty()) {
        f.planes[0] = pixels_.data();
        f.format = LEAT_FORMAT_tensors;
        f.bytes = pixels_.size();
        f.tensors = tensors_.data(), f.tensor_count = static_cast<std::uint32_t>(tensors_.size());
        items_[i] = {.frame = f, .result = &r};
        continue;
      }
      f.planes[0] = pixels_.data();
      f.planes[1] = pixels_.data() + std::size_t{width_} * height_;
      f.strides[0] = f.strides[1] = width_;
      f.format = LEAT_FORMAT_nv12;
      f.width = width_;
      f.height = height_;
      f.bytes = pixels_.size();
      items_[i] = {.frame = f, .result = &r, .detection = crops_ ? 0 : -1, .rows = 1};
    }
    return {items_.data(), count};
  }

 private:
  bool crops_;
  std::uint32_t width_, height_;  // even
  float box_width_ = 0, box_height_ = 0;
  std::vector<leat_tensor_shape> tensors_;
  std::vector<std::uint8_t> pixels_;
  std::vector<leat_result> results_;
  std::array<exec::Item, exec::kMaxRows> items_;
};

// One for each size that the module's pictures have; one where they have one size.
inline std::vector<Picture> pictures_for(const exec::Module& module, bool crops) {
  std::vector<Picture> out;
  if (std::vector<leat_tensor_shape> tensors = module.tensor_shapes(); !tensors.empty()) {
    out.emplace_back(std::move(tensors));
    return out;
  }
  for (const exec::Size size : module.sizes()) out.push_back(Picture::of_size(crops, size));
  if (out.empty()) out.emplace_back(crops);
  return out;
}

}  // namespace leat::worker
