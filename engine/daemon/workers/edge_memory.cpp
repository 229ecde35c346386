#include "engine/daemon/workers/edge_memory.h"

#include <algorithm>
#include <utility>

namespace leat::daemon {

void EdgeMemory::choose_made(worker::Setup& setup, std::span<const worker::Setup* const> running) const {
  for (worker::EdgeSetup& e : setup.edges) {
    const auto makes_it = [&](const worker::EdgeSetup& other) { return other.edge == e.edge && other.make; };
    const bool made = std::ranges::any_of(
        running, [&](const worker::Setup* other) { return std::ranges::any_of(other->edges, makes_it); });
    const bool twice = std::any_of(setup.edges.data(), &e, makes_it);
    e.make = e.device && e.writes && !device_[e.edge] && !made && !twice;
  }
}

Result<std::vector<WorkerMessage>> EdgeMemory::messages(const worker::Setup& setup) const {
  std::vector<WorkerMessage> out;
  for (std::uint32_t index = 0; index < setup.edges.size(); ++index) {
    const worker::EdgeSetup& e = setup.edges[index];
    if (e.device) {
      if (!device_[e.edge]) continue;  // it makes it, or gets it once another has
      auto message = device_message(setup, index);
      if (!message) return Error{message.error()};
      out.push_back(std::move(*message));
      continue;
    }
    auto fd = e.writes ? host_[e.edge].for_producer() : host_[e.edge].for_consumer();
    if (!fd) return Error{fd.error()};
    out.push_back({.packet = worker::encode_edge(index)});
    out.back().fds.push_back(std::move(*fd));
  }
  return out;
}

Result<WorkerMessage> EdgeMemory::device_message(const worker::Setup& setup, std::uint32_t index) const {
  auto fd = shm::duplicate(device_[setup.edges[index].edge].get());
  if (!fd) return Error{fd.error()};
  WorkerMessage out{.packet = worker::encode_edge(index)};
  out.fds.push_back(std::move(*fd));
  return out;
}

Result<std::uint32_t> EdgeMemory::take_made(const worker::Setup& setup, const std::vector<std::byte>& packet,
                                            std::vector<shm::Fd> fds) {
  const auto index = worker::decode_edge(packet);
  const auto& edges = setup.edges;
  if (!index.ok() || *index >= edges.size() || !edges[*index].make || device_[edges[*index].edge])
    return Error{"its worker sent features that nobody asked for; install leatd and leat-worker of one release"};
  if (fds.size() != 1)
    return Error{"the descriptor of an edge's memory did not come through; raise the limit of open files (ulimit -n)"};
  const std::uint32_t edge = edges[*index].edge;
  device_[edge] = std::move(fds[0]);
  return edge;
}

bool EdgeMemory::lose(std::uint32_t edge) {
  if (!device_[edge]) return false;
  device_[edge].reset();
  return true;
}

}  // namespace leat::daemon
