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
  aside_at_.resize(model_.inputs.size());
  for (const bool binary : {true, false}) {
    for (const GivenInput& in : request_.inputs) {
      if (in.binary != binary) continue;
      aside_at_[in.input] = all_bytes_;
      all_bytes_ += request_.bytes[in.input];
      if (binary) binary_.push_back(in.input);
    }
    if (binary) binary_bytes_ = all_bytes_;
  }
  for (const GivenInput& in : request_.inputs) {
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
  if (request_.items > 1) {
    if (!in_time(request_.items)) return;
    if (!aside_.take(serving_.held, all_bytes_)) return refuse(503, "memory", "too many bodies at once; try again");
    joined_ = std::make_shared<JoinedOutputs>(serving_.held, request_.items);
    return next_tensor();
  }
  if (!take_slot()) return;
  if (!as_the_stream()) return;
  next_tensor();
}

// Whether the stream's frames hold what the model's description said.
bool InferJob::as_the_stream() {
  if (model_.pictures || frame_->raw().tensor_count == model_.inputs.size()) return true;
  return refuse(503, "leatd_gone", "the model has changed; try again"), false;
}

std::byte* InferJob::slot_of(std::size_t input) const {
  if (model_.pictures) return reinterpret_cast<std::byte*>(frame_->plane(0));
  return static_cast<std::byte*>(frame_->raw().tensors[input]);
}

std::span<std::byte> InferJob::place_of(std::size_t input) {
  if (frame_) return {slot_of(input), request_.bytes[input]};
  return aside_.bytes().subspan(aside_at_[input], request_.bytes[input]);
}

void InferJob::next_tensor() {
  if (finished()) return;
  if (next_ == binary_.size()) return all_read();
  channel_->read(place_of(binary_[next_++]), guarded(this, &InferJob::next_tensor));
}

std::span<std::byte> InferJob::other_place(std::size_t got) {
  if (!frame_ || next_ == 0) return {};
  if (!aside_.take(serving_.held, binary_bytes_)) {
    frame_.reset();  // what comes now goes nowhere: the reply ends the connection
    refuse(503, "memory", "too many slow bodies at once; try again");
    return {};
  }
  const std::size_t now = binary_[next_ - 1];
  for (std::size_t i = 0; i < next_; ++i) {
    const std::size_t input = binary_[i];
    std::memcpy(aside_.bytes().data() + aside_at_[input], slot_of(input), input == now ? got : request_.bytes[input]);
  }
  frame_.reset();
  return place_of(now);
}

// What did not come behind the head. False: refused.
bool InferJob::write_others() {
  for (const GivenInput& in : request_.inputs) {
    if (in.binary) continue;
    const std::span<std::byte> place = place_of(in.input);
    const std::string wrong =
        in.place.region.empty()
            ? write_json_tensor(request_.head.at("inputs").at(in.at).at("data"), model_.inputs[in.input], place)
            : serving_.regions->read(in.place.region, in.place.offset, place, channel_->peer());
    if (!wrong.empty()) return refuse(400, "bad_request", wrong), false;
  }
  return true;
}

void InferJob::all_read() {
  if (request_.items > 1) {
    if (write_others()) send_items();
    return;
  }
  if (!frame_) {
    if (!take_slot() || !as_the_stream()) return;
    for (const std::size_t input : binary_)
      std::memcpy(slot_of(input), aside_.bytes().data() + aside_at_[input], request_.bytes[input]);
  }
  if (!write_others()) return;
  aside_ = HeldMemory();
  submit();
}

// Half of a stream that others use too is left to them.
void InferJob::send_items() {
  const std::uint32_t depth = link_->spec().depth;
  const std::uint32_t at_once = std::max(1U, terms_.own_stream ? depth : depth / 2);
  while (!finished() && sent_ < request_.items && sent_ - given_ < at_once) {
    if (!take_slot(request_.items - sent_, sent_ > given_) || !as_the_stream()) return;
    for (std::size_t input = 0; input < model_.inputs.size(); ++input) {
      const std::uint64_t bytes = request_.bytes[input] / request_.items;
      std::memcpy(slot_of(input), aside_.bytes().data() + aside_at_[input] + sent_ * bytes, bytes);
    }
    submit(sent_++);
  }
}

std::string InferJob::naming(std::uint32_t item) const {
  if (request_.items <= 1) return {};
  return "item " + std::to_string(item + 1) + " of " + std::to_string(request_.items) + ": ";
}

void InferJob::complete(std::uint32_t item, Answer answer) {
  if (request_.items > 1) return complete_item(item, std::move(answer));
  struct Kept {
    std::shared_ptr<Link> link;  // outlives the answer
    Answer answer;
    HeadTensors head;
  };
  const auto kept = std::make_shared<Kept>(Kept{link_, std::move(answer), {}});
  const auto outputs = outputs_of(kept->answer.raw(), request_, kept->head);
  if (!outputs.ok()) return refuse(500, "no_output", outputs.error());
  give(*outputs, kept, spent_of(kept->answer.raw()));
}

void InferJob::complete_item(std::uint32_t item, Answer answer) {
  {
    const Answer done = std::move(answer);  // its place is free before the next item wants one
    HeadTensors head;
    const auto outputs = outputs_of(done.raw(), request_, head);
    if (!outputs.ok()) return refuse(500, "no_output", naming(item) + outputs.error());
    if (const std::string wrong = joined_->add(item, *outputs); !wrong.empty())
      return refuse(400, "bad_request", wrong);
    const Spent spent = spent_of(done.raw());
    spent_ = {.queue_ns = std::max(spent_.queue_ns, spent.queue_ns),
              .compute_ns = std::max(spent_.compute_ns, spent.compute_ns)};
  }
  if (++given_ < request_.items) return send_items();
  give(joined_->all(), joined_, spent_);
}

bool InferJob::wrote_regions(const std::vector<FoundOutput>& outputs) {
  for (const FoundOutput& o : outputs) {
    if (o.wanted == nullptr || o.wanted->place.region.empty()) continue;
    if (const std::string wrong = write_to_region(o); !wrong.empty()) return refuse(400, "bad_request", wrong), false;
  }
  return true;
}

// `keeps` holds what the outputs are views of.
void InferJob::give(const std::vector<FoundOutput>& outputs, std::shared_ptr<void> keeps, Spent spent) {
  const std::int64_t began = ::leat_now_ns();
  if (!wrote_regions(outputs)) return;
  Reply out = infer_reply(outputs, request_, model_);
  add_fields(out, serving_.node.options().name, "none", spent);
  out.keeps = std::move(keeps);
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
