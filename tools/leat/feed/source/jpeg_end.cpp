#include "tools/leat/feed/source/jpeg_end.h"

namespace leat::tools {

bool lacks_scans(std::span<const std::uint8_t> jpeg) {
  constexpr std::uint8_t kSof2 = 0xC2, kSof10 = 0xCA, kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA, kTem = 0x01;
  bool progressive = false, scan = false;
  for (std::size_t at = 0; at + 1 < jpeg.size();) {
    if (jpeg[at] != 0xFF) {
      ++at;
      continue;
    }
    const std::uint8_t marker = jpeg[at + 1];
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    at += 2;
    if (marker == kEoi) return false;
    const bool alone = marker == 0 || marker == kTem || (marker >= 0xD0 && marker <= kSoi);  // no length follows
    if (alone) continue;
    progressive = progressive || marker == kSof2 || marker == kSof10;
    if (marker == kSos && !progressive) return false;
    scan = scan || marker == kSos;
    if (at + 1 >= jpeg.size()) break;
    at += std::size_t{jpeg[at]} << 8 | jpeg[at + 1];
  }
  return progressive && scan;
}

}  // namespace leat::tools
