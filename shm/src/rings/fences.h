// How shared words are touched: atomic references, fences and the two copies, in one place, with what ThreadSanitizer
// needs (it does not understand fences). tests/explore puts a header of its own in the place of this one, and sees
// every access: nothing in shm/src names std::atomic_ref or copies shared memory but through these.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leat::shm {

using std::atomic_ref;

#if defined(__SANITIZE_THREAD__)
namespace detail {
inline std::uint32_t tsan_fence_word = 0;
}
// An atomic read-modify-write orders at least as much, and the sanitizer understands it.
inline void full_fence() noexcept { std::atomic_ref(detail::tsan_fence_word).fetch_add(1, std::memory_order_seq_cst); }
inline void acquire_fence() noexcept { full_fence(); }
inline void release_fence() noexcept { full_fence(); }
#else
// For Dekker's pattern only (doorbell.h): my store, then my load of what the other stores.
inline void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void acquire_fence() noexcept { std::atomic_thread_fence(std::memory_order_acquire); }
inline void release_fence() noexcept { std::atomic_thread_fence(std::memory_order_release); }
#endif

// Copies shared memory to a local exactly once: the compiler may neither re-read the source nor split the copy across
// uses.
template <class T>
inline void copy_once(T& local, const T* shared) noexcept {
  std::memcpy(static_cast<void*>(&local), static_cast<const void*>(shared), sizeof(T));
  asm volatile("" : "+m"(local) : : "memory");
}

// Copies bytes into shared memory, for a peer that reads them once a release store tells it to.
inline void copy_in(void* shared, const void* local, std::size_t bytes) noexcept { std::memcpy(shared, local, bytes); }

}  // namespace leat::shm
