#include "bench/gpu/questions/handover_memory.h"

#include <array>
#include <cstring>

namespace leat::probe {
namespace {

constexpr std::array<std::string_view, 3> kNames{"legacy_ipc", "vmm_fd", "pool"};

template <class T>
std::string to_blob(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T from_blob(const std::string& blob) {
  T value{};
  if (blob.size() != sizeof value) throw ProbeFailed("a hand-over's description has the wrong size");
  std::memcpy(&value, blob.data(), sizeof value);
  return value;
}

// ---- cudaIpcGetMemHandle ----

class LegacyExport final : public SharedMemory {
  static constexpr std::size_t kBlock = 2 * kMiB;

 public:
  // A multiple of the driver's own block, so that the handle covers nothing but this allocation.
  explicit LegacyExport(std::size_t bytes) : memory_((bytes + kHeaderBytes + kBlock - 1) / kBlock * kBlock) {
    start_ = memory_.as();
  }
  Export share() override {
    cudaIpcMemHandle_t handle{};
    LEAT_CUDA(cudaIpcGetMemHandle(&handle, start_));
    return {to_blob(handle), {}};
  }

 private:
  Buffer memory_;
};

class LegacyImport final : public SharedMemory {
 public:
  explicit LegacyImport(const std::string& blob) {
    LEAT_CUDA(cudaIpcOpenMemHandle(&start_, from_blob<cudaIpcMemHandle_t>(blob), cudaIpcMemLazyEnablePeerAccess));
  }
  ~LegacyImport() override { (void)cudaIpcCloseMemHandle(start_); }
  Export share() override { throw ProbeFailed("imported memory cannot be exported"); }
};

// ---- cuMemCreate, exported as a file descriptor ----

CUmemAllocationProp vmm_properties() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

class Vmm final : public SharedMemory {
 public:
  explicit Vmm(std::size_t bytes) {
    const CUmemAllocationProp properties = vmm_properties();
    round_up(bytes, properties);
    LEAT_DRIVER(cuMemCreate, &handle_, size_, &properties, 0);
    map(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  Vmm(std::size_t bytes, int fd, bool read_only) {
    round_up(bytes, vmm_properties());
    LEAT_DRIVER(cuMemImportFromShareableHandle, &handle_, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    map(read_only ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  ~Vmm() override { unmap(); }
  Export share() override {
    int fd = -1;
    LEAT_DRIVER(cuMemExportToShareableHandle, &fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return {{}, Fd(fd)};
  }

 private:
  void round_up(std::size_t bytes, const CUmemAllocationProp& properties) {
    std::size_t granularity = 0;
    LEAT_DRIVER(cuMemGetAllocationGranularity, &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    size_ = (bytes + kHeaderBytes + granularity - 1) / granularity * granularity;
  }
  void map(CUmemAccess_flags flags) {
    try {
      LEAT_DRIVER(cuMemAddressReserve, &address_, size_, 0, 0, 0);
      LEAT_DRIVER(cuMemMap, address_, size_, 0, handle_, 0);
      mapped_ = true;
      CUmemAccessDesc access{};
      access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      access.location.id = 0;
      access.flags = flags;
      LEAT_DRIVER(cuMemSetAccess, address_, size_, &access, 1);
    } catch (...) {
      unmap();
      throw;
    }
    start_ = reinterpret_cast<void*>(address_);
  }
  void unmap() noexcept {
    const Driver& d = driver();
    if (mapped_) d.cuMemUnmap(address_, size_);
    if (address_ != 0) d.cuMemAddressFree(address_, size_);
    d.cuMemRelease(handle_);
  }

  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  std::size_t size_ = 0;
  bool mapped_ = false;
};

// ---- a memory pool, exported as a file descriptor ----

class PoolExport final : public SharedMemory {
 public:
  explicit PoolExport(std::size_t bytes) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    LEAT_CUDA(cudaMemPoolCreate(&pool_, &properties));
    const cudaError_t allocated = cudaMallocFromPoolAsync(&start_, bytes + kHeaderBytes, pool_, stream_);
    if (allocated != cudaSuccess) (void)cudaMemPoolDestroy(pool_);
    LEAT_CUDA(allocated);
    stream_.wait();
  }
  ~PoolExport() override {
    (void)cudaFreeAsync(start_, stream_);
    (void)cudaStreamSynchronize(stream_);
    (void)cudaMemPoolDestroy(pool_);
  }
  Export share() override {
    int fd = -1;
    LEAT_CUDA(cudaMemPoolExportToShareableHandle(&fd, pool_, cudaMemHandleTypePosixFileDescriptor, 0));
    Fd owned(fd);
    cudaMemPoolPtrExportData data{};
    LEAT_CUDA(cudaMemPoolExportPointer(&data, start_));
    return {to_blob(data), std::move(owned)};
  }

 private:
  Stream stream_;
  cudaMemPool_t pool_ = nullptr;
};

class PoolImport final : public SharedMemory {
 public:
  PoolImport(const std::string& blob, int fd) {
    auto data = from_blob<cudaMemPoolPtrExportData>(blob);
    LEAT_CUDA(cudaMemPoolImportFromShareableHandle(&pool_, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                                   cudaMemHandleTypePosixFileDescriptor, 0));
    try {
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = 0;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      cudaMemAccessFlags given = cudaMemAccessFlagsProtNone;
      LEAT_CUDA(cudaMemPoolGetAccess(&given, pool_, &access.location));
      if (given != access.flags) LEAT_CUDA(cudaMemPoolSetAccess(pool_, &access, 1));
      LEAT_CUDA(cudaMemPoolImportPointer(&start_, pool_, &data));
    } catch (...) {
      (void)cudaMemPoolDestroy(pool_);
      throw;
    }
  }
  ~PoolImport() override {
    (void)cudaFreeAsync(start_, stream_);  // the importer frees first
    (void)cudaStreamSynchronize(stream_);
    (void)cudaMemPoolDestroy(pool_);
  }
  Export share() override { throw ProbeFailed("imported memory cannot be exported"); }

 private:
  Stream stream_;
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace

std::string_view name_of(Mechanism mechanism) noexcept { return kNames[static_cast<std::size_t>(mechanism)]; }

Mechanism mechanism_named(std::string_view name) {
  for (Mechanism mechanism : kMechanisms) {
    if (name_of(mechanism) == name) return mechanism;
  }
  throw ProbeFailed("unknown mechanism " + std::string(name));
}

std::unique_ptr<SharedMemory> allocate_shared(Mechanism mechanism, std::size_t bytes) {
  switch (mechanism) {
    case Mechanism::legacy_ipc:
      return std::make_unique<LegacyExport>(bytes);
    case Mechanism::vmm_fd:
      return std::make_unique<Vmm>(bytes);
    case Mechanism::pool:
      break;
  }
  return std::make_unique<PoolExport>(bytes);
}

std::unique_ptr<SharedMemory> import_shared(Mechanism mechanism, std::size_t bytes, const std::string& blob, int fd,
                                            bool read_only) {
  switch (mechanism) {
    case Mechanism::legacy_ipc:
      return std::make_unique<LegacyImport>(blob);
    case Mechanism::vmm_fd:
      return std::make_unique<Vmm>(bytes, fd, read_only);
    case Mechanism::pool:
      break;
  }
  return std::make_unique<PoolImport>(blob, fd);
}

}  // namespace leat::probe
