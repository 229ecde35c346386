// What every fuzz harness here offers. libFuzzer calls the first (a build with LEAT_SANITIZE=fuzzer, by clang);
// elsewhere driver.cpp does. An input must never end the process: whatever a harness finds wrong it aborts on.
//
// Rules: one input, one fresh state, so that a crash repeats; no clock, no thread, no file written (sessions.cpp makes
// an empty folder for its socket).
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

// Where a harness sets it: called by driver.cpp when all seeds have run, to see that they led where they should.
inline void (*after_seeds)() = nullptr;

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
  std::uint32_t below(std::uint32_t max) { return take<std::uint16_t>() % max; }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

// Bytes that a few bytes of the input stand for, where the input itself is to keep its pace.
inline std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ x >> 27) * 0x94d0'49bb'1331'11eb;
  return x ^ x >> 31;
}

// What a hostile peer writes: a few bytes of something sound changed, or eight bytes anywhere in what it may write.
inline void change(void* at, std::size_t bytes, Reader& in) {
  auto* to = static_cast<std::uint8_t*>(at);
  for (auto changes = 1 + in.below(3); changes > 0; --changes) {
    const std::uint32_t where = in.below(static_cast<std::uint32_t>(bytes));
    to[where] = static_cast<std::uint8_t>(to[where] ^ in.take<std::uint8_t>());
  }
}
inline void poke(std::uint8_t* at, std::uint64_t bytes, Reader& in) {
  const auto where = in.take<std::uint32_t>() % (bytes / 8);
  const auto value = in.take<std::uint64_t>();
  std::memcpy(at + where * 8, &value, sizeof(value));
}

}  // namespace leat::fuzz
