// What every kind of answer has in common: one item's outputs in, its result slot out. Each answer is a room of its own
// in this folder: a parser of its words, the parts it needs, and run().
//
// Thread rule: a Post is used by one thread. Errors: one line when opened; run() cannot fail. Values that are not
// finite are never shown as a class, a score or a place: what they would have decided is left out, and the answer says
// so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/frame_view.h"
#include "engine/exec/part.h"
#include "engine/exec/picture/geometry.h"
#include "engine/exec/picture/sizes.h"
#include "leat/executor.h"
#include "leat/result.hpp"
#include "leat/result_types.h"

namespace leat::exec {

class SpecLine;
struct Placement;

// One output as one item has it: without the batch.
struct ItemTensor {
  const void* data = nullptr;
  std::string_view name;
  std::uint32_t rank = 0;
  std::array<std::int64_t, 8> shape{};  // -1: known only after a run (when opening)
  std::uint8_t dtype = LEAT_F32;

  [[nodiscard]] std::int64_t last() const noexcept { return rank == 0 ? 1 : shape[rank - 1]; }
  // Product of all dimensions; 0 where one is open.
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t n = 1;
    for (std::uint32_t d = 0; d < rank; ++d) n *= shape[d] > 0 ? static_cast<std::size_t>(shape[d]) : 0;
    return n;
  }
  // Value i, whatever the type.
  [[nodiscard]] float at(std::size_t i) const noexcept;
  // "[4, 8400] float32".
  [[nodiscard]] std::string text() const;
};

// Item `row` of an output; row -1: its shape alone, as described. A tensor that is not batched belongs to the one item
// of its run, and loses leading dimensions of 1 as long as more than two are left.
ItemTensor item_of(const leat_tensor& tensor, std::int32_t row) noexcept;

// The picture that the model was given, and where the answer goes.
struct PostTarget {
  const Placement& placement;
  const FrameView& frame;
  std::int32_t detection = -1;    // >= 0: the item is that detection
  leat_result* result = nullptr;  // never null
  const Quad* corners = nullptr;  // of what the picture shows, from its top left on; null: the frame or the box
  leat_part* parts = nullptr;     // this module's entries of the directory, as many as parts() are; null: none
  Piece piece;                    // of what the item shows: they come in order, and the last one ends the answer
};

// What a Post is opened for.
struct PostSetting {
  std::span<const ItemTensor> outputs;              // shapes of one item
  std::uint32_t input_width = 0, input_height = 0;  // of the model's picture; 0: none, or it varies
  std::span<const std::string> labels;
  std::string_view model;        // its file: what a relative path stands beside
  std::uint32_t first_head = 0;  // what its first output is called in the labels it gives
};

// Whether the numbers that decide an answer are finite: all of them; not all, and the rest answers; or too few.
enum class Numbers : std::uint8_t { all, some, none };
[[nodiscard]] inline Numbers numbers_of(bool all_finite, bool rest_answers) noexcept {
  return all_finite ? Numbers::all : rest_answers ? Numbers::some : Numbers::none;
}
struct Answered {
  std::uint32_t found = 0;  // detections written, for the modules that follow
  Numbers numbers = Numbers::all;
};

class Post {
 public:
  virtual ~Post() = default;
  // The most that one item can need.
  [[nodiscard]] virtual std::vector<PartSpec> parts() const { return {}; }
  // Whether run() makes one answer of several pieces.
  [[nodiscard]] virtual bool joins() const { return false; }
  virtual Answered run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept = 0;
};
// An answer that is of this kind as a whole: what another kind would have left there is cleared.
inline void begin_answer(leat_result& result, std::uint32_t kind) noexcept {
  result.kind = kind;
  result.detection_count = result.detections_left_out = result.class_count = 0;
  result.checksum = 0;
}
using OpenedPost = Result<std::unique_ptr<Post>>;

}  // namespace leat::exec
