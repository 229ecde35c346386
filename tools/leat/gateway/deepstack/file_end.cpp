#include "tools/leat/gateway/deepstack/file_end.h"

#include <cstdint>
#include <cstring>

namespace leat::gateway {
namespace {

constexpr std::uint32_t kFill = 0xff, kTem = 0x01, kRst0 = 0xd0, kSoi = 0xd8, kEoi = 0xd9;

std::uint32_t byte_at(std::span<const std::byte> file, std::size_t at) noexcept {
  return std::to_integer<std::uint32_t>(file[at]);
}

// Place of the next marker's second byte from here on, or the file's size. Within a scan, 0xff00 is a byte of data.
std::size_t next_marker(std::span<const std::byte> file, std::size_t at) noexcept {
  for (; at + 1 < file.size(); ++at) {
    const std::uint32_t second = byte_at(file, at + 1);
    if (byte_at(file, at) == kFill && second != 0 && second != kFill) return at + 1;
  }
  return file.size();
}

}  // namespace

bool jpeg_has_its_end(std::span<const std::byte> file) noexcept {
  for (std::size_t at = next_marker(file, 0); at < file.size(); at = next_marker(file, at)) {
    const std::uint32_t marker = byte_at(file, at++);
    if (marker == kEoi) return true;
    if (marker == kTem || (marker >= kRst0 && marker <= kSoi)) continue;  // without a segment
    if (at + 2 > file.size()) return false;
    const std::size_t length = byte_at(file, at) << 8 | byte_at(file, at + 1);
    if (length < 2 || length > file.size() - at) return false;
    at += length;  // of a start of scan: its header, and the scan's data follows
  }
  return false;
}

bool png_has_its_end(std::span<const std::byte> file) noexcept {
  constexpr std::size_t kSignature = 8, kAround = 12;  // length, type and checksum of a chunk
  std::size_t at = kSignature;
  while (at <= file.size() && file.size() - at >= kAround) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | byte_at(file, at + i);
    if (length > file.size() - at - kAround) return false;
    if (std::memcmp(file.data() + at + 4, "IEND", 4) == 0) return true;
    at += kAround + length;
  }
  return false;
}

}  // namespace leat::gateway
