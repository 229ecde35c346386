// What an access unit says of itself before a decoder sees it: whether decoding can begin there. Reads hostile bytes;
// nothing is believed but where it looks. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace leat::cuda {

// key: nothing before it is needed (IDR; HEVC's CRA and BLA too; AV1's shown key frame; every JPEG). clean: neither is
// by what follows. leading: of HEVC, it may refer to what stands before the key picture that it follows. none: no
// picture was found.
enum class UnitKind : std::uint8_t { none, other, key, clean_key, leading };

// codec: leat_codec.
[[nodiscard]] UnitKind kind_of(std::uint32_t codec, std::span<const std::uint8_t> unit) noexcept;

// Which access units of a stream are worth decoding: from a lost one on none up to the next key picture, and behind a
// key picture that is not clean none of those that refer to what was before it.
class KeyPictures {
 public:
  // gap: others before it are missing.
  [[nodiscard]] bool decodable(UnitKind kind, bool gap) noexcept;
  void lost() noexcept { waits_ = true; }  // what was decodable became no picture
  [[nodiscard]] bool waits() const noexcept { return waits_; }
  [[nodiscard]] std::uint32_t runs() const noexcept { return runs_; }  // how often it has begun at a key picture

 private:
  bool waits_ = true, skips_leading_ = false;
  std::uint32_t runs_ = 0;
};

}  // namespace leat::cuda
