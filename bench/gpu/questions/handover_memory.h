// Device memory that two processes share, by each mechanism CUDA offers. The exporter allocates; the importer gets a
// blob and at most one descriptor. Both see the same bytes; the first kHeaderBytes are the header of one hand-over.
// Errors throw. Thread rule: as CUDA's.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <string_view>

#include "bench/gpu/device/gpu.h"

namespace leat::probe {

inline constexpr std::size_t kHeaderBytes = 4096;

// At the start of the shared memory.
struct HandoverHeader {
  kernels::Stamp last;         // when the producer's last block ended
  std::uint32_t word;          // sequence word of the device-word signal
  std::uint32_t reserved[13];  // the word stays alone in its line
};
static_assert(sizeof(HandoverHeader) <= kHeaderBytes);

enum class Mechanism : unsigned char { legacy_ipc, vmm_fd, pool };
inline constexpr Mechanism kMechanisms[] = {Mechanism::legacy_ipc, Mechanism::vmm_fd, Mechanism::pool};
[[nodiscard]] std::string_view name_of(Mechanism mechanism) noexcept;
[[nodiscard]] Mechanism mechanism_named(std::string_view name);

struct Export {
  std::string blob;
  Fd fd;  // where the mechanism has one
};

class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] virtual Export share() = 0;  // exporter only
  [[nodiscard]] HandoverHeader* header() const noexcept { return static_cast<HandoverHeader*>(start_); }
  [[nodiscard]] void* data() const noexcept { return static_cast<std::byte*>(start_) + kHeaderBytes; }

 protected:
  SharedMemory() = default;
  void* start_ = nullptr;
};

// `bytes` of data beside the header.
std::unique_ptr<SharedMemory> allocate_shared(Mechanism mechanism, std::size_t bytes);
// The same `bytes`. read_only: the mapping is asked for without write access (vmm_fd alone).
std::unique_ptr<SharedMemory> import_shared(Mechanism mechanism, std::size_t bytes, const std::string& blob, int fd,
                                            bool read_only = false);

}  // namespace leat::probe
