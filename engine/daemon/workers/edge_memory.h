// Where features lie between stages, and which worker gets what of it. An edge in host memory is leatd's. One in device
// memory is made by one of its producers; the descriptor stays here, goes to all others, and outlives workers, until
// the device is lost. Thread rule: the control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/daemon/workers/worker_link.h"
#include "engine/worker/link/protocol.h"
#include "leat/result.hpp"
#include "shm/src/segments/feature_slots.h"

namespace leat::daemon {

class EdgeMemory {
 public:
  explicit EdgeMemory(std::span<const shm::FeaturePool> host) : host_(host), device_(host.size()) {}

  // Of a worker that starts: which edges it makes, since nobody has and nobody `running` does.
  void choose_made(worker::Setup& setup, std::span<const worker::Setup* const> running) const;
  // What it is told once it has its setup; edges that are not made yet come later.
  Result<std::vector<WorkerMessage>> messages(const worker::Setup& setup) const;
  Result<WorkerMessage> device_message(const worker::Setup& setup, std::uint32_t index) const;
  // What a worker sent is an edge that it was to make: which one.
  Result<std::uint32_t> take_made(const worker::Setup& setup, const std::vector<std::byte>& packet,
                                  std::vector<shm::Fd> fds);
  // The device is lost. True: there was something in it.
  bool lose(std::uint32_t edge);

 private:
  std::span<const shm::FeaturePool> host_;  // [edge]
  std::vector<shm::Fd> device_;             // [edge] what its maker sent
};

}  // namespace leat::daemon
