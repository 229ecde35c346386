// What every fuzz harness here offers. libFuzzer calls the first (a build with LEAT_SANITIZE=fuzzer, by clang);
// elsewhere driver.cpp does. An input must never end the process: whatever a harness finds wrong it aborts on.
//
// Rules: one input, one fresh state, so that a crash repeats; no clock, no thread, no file written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace leat::fuzz {

// A few good inputs, small: where mutation starts. They are made, not stored.
std::vector<std::string> seeds();

inline void insist(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// An input read from its beginning; past its end everything is zero.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  [[nodiscard]] bool empty() const { return left_ == 0; }
  template <class T>
  T take() {
    T value{};
    bytes(&value, sizeof(T));
    return value;
  }
  void bytes(void* to, std::size_t count) {
    const std::size_t here = count < left_ ? count : left_;
    if (here != 0) std::memcpy(to, at_, here);
    at_ += here;
    left_ -= here;
  }
  // At most `most` in [0, most).
  std::uint32_t below(std::uint32_t most) { return take<std::uint16_t>() % most; }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

}  // namespace leat::fuzz
