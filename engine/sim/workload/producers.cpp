#include "engine/sim/workload/producers.h"

#include <utility>

namespace leat::sim {

bool Producers::came(TimeNs now, core::StreamId stream, std::size_t arrival) {
  State& s = all_[stream];
  left_out_ += s.newest != kNoPicture ? 1 : 0;
  s.newest = arrival;
  const bool begun = begin(now, s);
  if (begun || !s.producer.looks_once) return begun;
  ++left_out_;
  s.newest = kNoPicture;
  return false;
}

bool Producers::told(TimeNs now, core::StreamId stream, bool open, std::uint64_t granted) {
  State& s = all_[stream];
  s.open = open;
  s.granted = granted;
  return begin(now, s);
}

bool Producers::begin(TimeNs now, State& s) {
  if (s.newest == kNoPicture) return false;
  if (s.writes || now >= s.producer.stalls_from_ns || (!s.open && s.granted == s.used)) {
    s.asks = true;
    return false;
  }
  s.asks = false;
  s.used = s.granted;
  s.written = std::exchange(s.newest, kNoPicture);
  s.writes = true;
  s.written_ns = now + (write_ ? write_(s.written) : s.producer.write_ns);
  ++writing_;
  return true;
}

void Producers::close(core::StreamId stream) {
  State& s = all_[stream];
  left_out_ += (s.newest != kNoPicture ? 1 : 0) + (s.writes ? 1 : 0);
  writing_ -= s.writes ? 1 : 0;
  s = {};
}

std::size_t Producers::take(TimeNs now, core::StreamId stream) {
  State& s = all_[stream];
  if (!s.writes || s.written_ns != now) return kNoPicture;
  s.writes = false;
  --writing_;
  return s.written;
}

}  // namespace leat::sim
