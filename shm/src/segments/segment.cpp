#include "shm/src/segments/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "shm/src/protocol/system_text.h"
#include "shm/src/segments/available_memory.h"
#include "shm/src/segments/huge_pages.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::shm {
namespace bip = boost::interprocess;

namespace {

Error system_error(const std::string& what, int error) { return {system_text(what, error)}; }

// What mapped_region wants to know about a descriptor.
struct MappableFd {
  int fd;
  bip::mapping_handle_t get_mapping_handle() const { return bip::ipcdetail::mapping_handle_from_file_handle(fd); }
};

Error no_memory(std::uint64_t bytes, const MemoryRoom& room) {
  return {"no memory for a shared segment of " + std::to_string(bytes >> 20) +
          " MiB: " + std::to_string(room.bytes >> 20) + " MiB are available (" + room.where +
          "); lower the depth or the frame size, or free memory"};
}

std::unique_ptr<bip::mapped_region> map_region(int fd, std::uint64_t bytes, Access access) {
  const auto mode = access == Access::read_write ? bip::read_write : bip::read_only;
  if (void* place = huge_page_aligned_place(bytes); place != nullptr) try {
      return std::make_unique<bip::mapped_region>(MappableFd{fd}, mode, 0, bytes, place);
    } catch (const bip::interprocess_exception&) {  // taken meanwhile: anywhere will do
    }
  return std::make_unique<bip::mapped_region>(MappableFd{fd}, mode, 0, bytes);
}

// Fills the page tables now. Kernels before 5.14 lack MADV_POPULATE: touch the pages instead.
void populate(std::byte* data, std::uint64_t bytes, [[maybe_unused]] Access access) {
#if defined(MADV_POPULATE_READ) && defined(MADV_POPULATE_WRITE)
  if (madvise(data, bytes, access == Access::read_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) return;
#endif
  for (std::uint64_t at = 0; at < bytes; at += 4096) {
    auto* page = reinterpret_cast<volatile unsigned char*>(data + at);
    static_cast<void>(*page);
  }
}

int make_memfd(const char* label) {
#ifdef MFD_NOEXEC_SEAL
  const int fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd >= 0 || errno != EINVAL) return fd;
#endif
  return memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

}  // namespace

Result<Fd> duplicate(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return system_error("cannot duplicate a descriptor (raise the limit of open files: ulimit -n)", errno);
  return Fd(copy);
}

Mapping::Mapping() = default;
Mapping::~Mapping() = default;
Mapping::Mapping(Mapping&& other) noexcept
    : region_(std::move(other.region_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}
Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(region_, other.region_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<Mapping> Mapping::map(int fd, std::uint64_t bytes, Access access, bool prefault) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return system_error("cannot look at a shared segment", errno);
  if (static_cast<std::uint64_t>(info.st_size) != bytes)
    return Error{"a shared segment has " + std::to_string(info.st_size) + " bytes where " + std::to_string(bytes) +
                 " were announced; install the same release of leatd and its clients"};
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Error{"a shared segment is not sealed against shrinking; it was not made by leatd"};
  Mapping m;
  try {
    m.region_ = map_region(fd, bytes, access);
  } catch (const bip::interprocess_exception& e) {
    return Error{"cannot map a shared segment of " + std::to_string(bytes) + " bytes: " + e.what()};
  }
  m.data_ = static_cast<std::byte*>(m.region_->get_address());
  m.bytes_ = bytes;
  madvise(m.data_, bytes, MADV_DONTFORK);  // best effort: a child that does not exec would only hold the memory longer
  if (prefault) populate(m.data_, bytes, access);
  return m;
}

Result<Segment> Segment::reserve(const char* label, std::uint64_t bytes) {
  if (MemoryRoom room; !available_memory().fits(bytes, &room)) return no_memory(bytes, room);
  Segment s;
  s.fd_ = Fd(make_memfd(label));
  if (!s.fd_) return system_error("cannot create a shared segment (memfd_create)", errno);
  if (fchmod(s.fd_.get(), 0400) != 0)
    return system_error("cannot restrict a shared segment", errno);  // see segment.h: read-only peers
  if (bytes > static_cast<std::uint64_t>(INT64_MAX) || ftruncate(s.fd_.get(), static_cast<off_t>(bytes)) != 0)
    return system_error("cannot size a shared segment of " + std::to_string(bytes) + " bytes", errno);
  if (fcntl(s.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return system_error("cannot seal a shared segment", errno);
  Result<Mapping> mapping = Mapping::map(s.fd_.get(), bytes, Access::read_write, false);
  if (!mapping) return Error{mapping.error()};
  s.memory_ = std::move(mapping).value();
  return s;
}

Status Segment::allocate(std::uint64_t from, std::uint64_t count) {
  // Others may have taken since what there was when it was reserved, and the kernel kills where a cgroup is full. What
  // it has already it needs no more.
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0) return system_error("cannot look at a shared segment", errno);
  const std::uint64_t missing = bytes() - std::min(bytes(), static_cast<std::uint64_t>(info.st_blocks) * 512);
  if (missing != 0) {
    if (MemoryRoom room; !available_memory().fits(std::min(count, missing), &room)) return no_memory(bytes(), room);
    bring_huge_pages(fd_.get(), data(), from, count);
  }
  return bring(from, count);
}

Status Segment::bring(std::uint64_t from, std::uint64_t count) {
  if (fallocate(fd_.get(), 0, static_cast<off_t>(from), static_cast<off_t>(count)) != 0)
    return system_error("no memory for a shared segment of " + std::to_string(bytes() >> 20) +
                            " MiB; lower the depth or the frame size, or free memory",
                        errno);
  return Done{};
}

Status Segment::secure() {
#ifndef F_SEAL_FUTURE_WRITE
#error "Linux 5.1 or newer headers are needed (F_SEAL_FUTURE_WRITE)"
#endif
  constexpr int kSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  (void)fcntl(fd_.get(), F_ADD_SEALS, kSeals);  // fails too where it is sealed so already
  const int seals = fcntl(fd_.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals)
    return system_error("cannot seal a shared segment (Linux 5.1 or newer is needed)", errno);
  return Done{};
}

void Segment::fault_in() { populate(data(), bytes(), Access::read_write); }

Result<Segment> Segment::create(const char* label, std::uint64_t bytes, Seal seal) {
  Result<Segment> s = reserve(label, bytes);
  if (!s) return s;
  bring_huge_pages(s->fd(), s->data(), 0, bytes);
  if (auto status = s->bring(0, bytes); !status) return Error{status.error()};
  s->fault_in();
  if (seal == Seal::size && fcntl(s->fd(), F_ADD_SEALS, F_SEAL_SEAL) != 0)
    return system_error("cannot seal a shared segment", errno);
  if (seal == Seal::future_write)
    if (auto status = s->secure(); !status) return Error{status.error()};
  return s;
}

Result<Fd> Segment::share_read_only() const {
  const std::string path = "/proc/self/fd/" + std::to_string(fd_.get());
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot re-open a shared segment read-only through /proc (is /proc mounted?)", errno);
  return Fd(fd);
}

}  // namespace leat::shm
