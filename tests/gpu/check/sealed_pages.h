// Pages as a client's frames are: a memfd of a size that nobody can change, which its maker alone writes; everybody
// else maps it read-only, from a descriptor that cannot do more.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "shm/src/segments/segment.h"

namespace leat::check {

constexpr std::uint64_t page_multiple(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

class SealedPages {
 public:
  static Result<SealedPages> create(std::uint64_t bytes) {
    auto segment = shm::Segment::create("leat:check", page_multiple(bytes), shm::Seal::later);
    if (!segment.ok()) return Error{segment.error()};
    return SealedPages(std::move(*segment));
  }
  void write(std::uint64_t at, std::span<const std::uint8_t> bytes) {
    std::memcpy(segment_.data() + at, bytes.data(), bytes.size());
  }
  // From here on nobody can map them for writing; data() is a mapping that reads.
  Status secure() {
    if (auto secured = segment_.secure(); !secured) return secured;
    auto fd = segment_.share_read_only();
    if (!fd.ok()) return Error{fd.error()};
    auto mapped = shm::Mapping::map(fd->get(), segment_.bytes(), shm::Access::read_only, true);
    if (!mapped.ok()) return Error{mapped.error()};
    reads_.emplace(std::move(*mapped));
    return Done{};
  }
  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(reads_->data()); }
  [[nodiscard]] std::uint8_t* writable() const { return reinterpret_cast<std::uint8_t*>(segment_.data()); }
  [[nodiscard]] std::uint64_t bytes() const { return segment_.bytes(); }

 private:
  explicit SealedPages(shm::Segment segment) : segment_(std::move(segment)) {}
  shm::Segment segment_;
  std::optional<shm::Mapping> reads_;
};

}  // namespace leat::check
