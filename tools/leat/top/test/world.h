// Counters as a daemon might count them, second by second, without a daemon: for tests and measurements of `leat top`.
// The same seed, the same world.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tools/leat/top/facts/observation.h"

namespace leat::tools::top::test {

[[nodiscard]] shm::RecordSnapshot record_of(shm::RecordKind kind, std::uint32_t index, std::string label);

template <class Counter>
void set(shm::RecordSnapshot& record, Counter counter, std::uint64_t value) {
  record.values[static_cast<std::size_t>(counter)] = value;
}
template <class Counter>
void add(shm::RecordSnapshot& record, Counter counter, std::uint64_t n) {
  std::uint64_t& value = record.values[static_cast<std::size_t>(counter)];
  value = value == shm::kUnknown ? n : value + n;
}

// What a stream does in a second.
struct Deed {
  int sent = 15, late = 0, dropped = 0, failed = 0;
  Reason reason = Reason::overload;
  double latency_ms = 20;
};

class World {
 public:
  World(std::uint32_t streams, std::uint32_t partitions, std::uint64_t seed = 1);

  // One second passes; deeds by stream, the rest is well.
  void second(const std::vector<Deed>& deeds = {});
  [[nodiscard]] Observation look() const;
  [[nodiscard]] Observation gone() const;

  // ---- what happens to it ----
  void partition(std::uint32_t index, std::uint64_t state);
  void busy(double share) { busy_ = share; }
  void not_finite(std::uint32_t module, std::uint64_t answers) {
    add(rest_.modules[module], shm::ModuleCounter::not_finite, answers);
  }
  void refuse();
  void close(std::uint32_t stream);
  void open(std::uint32_t stream);  // another life of the record
  // Everything walks at random from here on: rates, losses, partitions, refusals, streams that come and go.
  void walk();

  [[nodiscard]] std::int64_t now_ns() const noexcept { return now_ns_; }
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }

 private:
  struct Stream {
    shm::RecordSnapshot record;
    bool open = true;
    int rate = 15;
    double trouble = 0;  // share of frames lost
    int kind = 0;        // of the trouble
    int quiet = 0;       // seconds without a frame
  };
  void begin(std::uint32_t stream);
  void deed(Stream& stream, const Deed& deed);

  std::mt19937_64 random_;
  std::int64_t now_ns_ = 1'000'000'000'000, started_ns_ = 0;
  Sample rest_;  // all but the streams
  std::vector<Stream> streams_;
  double busy_ = 0.3;
};

}  // namespace leat::tools::top::test
