// One inference request, from its head to its answer.
//
//   head read -> stream found or opened -> slot -> tensors read into it -> submitted -> answer -> reply
//
// A body that comes slowly loses its slot: what came is copied aside, and copied back when all is there. A batch is
// read aside as a whole; its items are frames of one deadline, some of them in flight at a time, and their outputs are
// joined. Where one fails, the request does. Thread rule: the gateway's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/leat/gateway/kserve/infer_reply.h"
#include "tools/leat/gateway/kserve/infer_request.h"
#include "tools/leat/gateway/kserve/joined_outputs.h"
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
  void complete(std::uint32_t item, Answer answer) override;
  [[nodiscard]] std::string naming(std::uint32_t item) const override;
  void head_read();
  bool as_the_stream();
  [[nodiscard]] std::byte* slot_of(std::size_t input) const;
  [[nodiscard]] std::span<std::byte> place_of(std::size_t input);  // in the slot, else aside
  void next_tensor();
  bool write_others();
  void all_read();
  void send_items();
  void complete_item(std::uint32_t item, Answer answer);
  // Whether every output that goes into a client's memory got there; else it is refused.
  bool wrote_regions(const std::vector<FoundOutput>& outputs);
  void give(const std::vector<FoundOutput>& outputs, std::shared_ptr<void> keeps, Spent spent);
  [[nodiscard]] std::string write_to_region(const FoundOutput& output) const;

  HeldMemory head_, aside_;
  InferRequest request_;
  std::vector<std::size_t> binary_;      // the model's inputs that come behind the head, in order
  std::size_t next_ = 0;                 // of those
  std::vector<std::uint64_t> aside_at_;  // where each of the model's inputs begins aside, the binary ones first
  std::uint64_t binary_bytes_ = 0, all_bytes_ = 0;
  std::uint32_t sent_ = 0, given_ = 0;     // items
  std::shared_ptr<JoinedOutputs> joined_;  // of several
  Spent spent_;                            // by the item that took longest
};

}  // namespace leat::gateway
