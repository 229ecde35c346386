// The frame and result slots of one stream: StreamPool makes the two segments (daemon, control thread), StreamView maps
// them (worker, client). Both are addressed by slot number through pool_layout(spec); the spec travels over a socket.
// Thread rule: create and map on a control thread (they fault pages: about 1 ms per MiB); the accessors from anywhere.
#pragma once

#include <cstdint>

#include "leat/result.hpp"
#include "shm/src/frame_slots.h"
#include "shm/src/layout.h"
#include "shm/src/segment.h"

namespace leat::shm {

class StreamPool {
 public:
  // Precondition: problem(spec) == nullptr. `owner`: the client's stream index, stored in the slot words.
  static Result<StreamPool> create(const PoolSpec& spec, std::uint32_t owner);

  const PoolSpec& spec() const noexcept { return spec_; }
  const PoolLayout& layout() const noexcept { return layout_; }
  std::uint64_t bytes() const noexcept { return layout_.frames_bytes + layout_.results_bytes; }
  FrameSlots slots() const noexcept { return slots_; }
  // Precondition of both: slot < spec().slots. Pixels are the client's to change at any time: compute on them, never trust them.
  const std::uint8_t* frame(std::uint32_t slot) const noexcept { return frames_.memory().at<const std::uint8_t>(layout_.frame_offset(slot)); }
  const leat_result* result(std::uint32_t slot) const noexcept { return results_.memory().at<const leat_result>(layout_.result_offset(slot)); }
  leat_result* result(std::uint32_t slot) noexcept { return results_.memory().at<leat_result>(layout_.result_offset(slot)); }

  // Descriptors to pass on; each call makes new ones.
  Result<Fd> frames_for_client() const;   // read-write
  Result<Fd> results_for_client() const;  // read-only
  Result<Fd> frames_for_worker() const;   // read-only
  Result<Fd> results_for_worker() const;  // read-write

 private:
  PoolSpec spec_;
  PoolLayout layout_;
  Segment frames_, results_;
  FrameSlots slots_;
};

class StreamView {
 public:
  StreamView() = default;
  // Takes the descriptors as received and closes them once mapped. `spec` comes over the trusted socket.
  static Result<StreamView> map_for_worker(const PoolSpec& spec, Fd frames, Fd results);
  static Result<StreamView> map_for_client(const PoolSpec& spec, Fd frames, Fd results, std::uint32_t owner);

  const PoolSpec& spec() const noexcept { return spec_; }
  const PoolLayout& layout() const noexcept { return layout_; }
  // Precondition of all: slot < spec().slots.
  const std::uint8_t* plane(std::uint32_t slot, std::uint32_t p) const noexcept {
    return frames_.at<const std::uint8_t>(layout_.frame_offset(slot) + layout_.plane_offset[p]);
  }
  std::uint8_t* writable_plane(std::uint32_t slot, std::uint32_t p) noexcept {  // client only
    return frames_.at<std::uint8_t>(layout_.frame_offset(slot) + layout_.plane_offset[p]);
  }
  const leat_result* result(std::uint32_t slot) const noexcept { return results_.at<const leat_result>(layout_.result_offset(slot)); }
  leat_result* writable_result(std::uint32_t slot) noexcept { return results_.at<leat_result>(layout_.result_offset(slot)); }  // worker only
  FrameSlots& slots() noexcept { return slots_; }  // client only

 private:
  static Result<StreamView> map(const PoolSpec& spec, Fd frames, Fd results, bool client, std::uint32_t owner);

  PoolSpec spec_;
  PoolLayout layout_;
  Mapping frames_, results_;
  FrameSlots slots_;
};

}  // namespace leat::shm
