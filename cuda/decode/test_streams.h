// Short streams of access units for tests, encoded and decoded by libavcodec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::test {

struct CodedStream {
  std::uint32_t width = 0, height = 0;
  std::vector<std::vector<std::uint8_t>> units;  // in decoding order
  std::vector<std::vector<std::uint8_t>> i420;   // [unit]: its picture, tight; of JPEG rgb24
  std::vector<bool> key;                         // [unit]
};

struct StreamSpec {
  std::uint32_t codec = 0;  // leat_codec
  std::uint32_t width = 320, height = 192;
  int pictures = 24, keys_every = 8;
  int reordered = 0;  // pictures between two that others refer to
  std::uint32_t seed = 1;
  bool full_range = false;
  int matrix = 2;  // H.273's number; 2: not stated
  // Of a picture: i420, tight; empty: shapes that move over a gradient.
  std::vector<std::vector<std::uint8_t>> show = {};
};

// No units: libavcodec here has no encoder for it.
CodedStream coded_stream(const StreamSpec& spec);

// AV1: an access unit that decodes nothing and shows what lies in this slot of the decoder's references, 0..7.
std::vector<std::uint8_t> shown_again(unsigned slot);

// Flips and drops bytes, at least one.
std::vector<std::uint8_t> damaged(const std::vector<std::uint8_t>& unit, std::uint32_t seed);

}  // namespace leat::test
