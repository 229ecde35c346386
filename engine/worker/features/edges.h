// The features of a route's edges that this worker writes or reads: made on its own device for others, or taken from
// leatd's hands. One thread. Errors: one line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/exec/device_plugin.h"
#include "engine/worker/control_link.h"
#include "engine/worker/link/protocol.h"
#include "shm/src/segments/feature_slots.h"

namespace leat::worker {

class Edges {
 public:
  // Makes those that are this worker's to make, and hands each to leatd. What others wait for comes before what this
  // one waits for: makers of two edges may each read the other's.
  Status make(const Setup& setup, exec::Device* device, const ControlLink& control);
  // The message `edge` with its descriptor.
  Status take(const Setup& setup, exec::Device* device, ControlLink& control);
  [[nodiscard]] bool complete() const;

  // Null: of no edge (kNoEdge). Stays where it is.
  [[nodiscard]] const shm::FeatureView* at(std::uint32_t index) const {
    return index == kNoEdge ? nullptr : &*views_[index];
  }

 private:
  Status map(const EdgeSetup& edge, const std::string& partition, exec::Device* device, shm::Fd fd,
             std::optional<shm::FeatureView>& view);

  std::vector<exec::DeviceBuffer> memory_;
  std::vector<std::optional<shm::FeatureView>> views_;  // as in Setup; all there after start
};

}  // namespace leat::worker
