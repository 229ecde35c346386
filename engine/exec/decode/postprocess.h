// From a model's outputs to the frame's result slot: one decoder for each kind of answer.
//
// One line of text describes it (a module's `postprocess`); each decoder is a file, whose first lines say what it
// reads: boxes (boxes/boxes.h), classes and heads (classes/), points, map, segments, embedding, tensors, checksum
// (files of their names), lines and text (text/). from=NAME, beside those that read one output alone: that output
// instead of the first.
//
// Thread rule: a Postprocessor is used by one thread. Errors: parse() and open() one line; run() cannot fail, and says
// whether the numbers were finite (Answered).
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

struct PostprocessSpec {
  std::string from;                                    // the output that is read in place of the first; empty: none
  std::function<OpenedPost(const PostSetting&)> open;  // the decoder
  std::string outdated;  // one line where a word of an earlier version was written: which it is now; empty: none was
};
Result<PostprocessSpec> parse_postprocess(std::string_view line);

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
  // corners, piece: PostTarget's. Detections written: what was found, up to the result's room.
  Answered run(std::span<const leat_tensor> outputs, std::uint32_t row, const Placement& placement,
               const FrameView& frame, std::int32_t detection, leat_result* result, leat_part* parts = nullptr,
               const Quad* corners = nullptr, const Piece& piece = {}) noexcept;
  // The parts of the directory that one item's answer needs; `parts` of run() is the first of them.
  [[nodiscard]] std::vector<PartSpec> parts() const { return post_ ? post_->parts() : std::vector<PartSpec>(); }
  [[nodiscard]] bool joins() const { return post_ && post_->joins(); }
  // Set where the outputs themselves are the answer.
  [[nodiscard]] const TensorsPost* tensors() const noexcept { return tensors_; }

 private:
  std::unique_ptr<Post> post_;
  std::size_t first_ = 0;           // the output that is read as the first
  TensorsPost* tensors_ = nullptr;  // post_, where it is that
};

}  // namespace leat::exec
