// Huge pages for shared memory where the kernel gives some (Linux 6.1): frames are read in long runs, and small pages
// cost the reader. All of it is best effort: what cannot be had is left to small pages. Thread rule: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::shm {

inline constexpr std::uint64_t kHugePageBytes = 2 << 20;

// A free address at which huge pages of a segment of `bytes` can be mapped as such; null: no wish. Only a wish: another
// thread may take the place first.
void* huge_page_aligned_place(std::uint64_t bytes) noexcept;

// Brings the whole huge pages within [from, from + count) of `fd`, which is mapped for writing at `data`. The caller's
// fallocate() then brings what is missing.
void bring_huge_pages(int fd, std::byte* data, std::uint64_t from, std::uint64_t count) noexcept;

}  // namespace leat::shm
