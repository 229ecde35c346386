// The checksum of the `emulated` executor: 64 bits over a frame's bytes as they lie in its slot, so that a test can
// prove that the bytes a client wrote are the bytes that were run. Not cryptographic. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leat::exec {

// Four lanes of 8 bytes, so that it runs at memory speed; the tail is padded with zeros and the length is mixed in.
inline std::uint64_t checksum(const void* data, std::size_t bytes) noexcept {
  constexpr std::uint64_t kPrime = 0x9e3779b185ebca87u;
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t lanes[4] = {bytes, ~std::uint64_t{0}, kPrime, ~kPrime};
  const auto absorb = [&lanes](const unsigned char* block) {
    for (int i = 0; i < 4; ++i) {
      std::uint64_t word;
      std::memcpy(&word, block + 8 * i, 8);
      lanes[i] = (lanes[i] ^ word) * kPrime;
      lanes[i] ^= lanes[i] >> 29;
    }
  };
  std::size_t at = 0;
  for (; at + 32 <= bytes; at += 32) absorb(p + at);
  if (at < bytes) {
    unsigned char tail[32] = {};
    std::memcpy(tail, p + at, bytes - at);
    absorb(tail);
  }
  std::uint64_t out = bytes;
  for (const std::uint64_t lane : lanes) out = (out ^ lane) * kPrime, out ^= out >> 32;
  return out;
}

// What an emulated stage writes where features leave it: the checksum of its input, then words drawn from it, so that
// the next stage's checksum proves every byte of the hand-over.
inline void fill_from(std::uint64_t checksum_of_input, void* out, std::size_t bytes) noexcept {
  auto* p = static_cast<unsigned char*>(out);
  std::uint64_t word = checksum_of_input;
  for (std::size_t at = 0; at < bytes; at += 8) {
    std::memcpy(p + at, &word, bytes - at < 8 ? bytes - at : 8);
    word = (word + 0x9e3779b97f4a7c15u) * 0xd1342543de82ef95u;
  }
}

}  // namespace leat::exec
