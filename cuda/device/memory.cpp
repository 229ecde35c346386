// Device memory by the driver's virtual memory management, so that a descriptor can carry it to another process; host
// memory pinned for the device.
#include <algorithm>
#include <cstring>

#include "cuda/device/device.h"

namespace leat::cuda {

AllocationProperties Device::properties(bool shared) const noexcept {
  AllocationProperties p{};
  p.type = kPinnedAllocation;
  p.handle_types = shared ? kFileDescriptor : 0;
  p.location = {kDeviceLocation, ordinal_};
  return p;
}

leat_device_memory Device::map(Handle handle, std::uint64_t bytes, bool imported) {
  leat_device_memory out{.address = nullptr, .bytes = bytes, .handle = handle};
  Address address = 0;
  bool mapped = false;
  try {
    check("cuMemAddressReserve", cuda_->address_reserve(&address, bytes, 0, 0, 0));
    check("cuMemMap", cuda_->memory_map(address, bytes, 0, handle, 0));
    mapped = true;
    const AccessDescription access{{kDeviceLocation, ordinal_}, kReadWrite};
    check("cuMemSetAccess", cuda_->memory_access(address, bytes, &access, 1));
  } catch (...) {
    if (mapped) (void)cuda_->memory_unmap(address, bytes);
    if (address != 0) (void)cuda_->address_free(address, bytes);
    (void)cuda_->memory_release(handle);
    throw;
  }
  out.address = reinterpret_cast<void*>(address);
  mapped_.push_back({handle, bytes, imported});
  return out;
}

leat_device_memory Device::allocate(std::uint64_t bytes, bool shared) {
  const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + granularity_ - 1) / granularity_ * granularity_;
  const AllocationProperties p = properties(shared);
  Handle handle = 0;
  check("cuMemCreate", cuda_->memory_create(&handle, rounded, &p, 0));
  leat_device_memory out = map(handle, rounded, false);
  try {
    fill(out.address, 0, rounded);
    wait();
  } catch (...) {
    release(out);
    throw;
  }
  return out;
}

int Device::export_memory(const leat_device_memory& memory) {
  int fd = -1;
  check("cuMemExportToShareableHandle", cuda_->memory_export(&fd, memory.handle, kFileDescriptor, 0));
  return fd;
}

leat_device_memory Device::import_memory(int fd, std::uint64_t bytes) {
  const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + granularity_ - 1) / granularity_ * granularity_;
  Handle handle = 0;
  check("cuMemImportFromShareableHandle",
        cuda_->memory_import(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)), kFileDescriptor));
  return map(handle, rounded, true);
}

void Device::release(leat_device_memory& memory) noexcept {
  if (memory.address == nullptr) return;
  const auto address = reinterpret_cast<Address>(memory.address);
  (void)cuda_->memory_unmap(address, memory.bytes);
  (void)cuda_->address_free(address, memory.bytes);
  (void)cuda_->memory_release(memory.handle);
  std::erase_if(mapped_, [&](const Mapped& m) { return m.handle == memory.handle; });
  memory = {};
}

void* Device::host_allocate(std::uint64_t bytes) {
  void* out = nullptr;
  check("cuMemHostAlloc", cuda_->host_allocate(&out, bytes, kRegisterPortable | kRegisterDeviceMap));
  pinned_.emplace_back(out, bytes);
  return out;
}

void Device::host_release(void* at) noexcept {
  (void)cuda_->host_free(at);
  std::erase_if(pinned_, [at](const auto& p) { return p.first == at; });
}

void Device::host_register(void* at, std::uint64_t bytes, bool read_only) {
  if (read_only && info_.reads_read_only == 0) {  // the driver pins only what it may write
    registered_.push_back({static_cast<const std::uint8_t*>(at), bytes, 0});
    return;
  }
  check("cuMemHostRegister",
        cuda_->host_register(at, bytes, kRegisterPortable | kRegisterDeviceMap | (read_only ? kRegisterReadOnly : 0)));
  Registered entry{static_cast<const std::uint8_t*>(at), bytes, 0};
  if (const Status status = cuda_->host_address(&entry.address, at, 0); status != kSuccess) {
    (void)cuda_->host_unregister(at);
    check("cuMemHostGetDevicePointer", status);
  }
  registered_.push_back(entry);
}

void Device::host_unregister(void* at) noexcept {
  const auto found =
      std::find_if(registered_.begin(), registered_.end(), [at](const Registered& r) { return r.at == at; });
  if (found == registered_.end()) return;
  if (found->address != 0) (void)cuda_->host_unregister(at);
  registered_.erase(found);
}

leat_device_usage Device::usage() const {
  leat_device_usage out{};
  for (const Mapped& m : mapped_) (m.imported ? out.imported_bytes : out.allocated_bytes) += m.bytes;
  for (const auto& [at, bytes] : pinned_) out.pinned_bytes += bytes;
  for (const Registered& r : registered_) out.pinned_bytes += r.address != 0 ? r.bytes : 0;
  std::size_t free = 0, all = 0;
  check("cuMemGetInfo", cuda_->memory_info(&free, &all));
  out.free_bytes = free;
  return out;
}

void Device::reserve_staging(std::uint64_t bytes) {
  Set& set = now();
  if (bytes <= set.staging_bytes) return;
  if (set.staging != nullptr) host_release(std::exchange(set.staging, nullptr));
  set.staging_bytes = 0;
  set.staging = static_cast<std::uint8_t*>(host_allocate(bytes));
  set.staging_bytes = bytes;
}

const void* Device::staged(const void* from, std::uint64_t bytes) {
  if (bytes > now().staging_bytes - now().staging_end) {
    wait();
    reserve_staging(bytes);
  }
  std::uint8_t* const at = now().staging + now().staging_end;
  std::memcpy(at, from, bytes);
  now().staging_end += bytes;
  return at;
}

const Device::Registered* Device::registered(const std::uint8_t* at, std::uint64_t bytes) const noexcept {
  for (const Registered& r : registered_)
    if (at >= r.at && bytes <= r.bytes && static_cast<std::uint64_t>(at - r.at) <= r.bytes - bytes) return &r;
  return nullptr;
}

}  // namespace leat::cuda
