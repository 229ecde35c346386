// The stand-in driver's memory: memfds for the device's, marks for what of the host's is pinned.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda/fake/process.h"

namespace leat::fake {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

// Which GPU and GPU instance a descriptor's memory lies on: its memfd's name says so.
bool origin_of(int fd, unsigned* gpu, unsigned* instance) {
  char path[64], target[128] = "";
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (::readlink(path, target, sizeof target - 1) <= 0) return false;
  return std::sscanf(target, "/memfd:leat-fake-%u-%u-", gpu, instance) == 2;
}

// Whose memory it is: the memfd's name ends with it.
pid_t maker_of(int fd) {
  char path[64], target[128] = "";
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  unsigned gpu = 0, instance = 0;
  int pid = 0;
  if (::readlink(path, target, sizeof target - 1) <= 0) return 0;
  return std::sscanf(target, "/memfd:leat-fake-%u-%u-%d", &gpu, &instance, &pid) == 3 ? pid : 0;
}
int somewhere_else(off_t bytes) {
  const int fd = ::memfd_create("leat-fake-elsewhere", MFD_CLOEXEC);
  return fd >= 0 && ::ftruncate(fd, bytes) == 0 ? fd : -1;
}

bool is_writable(const void* at) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) std::abort();
  const auto wanted = reinterpret_cast<std::uintptr_t>(at);
  bool writable = false;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long first = 0, end = 0;
    char rights[8] = "";
    if (std::sscanf(line, "%lx-%lx %7s", &first, &end, rights) == 3 && wanted >= first && wanted < end)
      writable = rights[1] == 'w';
  }
  (void)std::fclose(maps);
  return writable;
}

}  // namespace
}  // namespace leat::fake

using namespace leat::fake;
using namespace leat::cuda;

LEAT_EXPORT Status cuDeviceTotalMem_v2(std::size_t* bytes, Ordinal device);

LEAT_EXPORT Status cuMemGetAllocationGranularity(std::size_t* bytes, const AllocationProperties*, int) {
  *bytes = kGranularity;
  return kSuccess;
}
LEAT_EXPORT Status cuMemGetInfo_v2(std::size_t* free, std::size_t* all) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  (void)cuDeviceTotalMem_v2(all, 0);
  std::uint64_t taken = 0;
  const std::lock_guard lock(process().mutex);
  for (const auto& [handle, memory] : process().memory) taken += memory.bytes;
  *free = *all - std::min<std::uint64_t>(*all, taken);
  return kSuccess;
}
LEAT_EXPORT Status cuMemCreate(Handle* handle, std::size_t bytes, const AllocationProperties* p, unsigned long long) {
  LEAT_UNLESS_LOST();
  if (bytes == 0 || bytes % kGranularity != 0 || p->type != kPinnedAllocation) return kInvalidValue;
  std::size_t all = 0;
  (void)cuDeviceTotalMem_v2(&all, 0);
  if (bytes > all) return kOutOfMemory;
  char name[64];
  std::snprintf(name, sizeof name, "leat-fake-%u-%u-%d", current().gpu, current().instance, ::getpid());
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return kOutOfMemory;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    (void)::close(fd);
    return kOutOfMemory;
  }
  const std::lock_guard lock(process().mutex);
  *handle = process().next_handle++;
  process().memory[*handle] = {fd, bytes};
  return kSuccess;
}
LEAT_EXPORT Status cuMemRelease(Handle handle) {
  const std::lock_guard lock(process().mutex);
  const auto found = process().memory.find(handle);
  if (found == process().memory.end()) return kInvalidValue;
  (void)::close(found->second.fd);
  process().memory.erase(found);
  return kSuccess;
}
LEAT_EXPORT Status cuMemExportToShareableHandle(void* out, Handle handle, int type, unsigned long long) {
  LEAT_UNLESS_LOST();
  const std::lock_guard lock(process().mutex);
  const auto found = process().memory.find(handle);
  if (found == process().memory.end() || type != kFileDescriptor) return kInvalidValue;
  const int fd = ::fcntl(found->second.fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return kOutOfMemory;
  std::memcpy(out, &fd, sizeof fd);
  return kSuccess;
}
LEAT_EXPORT Status cuMemImportFromShareableHandle(Handle* handle, void* os_handle, int type) {
  LEAT_UNLESS_LOST();
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  unsigned gpu = 0, instance = 0;
  struct stat facts {};
  if (type != kFileDescriptor || ::fstat(fd, &facts) != 0 || !origin_of(fd, &gpu, &instance)) return kInvalidValue;
  bool lies = false;
  if (gpu != current().gpu) {
    const auto& all = process().visible;
    const bool seen = std::any_of(all.begin(), all.end(), [&](const Visible& v) { return v.gpu == gpu; });
    const std::uint32_t peer = gpu < kMaxGpus ? host().state().peer[gpu][current().gpu].load() : kPeerRefused;
    if (!seen || peer == kPeerRefused) return kInvalidDevice;
    lies = peer == kPeerLies;
  } else if (instance != current().instance) {
    return kNotSupported;  // never across GPU instances
  } else {
    lies = host().state().in_place_lies != 0 && ::getpid() != maker_of(fd);
  }
  const int copy = lies ? somewhere_else(facts.st_size) : ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return kOutOfMemory;
  const std::lock_guard lock(process().mutex);
  *handle = process().next_handle++;
  process().memory[*handle] = {copy, static_cast<std::uint64_t>(facts.st_size)};
  return kSuccess;
}
LEAT_EXPORT Status cuMemAddressReserve(Address* out, std::size_t bytes, std::size_t, Address, unsigned long long) {
  void* const at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return kOutOfMemory;
  *out = reinterpret_cast<Address>(at);
  const std::lock_guard lock(process().mutex);
  process().reserved[*out] = bytes;  // for good: see cuMemAddressFree
  return kSuccess;
}
LEAT_EXPORT Status cuMemUnmap(Address at, std::size_t bytes) {
  end_if_lost();
  void* const got = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return got == MAP_FAILED ? kInvalidValue : kSuccess;
}
// An address is never given out again, so that work that comes too late faults and does not find something else there.
LEAT_EXPORT Status cuMemAddressFree(Address at, std::size_t bytes) { return cuMemUnmap(at, bytes); }
LEAT_EXPORT Status cuMemMap(Address at, std::size_t bytes, std::size_t offset, Handle handle, unsigned long long) {
  LEAT_UNLESS_LOST();
  const std::lock_guard lock(process().mutex);
  const auto found = process().memory.find(handle);
  if (found == process().memory.end() || offset + bytes > found->second.bytes) return kInvalidValue;
  void* const got = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.fd,
                           static_cast<off_t>(offset));
  return got == MAP_FAILED ? kOutOfMemory : kSuccess;
}
LEAT_EXPORT Status cuMemSetAccess(Address at, std::size_t bytes, const AccessDescription* access, std::size_t) {
  if (access->flags != kReadWrite) return kNotSupported;
  return ::mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE) == 0 ? kSuccess : kInvalidValue;
}
LEAT_EXPORT Status cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*out == nullptr) return kOutOfMemory;
  const std::lock_guard lock(process().mutex);
  process().pinned[reinterpret_cast<Address>(*out)] = bytes;
  return kSuccess;
}
LEAT_EXPORT Status cuMemFreeHost(void* at) {
  LEAT_NEEDS_CONTEXT();
  {
    const std::lock_guard lock(process().mutex);
    process().pinned.erase(reinterpret_cast<Address>(at));
  }
  std::free(at);
  return kSuccess;
}
LEAT_EXPORT Status cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  if (bytes == 0 || reinterpret_cast<std::uintptr_t>(at) % 4096 != 0) return kInvalidValue;
  if (host().state().pins_no_read_only != 0 && !is_writable(at)) return kInvalidValue;
  const std::lock_guard lock(process().mutex);
  const auto from = reinterpret_cast<Address>(at);
  for (const auto& [other, length] : process().registered)
    if (from < other + length && from + bytes > other) return kHostMemoryAlreadyRegistered;
  process().registered[from] = bytes;
  return kSuccess;
}
LEAT_EXPORT Status cuMemHostUnregister(void* at) {
  LEAT_NEEDS_CONTEXT();
  const std::lock_guard lock(process().mutex);
  return process().registered.erase(reinterpret_cast<Address>(at)) == 1 ? kSuccess : kHostMemoryNotRegistered;
}
LEAT_EXPORT Status cuMemHostGetDevicePointer_v2(Address* out, void* at, unsigned) {
  LEAT_NEEDS_CONTEXT();
  *out = reinterpret_cast<Address>(at);
  return kSuccess;
}
