// How large the picture is that a model is given, where the model leaves that open and the line of `preprocess` lets it
// vary. What is cut out of a frame has proportions; they decide:
//   longest=L [shortest=S] [multiple=M]   larger pictures are made smaller until no side is above L (with shortest=,
//                     smaller ones larger until no side is below S first); each side is then the nearest multiple of M
//                     (default 1), up with `letterbox`. Without `letterbox` the picture is stretched to that, as
//                     PP-OCR's detectors do
//   edge=S longest=L   the shorter side becomes S, and the longer what the proportions make of it, but at most L: then
//   it
//                     is L and the shorter one follows (DETR's, `shortest_edge` in Hugging Face's processors; the
//                     longer side loses its fraction)
//   height=H widths=A,B,...   height H, and the narrowest of these widths that the picture fits into in its
//                     proportions. The rest is filled with pad
//   height=H longest=L [multiple=M]   height H, and any width up to L, rounded up to a multiple of M
//   wide=squeeze|split|start   beside height=: what becomes of a picture that is wider than the widest. It is squeezed
//                     into that (the default; each one is counted); or it is shown in pieces that overlap by twice the
//                     height, whose texts are joined (for `text ctc`; at most 8, into which what is wider still is
//                     squeezed); or its beginning alone is shown, in its proportions
// Items of one size run in one batch. A size's cost class is the first of sizes() that has at least as many pixels:
// profiles have a row for each class.
//
// Plain data and functions; any thread. Errors: parse() fails the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/spec_line.h"

namespace leat::exec {

inline constexpr std::size_t kMaxSizeClasses = 16;
inline constexpr std::uint32_t kMaxSide = 16384;  // of any picture, in pixels

struct Size {
  std::uint32_t width = 0, height = 0;
  bool operator==(const Size&) const = default;
  [[nodiscard]] std::uint64_t pixels() const noexcept { return std::uint64_t{width} * height; }
};

inline constexpr std::uint32_t kMaxPieces = 8;  // of a picture

enum class Wide : std::uint8_t { squeeze, split, start };

// What is shown of a picture at once.
struct Piece {
  std::uint32_t index = 0, count = 1;  // from its left end on
  float from = 0, to = 1;              // of its width
  float start = 0;                     // where it begins, in columns of what the model is given of the whole picture
};

// How a picture is shown.
struct Pieces {
  std::uint32_t count = 1;
  float width = 1,
        step = 0;          // of each piece, and from the beginning of one to that of the next: of the picture's width
  float step_columns = 0;  // the same in columns of what the model is given
  std::uint32_t squeezed = 0;  // the columns that it would take in its proportions, where it is given fewer; else 0
  [[nodiscard]] Piece at(std::uint32_t index) const noexcept;
};

struct SizeRule {
  std::uint32_t longest = 0, shortest = 0, edge = 0, multiple = 1, height = 0;  // 0: not said
  std::vector<std::uint32_t> widths;                                            // ascending
  bool fill = true;  // stretch; else the picture keeps its proportions
  Wide wide = Wide::squeeze;

  [[nodiscard]] bool varies() const noexcept { return longest != 0 || height != 0; }
  // Of a picture of these sides. {0, 0}: they are not positive numbers. `content`: the columns that the picture fills
  // where the height is fixed.
  [[nodiscard]] Size size_of(float width, float height_of_picture, std::uint32_t* content = nullptr) const noexcept;
  // Of a picture of these sides. The whole of it where they are not positive numbers.
  [[nodiscard]] Pieces pieces_of(float width, float height_of_picture) const noexcept;
  [[nodiscard]] Size largest() const noexcept;
  // One for each cost class, smallest first.
  [[nodiscard]] std::vector<Size> sizes() const;
};

// Takes its words; `letterbox`: that word stood in the line.
SizeRule parse_sizes(SpecLine& words, bool letterbox);

// The place of its cost class among `sizes`; the last where it is larger than all.
[[nodiscard]] std::uint32_t class_of(const std::vector<Size>& sizes, Size size) noexcept;

}  // namespace leat::exec
