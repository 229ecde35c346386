// Anonymous shared memory: memfd, sealed, prefaulted, passed as a descriptor; no name anywhere, so the kernel cleans up
// after kill -9 of anyone.
//
// Read-only peers: a peer that must not write gets share_read_only()'s descriptor. It is a re-opened O_RDONLY
// descriptor of an inode whose mode is 0400, so that mmap(PROT_WRITE) and mprotect fail with EACCES and a peer of
// another user cannot re-open it for writing. (A peer with the daemon's own uid could; it could also ptrace the
// daemon.) A segment that nobody but its maker ever writes is also sealed with F_SEAL_FUTURE_WRITE, which no one can
// undo. Ownership: both classes own their descriptor and mapping; they move. Thread rule: none of their own. Control
// plane only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace boost::interprocess {
class mapped_region;
}

namespace leat::shm {

using leat::Fd;
Result<Fd> duplicate(int fd);

enum class Access : std::uint8_t { read_only, read_write };

// Memory mapped from a descriptor. Excluded from children (MADV_DONTFORK).
class Mapping {
 public:
  Mapping();
  ~Mapping();
  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;

  // Maps `bytes` of `fd`. Refuses a segment whose size is not exactly `bytes` or that its owner could still shrink
  // (no F_SEAL_SHRINK: touching it could raise SIGBUS). `prefault`: page tables are filled now, not on first touch.
  static Result<Mapping> map(int fd, std::uint64_t bytes, Access access, bool prefault);

  std::byte* data() const noexcept { return data_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  template <class T>
  T* at(std::uint64_t offset) const noexcept {
    return reinterpret_cast<T*>(data_ + offset);
  }

 private:
  std::unique_ptr<boost::interprocess::mapped_region> region_;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

enum class Seal : std::uint8_t {
  size,          // SHRINK | GROW | SEAL: peers may write, nobody can resize
  future_write,  // the same and FUTURE_WRITE: after this mapping nobody can ever map it for writing
  later          // SHRINK | GROW, the rest by secure() once the one peer that writes has mapped it
};

// A segment made by this process, mapped for writing.
class Segment {
 public:
  // `label` is what /proc/PID/maps shows ("leat:frames"). Allocates every page now (so "no memory" is said here, not by
  // a SIGBUS later) and prefaults. Does not publish a header: fill the segment, then header().publish().
  static Result<Segment> create(const char* label, std::uint64_t bytes, Seal seal);

  // The same in steps, for a large segment that others must not wait for: reserve() maps it and allocates nothing,
  // allocate() brings the pages of a range (0.1 to 0.5 ms a MiB, more where the machine below must give them); touching
  // one that was not brought may raise SIGBUS. Sealed as by Seal::later.
  static Result<Segment> reserve(const char* label, std::uint64_t bytes);
  Status allocate(std::uint64_t from, std::uint64_t bytes);

  // For Seal::later, once the peer has mapped it for writing: nobody can map it for writing any more, nor punch a hole
  // into it, so that whoever reads it never waits for the peer. Waits while the peer is punching one. What it has
  // punched before, allocate() brings back. An error: the peer has sealed it first, or the kernel cannot.
  Status secure();
  // Fills this process's page tables anew, so that no touch faults.
  void fault_in();

  int fd() const noexcept { return fd_.get(); }  // read-write (unless future_write): for trusted peers and the uplink
  Result<Fd> share_read_only() const;            // for peers that only read
  const Mapping& memory() const noexcept { return memory_; }
  std::byte* data() const noexcept { return memory_.data(); }
  std::uint64_t bytes() const noexcept { return memory_.bytes(); }

 private:
  Status bring(std::uint64_t from, std::uint64_t bytes);  // allocate() without looking whether there is room
  Fd fd_;
  Mapping memory_;
};

}  // namespace leat::shm
