// Cameras that ask through a door of leatd's: a thread each, which asks about its newest picture, waits for the answer
// and asks again, as clients do that know nothing of rings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/alternatives/contenders/contender.h"

struct SwsContext;

namespace leat::bench::alternatives {

// One camera's connection. One thread.
class Door {
 public:
  virtual ~Door() = default;
  // Until the answer is in the hands of whoever asked; Fate::passed: it was given up.
  virtual Fate ask(const leat_frame& picture, std::int64_t due_ns) = 0;
};
using OpenDoor = std::function<Result<std::unique_ptr<Door>>(std::uint32_t camera)>;

// In a process of clients: all cameras, from being ready to the end of the run.
Status film_through(const Run& run, const OpenDoor& open);

// A picture as three bytes a pixel of another size, by libswscale: what such clients send.
class Rgb {
 public:
  Rgb(leat_format format, std::uint32_t width, std::uint32_t height);  // of kWidth x kHeight
  [[nodiscard]] std::span<const std::uint8_t> from(const leat_frame& picture);

 private:
  struct Freed {
    void operator()(SwsContext* scaler) const;
  };
  std::uint32_t width_;
  std::vector<std::uint8_t> pixels_;
  std::unique_ptr<SwsContext, Freed> scaler_;
};

}  // namespace leat::bench::alternatives
