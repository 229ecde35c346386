// The frame and result slots of one stream: StreamPool makes the two segments (daemon, control thread), StreamView maps
// them (worker, client). Both are addressed by slot number through pool_layout(spec); the spec travels over a socket.
// Thread rule: create and map on a control thread; creating allocates pages (about 0.5 ms per MiB), all at once or in
// steps. The accessors from anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "leat/result.hpp"
#include "shm/src/segments/frame_slots.h"
#include "shm/src/segments/segment.h"
#include "shm/src/segments/segment_layout.h"

namespace leat::shm {

class StreamPool {
 public:
  // Precondition of both: problem(spec) == nullptr. begin() allocates no frames: grow() until it says that all are
  // there.
  static Result<StreamPool> create(const PoolSpec& spec);
  // directory: the parts of every result slot, nothing written yet; they fit into spec.result_bytes.
  static Result<StreamPool> begin(const PoolSpec& spec, std::span<const leat_part> directory = {});
  Result<bool> grow(std::uint64_t most_bytes);
  // Once the client has mapped its frames: it can take none away any more (Segment::secure). Then grow() again.
  Status secure();

  const PoolSpec& spec() const noexcept { return spec_; }
  const PoolLayout& layout() const noexcept { return layout_; }
  std::uint64_t bytes() const noexcept { return layout_.frames_bytes + layout_.results_bytes; }
  // Precondition of both: slot < spec().slots. Pixels are the client's to change at any time: compute on them, never
  // trust them.
  const std::uint8_t* frame(std::uint32_t slot) const noexcept {
    return frames_.memory().at<const std::uint8_t>(layout_.frame_offset(slot));
  }
  const leat_result* result(std::uint32_t slot) const noexcept {
    return results_.memory().at<const leat_result>(layout_.result_offset(slot));
  }
  leat_result* result(std::uint32_t slot) noexcept {
    return results_.memory().at<leat_result>(layout_.result_offset(slot));
  }

  // Before a slot's next frame: nothing is written in its parts. Nothing to do where the head is all there is.
  void clear_parts(std::uint32_t slot) noexcept;

  // Descriptors to pass on; each call makes new ones.
  Result<Fd> frames_for_client() const;   // read-write
  Result<Fd> results_for_client() const;  // read-only
  Result<Fd> frames_for_worker() const;   // read-only
  Result<Fd> results_for_worker() const;  // read-write

 private:
  PoolSpec spec_;
  PoolLayout layout_;
  Segment frames_, results_;
  std::vector<leat_part> directory_;
  std::uint64_t grown_ = 0;  // bytes of the frames that are there
  bool secured_ = false;
};

class StreamView {
 public:
  StreamView() = default;
  // Takes the descriptors as received and closes them once mapped. `spec` comes over the trusted socket.
  static Result<StreamView> map_for_worker(const PoolSpec& spec, Fd frames, Fd results);
  // `slots`: its words in the client's uplink.
  static Result<StreamView> map_for_client(const PoolSpec& spec, Fd frames, Fd results, const FrameSlots& slots);

  const PoolSpec& spec() const noexcept { return spec_; }
  const PoolLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::span<std::byte> frames() const noexcept { return {frames_.data(), frames_.bytes()}; }
  // Precondition of all: slot < spec().slots.
  const std::uint8_t* plane(std::uint32_t slot, std::uint32_t p) const noexcept {
    return frames_.at<const std::uint8_t>(layout_.frame_offset(slot) + layout_.plane_offset[p]);
  }
  std::uint8_t* writable_plane(std::uint32_t slot, std::uint32_t p) noexcept {  // client only
    return frames_.at<std::uint8_t>(layout_.frame_offset(slot) + layout_.plane_offset[p]);
  }
  const leat_result* result(std::uint32_t slot) const noexcept {
    return results_.at<const leat_result>(layout_.result_offset(slot));
  }
  leat_result* writable_result(std::uint32_t slot) noexcept {
    return results_.at<leat_result>(layout_.result_offset(slot));
  }                                                // worker only
  FrameSlots& slots() noexcept { return slots_; }  // client only

 private:
  static Result<StreamView> map(const PoolSpec& spec, Fd frames, Fd results, bool client);

  PoolSpec spec_;
  PoolLayout layout_;
  Mapping frames_, results_;
  FrameSlots slots_;
};

}  // namespace leat::shm
