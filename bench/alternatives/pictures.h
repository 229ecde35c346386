// The cameras' pictures: street scenes of the demo, drawn once and repeated without end. Raw ones lie in a file in
// memory, and reading one costs every contender the same: a system call that copies it to where it is pre-processed.
// H.264 is decoded by each camera's reader, as `leat feed` decodes it. Errors: one line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.h"
#include "leat/result.hpp"

namespace leat::bench::alternatives {

inline constexpr std::uint32_t kWidth = 1280, kHeight = 720, kRate = 30;

// One camera's pictures, in their order. One thread at a time.
class Film {
 public:
  virtual ~Film() = default;
  // ready: write() gives it. passed: it cannot be had any more, or a reader far behind has gone on to a key picture
  // that is yet to come.
  enum class Got : std::uint8_t { ready, passed, failed };
  // Goes on to picture number `picture`, above all before; those between are decoded where others need them.
  virtual Got go_to(std::uint64_t picture) = 0;
  virtual bool write(const leat_frame& into) = 0;

  Got read(std::uint64_t picture, const leat_frame& into) {
    const Got got = go_to(picture);
    return got != Got::ready || write(into) ? got : Got::failed;
  }
};

// Where a camera's pictures lie one behind the other, for who reads them by himself.
struct RawPart {
  int file = -1;                       // lives as long as the pictures
  std::uint64_t first = 0, count = 0;  // pictures, each of kWidth x kHeight in NV12
};

class Pictures {
 public:
  virtual ~Pictures() = default;
  [[nodiscard]] virtual leat_format format() const = 0;
  [[nodiscard]] virtual std::vector<std::string> videos() const { return {}; }  // files; none of raw cameras
  [[nodiscard]] virtual std::optional<RawPart> raw(std::uint32_t /*camera*/) const { return {}; }
  // Any thread.
  [[nodiscard]] virtual Result<std::unique_ptr<Film>> open(std::uint32_t camera) const = 0;
};

// `pictures` of each of the demo's scenes. Shows how far it is.
Result<std::unique_ptr<Pictures>> draw_raw(std::uint64_t pictures);
// Videos that leat-scene and ffmpeg make in a folder of their own.
Result<std::unique_ptr<Pictures>> draw_coded(std::uint64_t pictures);

}  // namespace leat::bench::alternatives
