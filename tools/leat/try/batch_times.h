// How long each module ran, from the events in leatd's counters segment, and which pictures it was given too wide.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "leat/result.hpp"
#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"

namespace leat::tools {

class BatchTimes {
 public:
  static Result<BatchTimes> connect(const std::string& socket);
  // Of batches that ended since the last call: module, and the milliseconds from the sending of its batches to their
  // end, together, in the order in which the modules ended first.
  std::vector<std::pair<std::string, double>> since_last();
  // Module, and how many of its pictures were squeezed since the last call; none that squeezed none.
  std::vector<std::pair<std::string, std::uint64_t>> squeezed_since_last();

 private:
  struct Batch {
    std::uint64_t module = 0;
    std::int64_t begun_ns = 0;
  };
  BatchTimes(shm::Observer observer, shm::CountersReader reader)
      : observer_(std::move(observer)), reader_(std::move(reader)) {}
  shm::Observer observer_;
  shm::CountersReader reader_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Batch> running_;
  std::map<std::string, std::uint64_t> squeezed_;  // by module, at the last call
};

}  // namespace leat::tools
