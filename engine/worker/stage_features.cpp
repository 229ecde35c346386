#include "engine/worker/stage_features.h"

#include <cstring>

namespace leat::worker {
namespace {

Status agrees(const exec::Module& module, const shm::FeatureView* view, std::uint64_t model_bytes, const char* side) {
  const std::uint64_t planned = view == nullptr ? 0 : view->spec().row_bytes;
  if (planned == model_bytes) return Done{};
  return Error{module.spec().name + ": an item " + side + " this stage has " + std::to_string(model_bytes) + " bytes, the plan says " +
               std::to_string(planned) + "; profile the model again (leat profile) and plan anew"};
}

}  // namespace

Result<StageFeatures> StageFeatures::open(const exec::Module& module, const shm::FeatureView* in, const shm::FeatureView* out) {
  if (const Status status = agrees(module, in, module.feature_bytes_in(), "before"); !status) return Error{status.error()};
  if (const Status status = agrees(module, out, module.feature_bytes_out(), "behind"); !status) return Error{status.error()};
  StageFeatures features;
  features.in_ = in;
  features.out_ = out;
  if (in != nullptr) features.gathered_ = std::make_unique<std::byte[]>(module.spec().batch_max * in->spec().row_bytes);
  return features;
}

const std::byte* StageFeatures::input(std::span<const DispatchCell> cells, std::uint32_t* rows_copied) noexcept {
  if (in_ == nullptr) return nullptr;
  bool together = true;
  std::uint32_t next = cells[0].row_in;
  for (const DispatchCell& c : cells) {
    together = together && c.row_in == next;
    next = c.row_in + c.items;
  }
  if (together) return in_->row(cells[0].row_in);
  std::byte* at = gathered_.get();
  for (const DispatchCell& c : cells) {
    const std::uint64_t bytes = c.items * in_->spec().row_bytes;
    std::memcpy(at, in_->row(c.row_in), bytes);
    at += bytes;
    *rows_copied += c.items;
  }
  return gathered_.get();
}

}  // namespace leat::worker
