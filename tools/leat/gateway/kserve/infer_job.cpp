#include "tools/leat/gateway/kserve/infer_job.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat::gateway {
namespace {

constexpr std::uint64_t kMaxHeadJson = 1U << 20;    // where the tensors come behind it
constexpr std::uint64_t kMaxWholeJson = 32U << 20;  // where it holds them

}  // namespace

void InferJob::begin() {
  const std::uint64_t whole = channel_->body_left();
  std::uint64_t bytes = whole, max = kMaxWholeJson;
  if (const std::string_view text = channel_->head().field("inference-header-content-length"); !text.empty()) {
    const auto said = number_of(text);
    if (!said || *said > whole)
      return refuse(400, "bad_request", "Inference-Header-Content-Length is longer than the body");
    bytes = *said;
    if (bytes < whole) max = kMaxHeadJson;
  }
  if (!channel_->head().field("content-encoding").empty())
    return refuse(400, "bad_request", "compressed bodies are not taken; send it as it is");
  if (bytes == 0 || bytes > max)
    return refuse(bytes == 0 ? 400 : 413, "bad_request",
                  "a request's JSON has 1 to " + std::to_string(max) + " bytes; send tensors as binary data");
  if (!head_.take(serving_.held, bytes)) return refuse(503, "memory", "too many bodies at once; try again");
  channel_->read(head_.bytes(), guarded(this, &InferJob::head_read));
}

void InferJob::head_read() {
  auto request = infer_request_of(head_.text(), model_, channel_->body_left());
  head_ = HeldMemory();
  if (!request.ok()) return refuse(400, "bad_request", request.error());
  request_ = std::move(*request);
  for (const GivenInput& in : request_.inputs) {
    if (in.binary) binary_.push_back(in.input);
    if (!in.place.region.empty() && serving_.regions == nullptr)
      return refuse(400, "bad_request", "shared memory is not allowed here; start the gateway with --shared-memory");
  }
  auto terms = terms_of(*channel_, model_, request_.budget_ns, request_.priority);
  if (!terms.ok()) return refuse(400, "bad_request", terms.error());
  std::vector<leat_tensor_shape> shapes;
  if (model_.pictures) {
    terms->key.format = LEAT_FORMAT_rgb24;
    terms->key.width = request_.width;
    terms->key.height = request_.height;
  } else {
    for (const Tensor& t : model_.inputs) shapes.push_back(t.shape);
  }
  ask_for_stream(std::move(*terms), std::move(shapes));
}

void InferJob::fill() {
  if (!take_slot()) return;
  if (!model_.pictures && frame_->raw().tensor_count != model_.inputs.size())
    return refuse(503, "leatd_gone", "the model has changed; try again");
  next_tensor();
}

std::byte* InferJob::place_of(std::size_t input) const {
  if (model_.pictures) return reinterpret_cast<std::byte*>(frame_->plane(0));
  return static_cast<std::byte*>(frame_->raw().tensors[input]);
}

void InferJob::next_tensor() {
  if (finished()) return;
  if (next_ == binary_.size()) return all_read();
  const std::size_t input = binary_[next_];
  ++next_;
  std::span<std::byte> place;
  if (frame_) {
    place = {place_of(input), request_.bytes[input]};
  } else {
    place = aside_.bytes().subspan(aside_at_, request_.bytes[input]);
    aside_at_ += request_.bytes[input];
  }
  channel_->read(place, guarded(this, &InferJob::next_tensor));
}

std::span<std::byte> InferJob::other_place(std::size_t got) {
  if (!frame_ || next_ == 0) return {};
  std::uint64_t whole = 0;
  for (const std::size_t input : binary_) whole += request_.bytes[input];
  if (!aside_.take(serving_.held, whole)) {
    frame_.reset();  // what comes now goes nowhere: the reply ends the connection
    refuse(503, "memory", "too many slow bodies at once; try again");
    return {};
  }
  std::uint64_t at = 0;
  for (std::size_t i = 0; i + 1 < next_; ++i) {
    std::memcpy(aside_.bytes().data() + at, place_of(binary_[i]), request_.bytes[binary_[i]]);
    at += request_.bytes[binary_[i]];
  }
  const std::size_t now = binary_[next_ - 1];
  const auto place = aside_.bytes().subspan(at, request_.bytes[now]);
  std::memcpy(place.data(), place_of(now), got);
  aside_at_ = at + request_.bytes[now];
  frame_.reset();
  return place;
}

// What did not come behind the head. False: refused.
bool InferJob::fill_others() {
  std::uint64_t at = 0;
  if (!aside_.bytes().empty())
    for (const std::size_t input : binary_) {
      std::memcpy(place_of(input), aside_.bytes().data() + at, request_.bytes[input]);
      at += request_.bytes[input];
    }
  for (const GivenInput& in : request_.inputs) {
    if (in.binary) continue;
    const Tensor& tensor = model_.inputs[in.input];
    const std::span<std::byte> place(place_of(in.input), request_.bytes[in.input]);
    const std::string wrong = in.place.region.empty()
                                  ? write_json_tensor(request_.head.at("inputs").at(in.at).at("data"), tensor, place)
                                  : serving_.regions->read(in.place.region, in.place.offset, place, channel_->peer());
    if (!wrong.empty()) return refuse(400, "bad_request", wrong), false;
  }
  return true;
}

void InferJob::all_read() {
  if (!frame_ && !take_slot()) return;
  if (!fill_others()) return;
  aside_ = HeldMemory();
  submit();
}

void InferJob::complete(Answer answer) {
  struct Kept {
    std::shared_ptr<Link> link;  // outlives the answer
    Answer answer;
    HeadTensors head;
  };
  const auto kept = std::make_shared<Kept>(Kept{link_, std::move(answer), {}});
  const std::int64_t began = ::leat_now_ns();
  const auto outputs = outputs_of(kept->answer.raw(), request_, kept->head);
  if (!outputs.ok()) return refuse(500, "no_output", outputs.error());
  for (const FoundOutput& o : *outputs) {
    if (o.wanted == nullptr || o.wanted->place.region.empty()) continue;
    if (const std::string wrong = write_to_region(o); !wrong.empty()) return refuse(400, "bad_request", wrong);
  }
  Reply out = infer_reply(*outputs, request_, model_);
  add_fields(out, serving_.node.options().name, "none", spent_of(kept->answer.raw()));
  out.keeps = kept;
  counts_.output_ns += static_cast<std::uint64_t>(::leat_now_ns() - began);
  done(std::move(out));
}

// Empty: done.
std::string InferJob::write_to_region(const FoundOutput& output) const {
  const RegionPlace& place = output.wanted->place;
  const std::uint64_t bytes = output.part.count * leat_dtype_bytes(output.part.dtype);
  if (serving_.regions == nullptr) return "shared memory is not allowed here; start the gateway with --shared-memory";
  if (bytes > place.bytes) return "output '" + output.wanted->name + "' has " + std::to_string(bytes) + " bytes";
  return serving_.regions->write(place.region, place.offset, {static_cast<const std::byte*>(output.part.data), bytes},
                                 channel_->peer());
}

}  // namespace leat::gateway
