#include "engine/worker/pools.h"

#include <algorithm>

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
  if (add.spec.bitstream()) return open_decoder(pool, device);
  if (device == nullptr) return Done{};
  const auto frames = pool.view.frames();
  const Status pinned = device->register_host(frames.data(), frames.size(), true);
  pool.registered = pinned.ok();
  return pinned;
}

// The slots hold what the host reads, once: nothing of them is pinned.
Status Pools::open_decoder(Pool& pool, exec::Device* device) {
  if (device == nullptr) return Done{};  // a stage that takes features: leatd sends no access units here
  const shm::PoolSpec& spec = pool.view.spec();
  auto decoder = device->decoder({spec.codec, spec.width, spec.height, spec.slots});
  if (!decoder.ok()) return Error{decoder.error()};
  pool.decoder = std::move(*decoder);
  return Done{};
}

void Pools::forget(const ForgetPool& what, exec::Device* device) noexcept {
  if (what.pool < pools_.size() && pools_[what.pool].generation == what.generation) clear(pools_[what.pool], device);
}

void Pools::clear(Pool& pool, exec::Device* device) noexcept {
  if (pool.registered) device->unregister_host(pool.view.frames().data());
  pool = Pool{};
}

Pools::Pool* Pools::pool_of(const DispatchCell& cell) noexcept {
  if (cell.pool >= pools_.size()) return nullptr;
  Pool& pool = pools_[cell.pool];
  return pool.there && pool.generation == cell.pool_generation ? &pool : nullptr;
}

Reason Pools::find(const DispatchCell& cell, exec::Item* item, bool* has_parts) noexcept {
  Pool* const pool = pool_of(cell);
  if (pool == nullptr) return Reason::partition_lost;
  const shm::PoolLayout& layout = pool->view.layout();
  const auto& spec = pool->view.spec();
  *item = {};
  item->frame.format = spec.format;
  item->frame.width = spec.width;
  item->frame.height = spec.height;
  item->frame.color = shm::color_of(cell.color, {}, spec.format, spec.height);
  item->result = pool->view.writable_result(cell.slot);
  *has_parts = layout.result_stride > sizeof(leat_result);
  if (spec.bitstream() && cell.row_in != kNoRow) return Reason::none;  // features: the pixels are not looked at
  if (spec.bitstream()) {
    leat_decoded picture{};
    if (pool->decoder == nullptr || !pool->decoder->picture(cell.slot, &picture)) return Reason::undecodable;
    std::copy_n(picture.planes, LEAT_MAX_PLANES, item->frame.planes);
    std::copy_n(picture.strides, LEAT_MAX_PLANES, item->frame.strides);
    item->frame.bytes = picture.bytes;
    item->frame.color = shm::color_of(cell.color, shm::color_from(picture.color_range, picture.color_matrix),
                                      picture.format, spec.height);
    item->frame.on_device = true;
    return Reason::none;
  }
  for (std::uint32_t p = 0; p < layout.planes; ++p) {
    item->frame.planes[p] = pool->view.plane(cell.slot, p);
    item->frame.strides[p] = layout.strides[p];
  }
  item->frame.bytes = layout.frame_bytes;
  item->frame.tensors = spec.tensors;
  item->frame.tensor_count = spec.tensor_count;
  return Reason::none;
}

bool Pools::decode(const DispatchCell& cell) noexcept {
  Pool* const pool = pool_of(cell);
  if (pool == nullptr || pool->decoder == nullptr || cell.item > pool->view.layout().frame_bytes) return true;
  const leat_access_unit unit{pool->view.plane(cell.slot, 0), cell.item, cell.slot, cell.items > 1 ? 1u : 0u};
  const bool decoded = pool->decoder->decode(unit), news = pool->decodes && !decoded;
  pool->decodes = decoded;
  return !news;
}

}  // namespace leat::worker
