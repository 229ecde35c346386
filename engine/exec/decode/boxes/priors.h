// boxes layout=priors set=...: boxes that a model tells relative to prior boxes, which stand in no file of its own. The
// priors follow from the size of the model's input; p is one, in pixels, d the model's numbers for it:
//   retinaface  outputs loc [n, 4], conf [n, C], landms [n, 10] (optional); strides 8, 16, 32, two squares a cell of
//               16 32, 64 128, 256 512 pixels: cx = p.cx + .1 d0 p.w, w = p.w exp(.2 d2), and so for y; a point is
//               p.cx + .1 d p.w. Class 0 is the background. (Deng and others, "RetinaFace", 2019, as exported by
//               Pytorch_Retinaface)
//   retinanet   5 outputs [9 C, h, w] of scores and 5 of [36, h, w]; strides 8 to 128, nine boxes a cell: sizes
//               4 s 2^(i / 3) of the stride s, i = 0 1 2, with heights to widths of 1, 2 and 1/2; p.w is a pixel more
//               than that and p.cx half a pixel further: cx = p.cx + d0 p.w, w = p.w exp(d2); a box ends a pixel
//               before its width. (Lin and others, "Focal Loss for Dense Object Detection", 2017, as in ONNX's zoo)
//   blazeface   regressors [n, 16] and classificators [n, 1], each one tensor or one for each grid; two a cell of a
//               16th of the input's width and six of an 8th: centre and points are p's plus d, w and h are d; the
//               score's sigmoid. (Bazarevsky and others, "BlazeFace", 2019, as in MediaPipe)
//   palm        the same with [n, 18], seven points; two a cell of 8 pixels and six of 16 (MediaPipe's hands, 192 x
//   192) person      the same with [n, 12], four points; two a cell of 8 pixels, two of 16, six of 32 (MediaPipe's
//   poses) ultraface   boxes [n, 4], scores [n, C]; grids of ceil(side / 8, 16, 32, 64), squares of 10 16 24 / 32 48 /
//   64 96 /
//               128 192 256 pixels round (i + .5) of the picture's side divided by the grid's, nothing of a prior
//               longer than the picture: cx = p.cx + .1 d0 p.w, w = p.w exp(.2 d2). Class 0 is the background.
//               (Linzaer, Ultra-Light-Fast-Generic-Face-Detector-1MB, files without post-processing)
// Data plane after open(): no allocation.
#pragma once

#include "engine/exec/decode/boxes/layout.h"

namespace leat::exec {

class Priors {
 public:
  struct Prior {
    float cx, cy, w, h;
    std::uint32_t level, row;  // row: of the outputs; with retinanet, anchor * cells + cell of the level
  };
  struct CentredBox {
    float cx = 0, cy = 0, w = 0, h = 0;
  };

  // Refused where the outputs are not the set's, or are of another number of priors than the input's size makes.
  static Result<Priors> open(PriorSet set, const LayoutSetting& setting);
  static bool scores_are_logits(PriorSet set) noexcept {
    return set == PriorSet::blazeface || set == PriorSet::palm || set == PriorSet::person;
  }

  [[nodiscard]] std::uint32_t points() const noexcept { return points_; }
  // Of a score's numbers; first counts from the background on.
  [[nodiscard]] std::size_t classes() const noexcept { return classes_; }

  // Calls each(prior) for every prior of an input of this size that the outputs have numbers for.
  template <class Each>
  void for_each(std::span<const ItemTensor> outputs, float width, float height, Each&& each) const;

  [[nodiscard]] float score(std::span<const ItemTensor> outputs, const Prior& p, std::size_t class_id) const noexcept;
  [[nodiscard]] CentredBox box(std::span<const ItemTensor> outputs, const Prior& p) const noexcept;
  [[nodiscard]] leat_keypoint point(std::span<const ItemTensor> outputs, const Prior& p, std::uint32_t k,
                                    float score) const noexcept;
  // The prior again by what a found box remembers of it.
  [[nodiscard]] Prior prior(std::uint32_t level, std::uint32_t row, float width, float height) const noexcept;

 private:
  struct Grid {
    std::uint32_t columns, rows, first, anchors;  // first: row of the outputs where the level begins
    float stride, down;                           // of a cell: across, and down where that differs
    [[nodiscard]] std::uint32_t cells() const noexcept { return columns * rows; }
  };
  [[nodiscard]] std::uint32_t levels() const noexcept;
  [[nodiscard]] Grid grid(std::uint32_t level, float width, float height) const noexcept;
  [[nodiscard]] Prior at(const Grid& g, std::uint32_t level, std::uint32_t cell, std::uint32_t anchor) const noexcept;

  static Status find_retinanet(Priors& out, const LayoutSetting& setting);
  Status find_rows(const LayoutSetting& setting);
  // MediaPipe's: centres alone.
  [[nodiscard]] bool blaze() const noexcept { return scores_are_logits(set_); }
  // Numbers of one row of the boxes' output.
  [[nodiscard]] std::uint32_t numbers() const noexcept;
  // Where a prior's row lies: the place in scores_ and boxes_, and the row there.
  struct Place {
    std::size_t tensor, row;
  };
  [[nodiscard]] Place place_of(const Prior& p) const noexcept;

  PriorSet set_ = PriorSet::retinaface;
  std::uint32_t points_ = 0;
  std::size_t classes_ = 1;
  std::array<std::uint32_t, 5> scores_{}, boxes_{};  // outputs; by level where there is one for each, else the first
  bool by_level_ = false;
  std::array<std::uint32_t, 5> first_{};  // [level] row of all where it begins, where each has an output
  std::uint32_t marks_ = kNoOutput;       // output of retinaface's points
};

template <class Each>
void Priors::for_each(std::span<const ItemTensor> outputs, float width, float height, Each&& each) const {
  for (std::uint32_t l = 0; l < levels(); ++l) {
    const Grid g = grid(l, width, height);
    const std::size_t have = (by_level_ ? first_[l] : 0) + outputs[boxes_[by_level_ ? l : 0]].count() / numbers();
    for (std::uint32_t cell = 0; cell < g.cells(); ++cell)
      for (std::uint32_t a = 0; a < g.anchors; ++a)
        if (const Prior p = at(g, l, cell, a); p.row < have) each(p);
  }
}

}  // namespace leat::exec
