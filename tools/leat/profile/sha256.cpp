#include "tools/leat/profile/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace leat::tools {
namespace {

constexpr std::size_t kBlock = 64;

// The first 32 bits of the fractional parts of the square or cube roots of the first primes, as the standard defines them.
template <std::size_t N>
std::array<std::uint32_t, N> roots(bool cube) {
  std::array<std::uint32_t, N> out{};
  std::size_t found = 0;
  for (std::uint32_t p = 2; found < N; ++p) {
    bool prime = true;
    for (std::uint32_t d = 2; d * d <= p; ++d) prime = prime && p % d != 0;
    if (!prime) continue;
    const long double root = cube ? std::cbrt(static_cast<long double>(p)) : std::sqrt(static_cast<long double>(p));
    out[found++] = static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
  }
  return out;
}

void absorb(std::array<std::uint32_t, 8>& state, const std::array<std::uint32_t, 64>& k, const unsigned char* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 | std::uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
    const std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::uint32_t now[] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += now[i];
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  static const auto kStart = roots<8>(false);
  static const auto kRound = roots<64>(true);
  auto state = kStart;
  std::size_t at = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  for (; at + kBlock <= bytes.size(); at += kBlock) absorb(state, kRound, data + at);
  std::string tail(bytes.substr(at));
  tail += '\x80';
  while (tail.size() % kBlock != kBlock - 8) tail += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bytes.size() * 8 >> shift & 0xff);
  for (std::size_t i = 0; i < tail.size(); i += kBlock) absorb(state, kRound, reinterpret_cast<const unsigned char*>(tail.data()) + i);
  std::string out;
  for (const auto word : state) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", word);
    out += text;
  }
  return out;
}

}  // namespace leat::tools
