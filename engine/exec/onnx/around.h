// What a batch puts on the device's stream before its model's run and behind it: pictures and downloads. Each is over
// the same addresses whenever the set of buffers and the number of rows are the same, so that all three can be captured
// as one graph. Thread rule: the session's.
#pragma once

#include <cstdint>

namespace leat::exec {

class Around {
 public:
  // On the stream, for a set; false: error() says why. Nothing is waited for.
  virtual bool before(std::uint32_t set) noexcept = 0;
  virtual bool behind(std::uint32_t set) noexcept = 0;
  [[nodiscard]] virtual const char* error() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t set() const noexcept = 0;   // of this batch
  [[nodiscard]] virtual std::uint32_t sets() const noexcept = 0;  // that a batch may have
  // What it puts there is what any batch of so many rows would. Not where an item has no picture: what was captured
  // would make one of whatever was there before.
  [[nodiscard]] virtual bool complete() const noexcept = 0;

 protected:
  ~Around() = default;
};

}  // namespace leat::exec
