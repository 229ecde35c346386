#include "shm/src/segments/huge_pages.h"

#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include "shm/src/segments/segment_layout.h"

namespace leat::shm {
namespace {

std::uintptr_t first_boundary(const void* at) { return round_up(reinterpret_cast<std::uintptr_t>(at), kHugePageBytes); }

#ifdef MADV_COLLAPSE
// Memory that was free for a while is often the machine's below (free page reporting, balloons) and comes back at its
// first touch, in milliseconds a huge page. The kernel collapses a huge page of a file in one go, which on most
// kernels nothing else on that core can interrupt; an anonymous one it clears in pieces and lets others run between
// them. So the touch is made here: an anonymous huge page is brought and given back, and the page that was freed last
// is the one that the kernel hands out next.
class FirstTouch {
 public:
  FirstTouch() noexcept
      : wide_(mmap(nullptr, 2 * kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0)) {
    if (wide_ == MAP_FAILED) return;
    page_ = reinterpret_cast<volatile char*>(first_boundary(wide_));
    (void)madvise(const_cast<char*>(page_), kHugePageBytes, MADV_HUGEPAGE);
  }
  ~FirstTouch() {
    if (wide_ != MAP_FAILED) munmap(wide_, 2 * kHugePageBytes);
  }
  FirstTouch(const FirstTouch&) = delete;
  FirstTouch& operator=(const FirstTouch&) = delete;

  void touch() noexcept {
    if (page_ == nullptr) return;
    *page_ = 1;
    (void)madvise(const_cast<char*>(page_), kHugePageBytes, MADV_DONTNEED);
  }

 private:
  void* wide_;
  volatile char* page_ = nullptr;
};
#endif

}  // namespace

void* huge_page_aligned_place(std::uint64_t bytes) noexcept {
  if (bytes < kHugePageBytes) return nullptr;
  void* wide = mmap(nullptr, bytes + kHugePageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED) return nullptr;
  munmap(wide, bytes + kHugePageBytes);
  return reinterpret_cast<void*>(first_boundary(wide));
}

void bring_huge_pages([[maybe_unused]] int fd, [[maybe_unused]] std::byte* data, [[maybe_unused]] std::uint64_t from,
                      [[maybe_unused]] std::uint64_t count) noexcept {
#ifdef MADV_COLLAPSE
  const std::uint64_t end = (from + count) / kHugePageBytes * kHugePageBytes;
  std::uint64_t at = round_up(from, kHugePageBytes);
  if (at >= end) return;
  FirstTouch next;
  for (; at < end; at += kHugePageBytes) {
    next.touch();
    // One small page is enough for the kernel to make a huge one around it: it clears the rest instead of copying it.
    if (fallocate(fd, 0, static_cast<off_t>(at), kPage) != 0) return;
    (void)madvise(data + at, kHugePageBytes, MADV_COLLAPSE);
  }
#endif
}

}  // namespace leat::shm
