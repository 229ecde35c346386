#include "engine/worker/features/edges.h"

#include <algorithm>
#include <cstdio>

namespace leat::worker {

Status Edges::make(const Setup& setup, exec::Device* device, const ControlLink& control) {
  views_.resize(setup.edges.size());
  for (std::uint32_t i = 0; i < setup.edges.size(); ++i) {
    const EdgeSetup& e = setup.edges[i];
    if (!e.make) continue;
    auto memory = device->allocate(e.spec.bytes(), true);
    if (!memory.ok()) return Error{memory.error()};
    auto fd = device->export_memory(*memory);
    if (!fd.ok()) return Error{fd.error()};
    const shm::Fd descriptor(*fd);
    const int fds[] = {descriptor.get()};
    if (auto sent = control.send(encode_edge_made(i), fds); !sent) return sent;
    views_[i] = shm::FeatureView::on_device(e.spec, memory->data());
    memory_.push_back(std::move(*memory));
  }
  return Done{};
}

bool Edges::complete() const {
  return std::all_of(views_.begin(), views_.end(), [](const auto& v) { return v.has_value(); });
}

Status Edges::take(const Setup& setup, exec::Device* device, ControlLink& control) {
  const auto index = decode_edge(control.packet);
  if (!index.ok() || *index >= views_.size() || views_[*index] || control.descriptors.size() != 1)
    return Error{"the features of an edge did not come; install leatd and leat-worker of one release"};
  return map(setup.edges[*index], setup.partition, device, std::move(control.descriptors[0]), views_[*index]);
}

Status Edges::map(const EdgeSetup& e, const std::string& partition, exec::Device* device, shm::Fd fd,
                  std::optional<shm::FeatureView>& view) {
  if (e.device) {
    auto memory = device->import_memory(fd.get(), e.spec.bytes());
    if (!memory.ok()) return Error{memory.error()};
    view = shm::FeatureView::on_device(e.spec, memory->data());
    memory_.push_back(std::move(*memory));
    return Done{};
  }
  auto mapped =
      shm::FeatureView::map(e.spec, std::move(fd), e.writes ? shm::Access::read_write : shm::Access::read_only);
  if (!mapped.ok()) return Error{mapped.error()};
  view = std::move(*mapped);
  if (device == nullptr) return Done{};
  // The device copies to and from these rows. Without pinning it still does, more slowly.
  if (auto pinned = device->register_host(view->memory().data(), view->memory().size(), !e.writes); !pinned)
    std::fprintf(stderr, "leat-worker %s: features are not pinned: %s\n", partition.c_str(), pinned.error().c_str());
  return Done{};
}

}  // namespace leat::worker
