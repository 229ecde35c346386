#include "engine/worker/features/stage_features.h"

#include <cstring>

namespace leat::worker {
namespace {

Status agrees(const exec::Module& module, const shm::FeatureView* view, std::uint64_t model_bytes, const char* side) {
  const std::uint64_t planned = view == nullptr ? 0 : view->spec().row_bytes;
  if (planned == model_bytes) return Done{};
  return Error{module.spec().name + ": an item " + side + " this stage has " + std::to_string(model_bytes) +
               " bytes, the plan says " + std::to_string(planned) +
               "; profile the model again (leat profile) and plan anew"};
}

}  // namespace

Result<StageFeatures> StageFeatures::open(const exec::Module& module, const shm::FeatureView* in,
                                          const shm::FeatureView* out, bool in_is_peer) {
  if (const Status status = agrees(module, in, module.feature_bytes_in(), "before"); !status)
    return Error{status.error()};
  if (const Status status = agrees(module, out, module.feature_bytes_out(), "behind"); !status)
    return Error{status.error()};
  StageFeatures features;
  features.in_ = in;
  features.out_ = out;
  features.in_is_peer_ = in_is_peer;
  for (const shm::FeatureView* view : {in, out})
    if (view != nullptr && view->on_device() && !module.on_device())
      return Error{module.spec().name + ": its features are in device memory, but its executor runs on the host"};
  if (in != nullptr && module.on_device()) {
    features.device_ = module.spec().device;
    auto room = features.device_->allocate(module.spec().batch_max * in->spec().row_bytes);
    if (!room.ok()) return Error{room.error()};
    features.gathered_there_ = std::move(*room);
  } else if (in != nullptr) {
    for (std::uint32_t set = 0; set < module.sets(); ++set)
      features.gathered_[set] = std::make_unique<std::byte[]>(module.spec().batch_max * in->spec().row_bytes);
  }
  return features;
}

const std::byte* StageFeatures::input(std::span<const DispatchCell> cells, std::uint32_t* rows_copied,
                                      std::uint32_t set) noexcept {
  if (in_ == nullptr) return nullptr;
  bool together = true;
  std::uint32_t next = cells[0].row_in;
  for (const DispatchCell& c : cells) {
    together = together && c.row_in == next;
    next = c.row_in + c.items;
  }
  if (together && !in_is_peer_ && in_->on_device() == (device_ != nullptr)) return in_->row(cells[0].row_in);
  std::byte* const gathered = device_ != nullptr ? gathered_there_.data() : gathered_[set].get();
  std::byte* at = gathered;
  for (const DispatchCell& c : cells) {
    const std::uint64_t bytes = c.items * in_->spec().row_bytes;
    if (device_ == nullptr)
      std::memcpy(at, in_->row(c.row_in), bytes);
    else if (!device_->copy(at, in_->row(c.row_in), bytes))
      return nullptr;
    at += bytes;
    *rows_copied += c.items;
  }
  return gathered;
}

}  // namespace leat::worker
