#include "engine/worker/pools.h"

namespace leat::worker {

Status Pools::add(const AddPool& add, std::vector<shm::Fd>& fds, exec::Device* device) {
  if (add.pool >= pools_.size() || fds.size() != 2)
    return Error{"leatd sent a pool this worker cannot take; install leatd and leat-worker of one release"};
  auto view = shm::StreamView::map_for_worker(add.spec, std::move(fds[0]), std::move(fds[1]));
  if (!view.ok()) return Error{view.error()};
  Pool& pool = pools_[add.pool];
  clear(pool, device);
  pool.view = std::move(*view);
  pool.generation = add.generation;
  pool.there = true;
  if (device == nullptr) return Done{};
  const auto frames = pool.view.frames();
  const Status pinned = device->register_host(frames.data(), frames.size(), true);
  pool.registered = pinned.ok();
  return pinned;
}

void Pools::forget(const ForgetPool& what, exec::Device* device) noexcept {
  if (what.pool < pools_.size() && pools_[what.pool].generation == what.generation) clear(pools_[what.pool], device);
}

void Pools::clear(Pool& pool, exec::Device* device) noexcept {
  if (pool.registered) device->unregister_host(pool.view.frames().data());
  pool = Pool{};
}

bool Pools::find(const DispatchCell& cell, exec::Item* item, bool* has_parts) noexcept {
  if (cell.pool >= pools_.size()) return false;
  Pool& pool = pools_[cell.pool];
  if (!pool.there || pool.generation != cell.pool_generation) return false;
  const shm::PoolLayout& layout = pool.view.layout();
  *item = {};
  for (std::uint32_t p = 0; p < layout.planes; ++p) {
    item->frame.planes[p] = pool.view.plane(cell.slot, p);
    item->frame.strides[p] = layout.strides[p];
  }
  const auto& spec = pool.view.spec();
  item->frame.format = spec.format;
  item->frame.width = spec.width;
  item->frame.height = spec.height;
  item->frame.bytes = layout.frame_bytes;
  item->frame.tensors = spec.tensors;
  item->frame.tensor_count = spec.tensor_count;
  item->result = pool.view.writable_result(cell.slot);
  *has_parts = layout.result_stride > sizeof(leat_result);
  return true;
}

}  // namespace leat::worker
