// extra=mask of boxes: one mask for each box, as a sum of prototypes that the model makes once a picture (Bolya, Zhou,
// Xiao and Lee, "YOLACT: Real-time Instance Segmentation", 2019, equation 1, as Ultralytics' -seg models use it without
// its sigmoid):
//   m(x, y) = sum over k of c_k P_k(y, x) > 0,  within the box
// P is an output [K, h, w] over the whole of the model's picture; c are K numbers that stand with the box. The mask is
// the cells whose top left corner lies in the box, at the prototypes' scale; a box that holds none has a grid of 0 x 0.
//
// Part `masks`: as leat/result_parts.h reads it, at most LEAT_MAX_DETECTIONS, row i that of detection i. One thread.
#pragma once

#include "engine/exec/decode/post.h"
#include "engine/exec/picture/box.h"

namespace leat::exec {

class Masks {
 public:
  // Error: what is missing, to be said behind the name of the layout. `first`: the output that is not looked at.
  static Result<Masks> open(std::span<const ItemTensor> outputs, std::uint32_t first);

  [[nodiscard]] PartSpec part() const;
  [[nodiscard]] std::uint32_t coefficients() const noexcept { return static_cast<std::uint32_t>(c_.size()); }

  void begin(const PostTarget& target, leat_part& part) noexcept;
  // The box is in pixels of the model's picture of these sides; coefficient(k) are its numbers. False:
  // what decides some cell of it is not finite, and those cells are not of the object.
  template <class F>
  [[nodiscard]] bool add(std::span<const ItemTensor> outputs, const Box& box, float width, float height,
                         F coefficient) noexcept {
    for (std::size_t k = 0; k < c_.size(); ++k) c_[k] = coefficient(k);
    return draw(outputs[prototypes_], box, width, height);
  }
  void end() noexcept;

 private:
  [[nodiscard]] bool draw(const ItemTensor& prototypes, const Box& box, float width, float height) noexcept;

  std::uint32_t prototypes_ = 0, rows_ = 0, columns_ = 0;  // the output, and its h and w
  std::vector<float> c_, line_;                            // of the box and of one row of cells
  const PostTarget* target_ = nullptr;                     // of the item in hand, with its entry of the directory
  leat_part* entry_ = nullptr;
  std::uint32_t count_ = 0, used_ = 0;  // masks written; bytes of bits
};

}  // namespace leat::exec
