// Answers of every kind for tests of drawings, about pictures made here: what a model would say of them. Values.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "leat/result_parts.h"
#include "tools/leat/draw/answer.h"
#include "tools/scene/scene.h"

namespace leat::tools::draw::test {

inline Picture street(std::uint32_t width, std::uint32_t height, std::uint64_t frame,
                      std::vector<scene::Object>* objects) {
  scene::Scene scene({.seed = 7, .camera = 0, .width = width, .height = height});
  std::vector<std::uint8_t> rgb(scene.rgb_bytes());
  const auto seen = scene.render(frame, rgb.data(), std::size_t{3} * width);
  if (objects != nullptr) *objects = seen;
  leat_frame f{};
  f.format = LEAT_FORMAT_rgb24, f.width = width, f.height = height, f.plane_count = 1;
  f.planes[0] = rgb.data(), f.strides[0] = 3 * width;
  return picture_of(f);
}

// A result with its parts, laid out as leatd and its workers do, and names of classes.
class Answer {
 public:
  explicit Answer(leat_result_kind kind = LEAT_RESULT_PARTS) : bytes_(LEAT_PAYLOAD_OFFSET) {
    head().version = LEAT_RESULT_VERSION, head().kind = kind;
  }
  leat_result& head() { return *reinterpret_cast<leat_result*>(bytes_.data()); }

  leat_detection& detect(float x0, float y0, float x1, float y1, std::int32_t id, float score) {
    leat_detection& d = head().detections[head().detection_count++];
    d = {.x0 = x0, .y0 = y0, .x1 = x1, .y1 = y1, .score = score, .class_id = id};
    return d;
  }
  static void label(leat_detection& d, std::uint32_t of, std::int32_t id, float score) {
    d.labels[d.label_count++] = {of, id, score};
  }
  void classify(std::int32_t id, float score) { head().classes[head().class_count++] = {id, score}; }

  // payload: elements, and what stands behind them (bits, UTF-8).
  void part(leat_part_kind kind, const std::string& name, std::vector<std::uint32_t> dims, const void* payload,
            std::size_t bytes, std::uint32_t dtype = 0, leat_part_item item = LEAT_ITEM_FRAME) {
    leat_part p{};
    p.kind = static_cast<std::uint16_t>(kind), p.item = item, p.dtype = dtype;
    p.rank = static_cast<std::uint32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), p.dims);
    p.offset = (bytes_.size() + 63) / 64 * 64, p.bytes = bytes;
    name.copy(p.name, LEAT_PART_NAME_BYTES - 1);
    bytes_.resize(p.offset + bytes);
    if (bytes > 0) std::memcpy(bytes_.data() + p.offset, payload, bytes);
    std::memcpy(bytes_.data() + LEAT_PARTS_OFFSET + head().part_count++ * sizeof p, &p, sizeof p);
  }
  template <class T>
  void part(leat_part_kind kind, const std::string& name, std::vector<std::uint32_t> dims, const std::vector<T>& rows,
            std::uint32_t dtype = 0, leat_part_item item = LEAT_ITEM_FRAME) {
    part(kind, name, std::move(dims), rows.data(), rows.size() * sizeof(T), dtype, item);
  }
  struct Line {
    float x0, y0, x1, y1;
    std::string text;
    float score = 0.97F;
  };
  void text(const std::vector<Line>& lines, leat_part_item item = LEAT_ITEM_FRAME) {
    std::vector<leat_text> rows;
    std::string letters;
    for (const Line& l : lines) {
      rows.push_back({.quad = {l.x0, l.y0, l.x1, l.y0, l.x1, l.y1, l.x0, l.y1},
                      .score = l.score,
                      .offset = static_cast<std::uint32_t>(lines.size() * sizeof(leat_text) + letters.size()),
                      .length = static_cast<std::uint32_t>(l.text.size())});
      letters += l.text;
    }
    std::string payload(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(leat_text));
    payload += letters;
    part(LEAT_PART_text, "text", {static_cast<std::uint32_t>(rows.size())}, payload.data(), payload.size(), 0, item);
  }
  // One mask: an ellipse that fills the box, on a grid of its own.
  struct Blob {
    float x0, y0, x1, y1;
  };
  void masks(const std::vector<Blob>& blobs, std::uint32_t grid = 48) {
    std::vector<leat_mask> rows;
    std::vector<std::uint8_t> bits;
    const std::uint32_t row = (grid + 7) / 8;
    for (const Blob& b : blobs) {
      rows.push_back({.x0 = b.x0,
                      .y0 = b.y0,
                      .x1 = b.x1,
                      .y1 = b.y1,
                      .width = grid,
                      .height = grid,
                      .offset = static_cast<std::uint32_t>(blobs.size() * sizeof(leat_mask) + bits.size()),
                      .bytes = row * grid});
      const std::size_t from = bits.size();
      bits.resize(from + row * grid);
      for (std::uint32_t y = 0; y < grid; ++y)
        for (std::uint32_t x = 0; x < grid; ++x)
          if (std::hypot((x + 0.5) / grid - 0.5, (y + 0.5) / grid - 0.5) < 0.5)
            bits[from + y * row + x / 8] = static_cast<std::uint8_t>(bits[from + y * row + x / 8] | 1U << x % 8);
    }
    std::string payload(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(leat_mask));
    payload.append(reinterpret_cast<const char*>(bits.data()), bits.size());
    part(LEAT_PART_masks, "masks", {static_cast<std::uint32_t>(rows.size())}, payload.data(), payload.size());
  }

  void names(std::uint32_t of, std::vector<std::string> list) { names_[of] = std::move(list); }
  [[nodiscard]] AnswerView view() const {
    return {.milliseconds = 12.3,
            .result = reinterpret_cast<const leat_result*>(bytes_.data()),
            .bytes = bytes_.size(),
            .name = [this](std::uint32_t of, std::int32_t id) -> const char* {
              const auto list = names_.find(of);
              if (list == names_.end() || id < 0 || static_cast<std::size_t>(id) >= list->second.size()) return nullptr;
              return list->second[static_cast<std::size_t>(id)].c_str();
            }};
  }

 private:
  std::vector<std::byte> bytes_;
  std::map<std::uint32_t, std::vector<std::string>> names_;
};

}  // namespace leat::tools::draw::test
