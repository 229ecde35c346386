// The cameras' pictures: street scenes of the demo, drawn once, in a file that lies in memory. Reading one costs every
// contender the same: a system call that copies it to where it is pre-processed. Any thread; errors: one line.
#pragma once

#include <cstdint>

#include "leat/leat.h"
#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace leat::bench::alternatives {

inline constexpr std::uint32_t kWidth = 1280, kHeight = 720, kRate = 30;

class Pictures {
 public:
  // `pictures` of each of the demo's scenes, repeated without end. Shows how far it is.
  static Result<Pictures> draw(std::uint64_t pictures);
  // Picture number `picture` of a camera into a frame, NV12. False: it cannot be read.
  bool read(std::uint32_t camera, std::uint64_t picture, const leat_frame& into) const;

 private:
  Pictures(Fd file, std::uint64_t each) : file_(std::move(file)), each_(each) {}
  Fd file_;
  std::uint64_t each_;
};

}  // namespace leat::bench::alternatives
