// Reads ranges of a file straight into frame slots: through io_uring with the slots as registered buffers where the
// kernel allows it, through pread otherwise. Thread rule: one thread.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>

#include "leat/result.hpp"

namespace leat::tools {

struct ReadPart {
  void* to = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // in the file
};

class SlotReader {
 public:
  // fd: borrowed. use_ring false: pread without trying.
  explicit SlotReader(int fd, bool use_ring = true);
  ~SlotReader();
  SlotReader(const SlotReader&) = delete;
  SlotReader& operator=(const SlotReader&) = delete;

  // The memory that later reads go into. Without it, or where the kernel refuses, reads take plain addresses.
  void register_memory(std::span<const iovec> memory);
  // Reads every part whole. False: the file ended first.
  Result<bool> read(std::span<const ReadPart> parts);
  // "io_uring, registered", "io_uring" or "pread".
  [[nodiscard]] std::string way() const;

 private:
  struct Ring;
  Result<bool> read_by_ring(std::span<const ReadPart> parts);
  Result<bool> read_by_pread(ReadPart part) const;
  [[nodiscard]] int registered_index(const ReadPart& part) const;
  int fd_;
  std::unique_ptr<Ring> ring_;
};

}  // namespace leat::tools
