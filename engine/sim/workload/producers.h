// Clients of streams that wait for grants, as the simulator plays them: each has the newest picture at hand, and writes
// and submits it when one is wanted. What is not wanted before the next picture is there is left out, and costs
// nothing.
//
// Deterministic. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/core/scheduler.h"

namespace leat::sim {

using core::TimeNs;

struct Producer {
  TimeNs write_ns = 300'000;             // from the moment at which a picture is wanted to its submission
  TimeNs stalls_from_ns = core::kNever;  // from then on it says that it has pictures, and submits none
  // It looks only when a picture comes, and leaves out what is not wanted then. Else it waits with the newest one.
  bool looks_once = false;
};

// How long the picture of an arrival is written; empty: as its producer says.
using WriteTimes = std::function<TimeNs(std::size_t arrival)>;

class Producers {
 public:
  static constexpr std::size_t kNoPicture = SIZE_MAX;

  // `write` outlives this.
  Producers(std::uint32_t streams, const WriteTimes& write) : all_(streams), write_(write) {}

  void open(core::StreamId stream, const Producer& producer) { all_[stream] = {.producer = producer, .waits = true}; }
  void close(core::StreamId stream);  // what it has is left out
  [[nodiscard]] bool has(core::StreamId stream) const noexcept { return all_[stream].waits; }
  // A picture has come; what the stream was told is new. True: one is written, until written_ns().
  [[nodiscard]] bool came(TimeNs now, core::StreamId stream, std::size_t arrival);
  [[nodiscard]] bool told(TimeNs now, core::StreamId stream, bool open, std::uint64_t granted);
  [[nodiscard]] TimeNs written_ns(core::StreamId stream) const noexcept { return all_[stream].written_ns; }
  // The arrival that is submitted now; kNoPicture: none is, its stream was closed.
  [[nodiscard]] std::size_t take(TimeNs now, core::StreamId stream);
  [[nodiscard]] bool offers(core::StreamId stream) const noexcept { return all_[stream].asks; }
  [[nodiscard]] std::size_t picture(core::StreamId stream) const noexcept {
    return all_[stream].newest;
  }  // its arrival
  [[nodiscard]] std::uint32_t writing() const noexcept { return writing_; }
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  struct State {
    Producer producer;
    bool waits = false;
    bool open = true;
    bool asks = false;  // it has a picture, which was not wanted
    bool writes = false;
    std::uint64_t granted = 0, used = 0;
    std::size_t newest = kNoPicture;  // not submitted, nor being written
    std::size_t written = kNoPicture;
    TimeNs written_ns = 0;
  };
  [[nodiscard]] bool begin(TimeNs now, State& state);

  std::vector<State> all_;  // by StreamId
  const WriteTimes& write_;
  std::uint32_t writing_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace leat::sim
