// One inference request, from its head to its answer.
//
//   head read -> stream found or opened -> slot -> tensors read into it -> submitted -> answer -> reply
//
// A body that comes slowly loses its slot: what came is copied aside, and copied back when all is there.
// Thread rule: the gateway's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/leat/gateway/kserve/infer_reply.h"
#include "tools/leat/gateway/kserve/infer_request.h"
#include "tools/leat/gateway/kserve/shared_memory.h"
#include "tools/leat/gateway/serving/frame_job.h"

namespace leat::gateway {

class InferJob final : public FrameJob {
 public:
  using FrameJob::FrameJob;
  std::span<std::byte> other_place(std::size_t got) override;

 private:
  void begin() override;
  void fill() override;
  void complete(Answer answer) override;
  void head_read();
  [[nodiscard]] std::byte* place_of(std::size_t input) const;  // in the slot
  void next_tensor();
  bool fill_others();
  void all_read();
  [[nodiscard]] std::string write_to_region(const FoundOutput& output) const;

  HeldMemory head_, aside_;
  InferRequest request_;
  std::vector<std::size_t> binary_;  // the model's inputs that come behind the head, in order
  std::size_t next_ = 0;             // of those
  std::uint64_t aside_at_ = 0;       // bytes of `aside_` that are read
};

}  // namespace leat::gateway
