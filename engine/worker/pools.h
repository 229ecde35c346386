// The slots of the streams whose frames come here, mapped read-only but for their results. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "engine/worker/link/channel.h"
#include "engine/worker/link/protocol.h"
#include "leat/outcome.h"
#include "leat/result.hpp"
#include "shm/src/segments/stream_pool.h"

namespace leat::worker {

class Pools {
 public:
  Pools() : pools_(kMaxPools) {}

  // In the place of what was there. Frames are pinned for the device once for all; an error of that alone leaves the
  // pool usable: they are uploaded one by one.
  Status add(const AddPool& add, std::vector<shm::Fd>& fds, exec::Device* device);
  // No batch on the device's stream may still read it.
  void forget(const ForgetPool& what, exec::Device* device) noexcept;

  // The frame and the result of a task; *has_parts: the result has a directory behind its head. partition_lost: its
  // pool could not be mapped here, or is another by now; undecodable: its access unit became no picture.
  Reason find(const DispatchCell& cell, exec::Item* item, bool* has_parts) noexcept;
  // What a slot of a bitstream holds, by a cell of that kind. False: the first that becomes no picture since others
  // did, and the device says why.
  bool decode(const DispatchCell& cell) noexcept;

 private:
  struct Pool {
    bool there = false;
    bool registered = false;  // its frames, with the device
    std::uint32_t generation = 0;
    shm::StreamView view;
    std::unique_ptr<exec::Decoder> decoder;  // of a bitstream
    bool decodes = true;                     // its last access unit became a picture
  };
  Pool* pool_of(const DispatchCell& cell) noexcept;
  static Status open_decoder(Pool& pool, exec::Device* device);
  static void clear(Pool& pool, exec::Device* device) noexcept;

  std::vector<Pool> pools_;
};

}  // namespace leat::worker
