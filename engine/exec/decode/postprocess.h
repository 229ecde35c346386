// From a model's outputs to the frame's result slot: boxes with non-maximum suppression, labels and top-k, checksums.
//
// One line of text describes it (a module's `postprocess`):
//   boxes [layout=maps|rows] [stride=8] [score=0.3] [overlap=0.6]
//       maps: one output [n, 4 + C, h, w]: per cell of stride x stride input pixels C logits, then the distances from
//       the
//             cell's centre to the left, top, right and bottom sides in cells (C first, so channel 0 is a lone
//             objectness).
//       rows: one output [n, 4 + C, m] (YOLO's): centre x, centre y, width, height in input pixels, then C scores 0..1.
//       Kept: score >= `score`, best first, none whose intersection over union with a better one of its class is above
//       `overlap`.
//   classes [top=5] [act=softmax|sigmoid|none]
//       every output is a head [n, C]. Behind a fan-out: one label a head is appended to the detection (head = its
//       place among the module's outputs). Otherwise the first head's best `top` classes. act: what makes scores of the
//       model's values; none: they are scores already.
//   heads [top= act=]: decode/heads.h
//   boxes layout=yolo8|yolo5|yolox|columns|split|query|levels|priors ...: boxes/boxes.h
//   points heatmap|simcc|yxs|xy|xyz: decode/points.h   map argmax|value|matte: decode/map.h
//   lines [threshold= score= grow= side=]: decode/lines.h   segments [score= length=]: decode/segments.h
//   text ctc|slots keys=FILE: decode/text.h            embedding [unit]: decode/embedding.h
//   tensors [names=a,b] [most=1000]: decode/tensors.h
//   from=NAME beside points, map, lines, text and embedding: that output instead of the first
//   checksum
//       the first output's row is 8 bytes, copied into the result (the `emulated` executor's answer).
//
// Thread rule: a Postprocessor is used by one thread. Errors: parse() and open() one line; run() cannot fail: values
// that are not finite are never kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/decode/tensors.h"
#include "engine/exec/picture/preprocess.h"
#include "leat/executor.h"
#include "leat/result.hpp"
#include "leat/result_types.h"

namespace leat::exec {

enum class Answer : std::uint8_t { checksum, boxes, classes, tensors, room };
enum class BoxLayout : std::uint8_t { maps, rows };

struct PostprocessSpec {
  Answer answer = Answer::checksum;
  BoxLayout layout = BoxLayout::maps;
  float stride = 8, score_least = 0.3f, overlap_most = 0.6f;
  std::uint32_t top = 5;
  Activation act = Activation::softmax;  // of classes
  TensorsSpec tensors;
  std::string from;                                    // the output that is read in place of the first; empty: none
  std::function<OpenedPost(const PostSetting&)> room;  // opens an answer that has a room of its own (post/)
};
Result<PostprocessSpec> parse_postprocess(std::string_view line);

struct Candidate {
  Box box;  // frame pixels, clipped
  float score = 0;
  std::int32_t class_id = 0;
};
// Sorts candidates by falling score (ties: as they stood) and keeps those of which no better one of their class
// overlaps them by more than overlap_most; at most `most`. Returns how many of the first entries are kept. No
// allocation.
std::uint32_t suppress(std::span<Candidate> candidates, float overlap_most, std::uint32_t most) noexcept;

class Postprocessor {
 public:
  Postprocessor() = default;
  // outputs: what the session describes at its largest batch. labels: ModuleSpec::labels, checked against their shapes.
  // first_head: ModuleSpec::first_head. input_width, input_height: of the model's picture. model: PostSetting's.
  static Result<Postprocessor> open(const PostprocessSpec& spec, std::span<const leat_tensor> outputs,
                                    std::span<const std::string> labels, std::uint32_t first_head = 0,
                                    std::uint32_t input_width = 0, std::uint32_t input_height = 0,
                                    std::string_view model = {});

  // Writes item `row` of the outputs into `result`. detection >= 0: labels that detection and nothing else. A head has
  // one label there however often it runs, and workers of several modules may label one detection at once.
  // corners, piece: PostTarget's. Returns the number of detections written: what was found, up to the result's room.
  std::uint32_t run(std::span<const leat_tensor> outputs, std::uint32_t row, const Placement& placement,
                    const FrameView& frame, std::int32_t detection, leat_result* result, leat_part* parts = nullptr,
                    const Quad* corners = nullptr, const Piece& piece = {}) noexcept;
  // The parts of the directory that one item's answer needs; `parts` of run() is the first of them.
  [[nodiscard]] std::vector<PartSpec> parts() const { return room_ ? room_->parts() : std::vector<PartSpec>(); }
  [[nodiscard]] bool joins() const { return room_ && room_->joins(); }
  // Set where the outputs themselves are the answer.
  [[nodiscard]] const TensorsPost* tensors() const noexcept { return tensors_; }

  [[nodiscard]] const PostprocessSpec& spec() const noexcept { return spec_; }

 private:
  std::uint32_t boxes(const leat_tensor& output, std::uint32_t row, const Placement& placement, const FrameView& frame,
                      leat_result* result) noexcept;
  void classes(std::span<const leat_tensor> outputs, std::uint32_t row, std::int32_t detection,
               leat_result* result) noexcept;

  PostprocessSpec spec_;
  std::uint32_t first_head_ = 0;
  std::size_t first_ = 0;              // the output that a room reads as the first
  std::vector<Candidate> candidates_;  // room for every cell
  std::unique_ptr<Post> room_;         // answers with a room of their own
  TensorsPost* tensors_ = nullptr;     // room_, where it is that
};

}  // namespace leat::exec
