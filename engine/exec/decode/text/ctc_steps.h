// What a CTC model says step by step, and how the steps of two pieces of a picture that overlap become those of the
// whole. Each piece saw little of what lies at its ends, so somewhere in the overlap the reader changes from one piece
// to the next: in the middle of the longest run of steps at which both pieces say the same (of runs of one length, the
// one nearest to the overlap's middle), so that no character is read by both or by neither. Where they agree at no
// step, in the overlap's middle.
//
// Plain data and functions; any thread. No allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::exec {

struct CtcStep {
  std::uint32_t best = 0;  // the class
  float score = 0;         // its
};

// `line`: steps of the pieces before, from the picture's left end on, then room for `piece`, whose first step is the
// picture's step `at` <= count; count: the steps that are there. Steps that do not fit are left out. Returns the steps
// of both.
std::size_t join_steps(std::span<CtcStep> line, std::size_t count, std::span<const CtcStep> piece,
                       std::size_t at) noexcept;

}  // namespace leat::exec
