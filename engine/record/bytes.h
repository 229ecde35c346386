// Numbers as bytes: little endian, seven bits a byte where most are small. Writing trusts its caller with the room;
// reading trusts nobody.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace leat::record {

inline constexpr std::size_t kMaxVarint = 10;

// ---- to a place with room enough: the hot path ----

inline void put_byte(std::byte*& at, std::uint8_t value) noexcept { *at++ = static_cast<std::byte>(value); }

inline void put_varint(std::byte*& at, std::uint64_t value) noexcept {
  while (value >= 0x80) {
    put_byte(at, static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  put_byte(at, static_cast<std::uint8_t>(value));
}

// Small numbers of either sign.
constexpr std::uint64_t folded(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unfolded(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

template <class T>
void put_raw(std::byte*& at, const T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && std::endian::native == std::endian::little);
  std::memcpy(at, &value, sizeof value);
  at += sizeof value;
}

// Of bytes, so that a damaged copy shows.
inline std::uint64_t hash_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t hash = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x9fb2'1c65'1e98'df25ull;
    hash ^= hash >> 32;
  }
  return hash;
}

// ---- to a text that grows: set-up ----

class ByteWriter {
 public:
  void number(std::uint64_t value) {
    std::byte room[kMaxVarint];
    std::byte* end = room;
    put_varint(end, value);
    bytes_.append(reinterpret_cast<const char*>(room), static_cast<std::size_t>(end - room));
  }
  void time(std::int64_t value) { number(folded(value)); }
  void real(double value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// ---- from anywhere ----

// After the first thing that is not there everything reads as 0, and ok() is false.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes) noexcept
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  void fail() noexcept {
    ok_ = false;
    at_ = end_;
  }

  std::uint8_t byte() noexcept {
    if (at_ == end_) {
      fail();
      return 0;
    }
    return static_cast<std::uint8_t>(*at_++);
  }
  std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = byte();
      value |= std::uint64_t{b & 0x7fu} << shift;
      if (b < 0x80) return value;
    }
    fail();
    return 0;
  }
  std::uint32_t small() noexcept {  // a number of 32 bits
    const std::uint64_t value = number();
    if (value > UINT32_MAX) fail();
    return ok_ ? static_cast<std::uint32_t>(value) : 0;
  }
  // How many things of at least `bytes` bytes follow: no more than there can be, and at most `most`.
  std::uint32_t count(std::size_t bytes, std::uint64_t most) noexcept {
    const std::uint64_t value = number();
    if (value > most || value * bytes > left()) fail();
    return ok_ ? static_cast<std::uint32_t>(value) : 0;
  }
  std::int64_t time() noexcept { return unfolded(number()); }
  bool flag() noexcept { return byte() != 0; }
  template <class T>
  T raw() noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (left() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  double real() noexcept { return raw<double>(); }
  std::span<const std::byte> bytes_of(std::size_t size) noexcept {
    if (size > left()) fail();
    if (!ok_) return {};
    at_ += size;
    return {at_ - size, size};
  }
  std::string text(std::size_t most) { return text_of(count(1, most)); }
  std::string text_of(std::size_t size) {
    if (size > left()) fail();
    if (!ok_) return {};
    std::string out(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return out;
  }

 private:
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  bool ok_ = true;
};

}  // namespace leat::record
