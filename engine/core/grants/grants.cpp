#include "engine/core/grants/grants.h"

#include <algorithm>

namespace leat::core {
namespace {

constexpr TimeNs kMs = 1'000'000;
constexpr TimeNs kFirstLag = 1 * kMs, kMaxLag = 500 * kMs;      // from a grant to its picture
constexpr TimeNs kMinExpiry = 4 * kMs, kMaxExpiry = 250 * kMs;  // of a grant that is not used
constexpr TimeNs kUnderWay = 20 * kMs;  // what was begun before a component closed has come by then

// As many as a partition is given together.
std::uint32_t requests_that_pay(const PayingBatches& paying, const Component& component, PartitionId p) noexcept {
  std::uint32_t requests = 1;
  for (const std::uint32_t a : component.applications) requests = std::max(requests, paying.requests(a, p));
  return requests;
}

}  // namespace

// ---- streams ----

void Grants::open(StreamId stream, const StreamConfig& config, ComponentId component, TimeNs slo_ns,
                  TimeNs cost_ns) noexcept {
  Line& line = lines_[component];
  const bool waits = config.waits_for_grants;
  seats_[stream] = {.waits = waits,
                    .live = true,
                    .line = component,
                    .lag_ns = kFirstLag,
                    .period_ns = config.period_ns,
                    .slo_ns = slo_ns};
  ++(waits ? line.streams : line.others);
  waiting_ += waits ? 1 : 0;
  if (line.pace_ns == 0) line.pace_ns = cost_ns;
}

void Grants::close(StreamId stream) noexcept {
  Seat& seat = seats_[stream];
  Line& line = lines_[seat.line];
  if (seat.granted_now) drop_grant(stream);
  --(seat.waits ? line.streams : line.others);
  waiting_ -= seat.waits ? 1 : 0;
  seat.waits = seat.live = false;
  look(line);
}

// ---- the plan ----

void Grants::measure(const Model& model, const PayingBatches& paying, const Machine& machine) noexcept {
  for (ComponentId c = 0; c < model.components().size(); ++c) {
    const Component& component = model.components()[c];
    std::uint32_t taken = 0;
    for (const PartitionId p : component.partitions)
      if (machine.partition(p).up) taken += requests_that_pay(paying, component, p);
    lines_[c].taken = std::max(taken, 1u);
    lines_[c].slots = 2 * lines_[c].taken + 1;  // as much that waits, and a picture that is being made
    look(lines_[c]);
  }
}

void Grants::replaced(const Model& model, const PayingBatches& paying, const Machine& machine,
                      const Ledger& ledger) noexcept {
  for (Line& line : lines_) line = {.pace_ns = line.pace_ns};
  measure(model, paying, machine);
  for (StreamId s = 0; s < seats_.size(); ++s) {
    Seat& seat = seats_[s];
    if (seat.line == kNone) continue;
    const std::uint32_t application = ledger.stream(s).config.application;
    seat.line = model.component_of(model.topology().applications[application].modules.front());
    Line& line = lines_[seat.line];
    if (line.pace_ns == 0) line.pace_ns = model.cost_ns(application);
    if (seat.live) ++(seat.waits ? line.streams : line.others);
    for (std::uint32_t r = ledger.stream(s).first; r != kNone; r = ledger.request(r).next) {
      const std::uint8_t kept = ledger.request(r).grant;
      ++(kept == kNotCounted ? line.foreign : line.flying[kept]);
    }
    seat.granted_now = false;
    if (seat.waits) set_open(s, true);
  }
  expiries_ = {};
}

// ---- requests ----

void Grants::submitted(TimeNs now, StreamId stream, TimeNs capture_ns) noexcept {
  Seat& seat = seats_[stream];
  if (!seat.waits) return;
  Line& line = lines_[seat.line];
  seat.counts = seat.open || seat.granted_now || now - line.closed_ns < kUnderWay;
  if (seat.granted_now || seat.expired) {
    const TimeNs lag = now - seat.granted_ns;
    seat.lag_ns = std::min(seat.expired ? std::max(seat.lag_ns, lag) : seat.lag_ns + (lag - seat.lag_ns) / 4, kMaxLag);
    seat.expired = false;
  }
  if (seat.granted_now) drop_grant(stream);
  const TimeNs apart = capture_ns - seat.capture_ns;
  if (seat.open && seat.capture_ns != 0 && apart > 0)
    seat.period_ns = seat.period_ns == 0 ? apart : std::min(apart, seat.period_ns + seat.period_ns / 16);
  seat.capture_ns = std::max(seat.capture_ns, capture_ns);
  look(line);
}

std::uint8_t Grants::accepted(TimeNs now, StreamId stream, std::uint8_t level) noexcept {
  const Seat& seat = seats_[stream];
  Line& line = lines_[seat.line];
  if (!seat.waits || !seat.counts) {
    ++line.foreign;
    return kNotCounted;
  }
  const std::uint32_t before = flying(line, level) + line.foreign;
  ++line.flying[level];
  if (!seat.open || before < line.taken) return level;
  // It waits until those before it are done. Will it be replaced, or late, by then?
  const TimeNs most = std::min(seat.period_ns > 0 ? seat.period_ns / 10 * 9 : kNever, seat.slo_ns / 4 * 3);
  if ((before - line.taken + 1) * line.pace_ns > most) shut(now, line, level);
  return level;
}

void Grants::answered(TimeNs now, StreamId stream, std::uint8_t kept, End end) noexcept {
  Line& line = lines_[seats_[stream].line];
  if (kept == kNotCounted) {
    --line.foreign;
  } else {
    --line.flying[kept];
    if (end == End::lost) shut(now, line, kept);
  }
  if (end == End::ran) {
    if (line.busy) line.pace_ns += (std::min(now - line.done_ns, 8 * line.pace_ns) - line.pace_ns) / 16;
    line.pace_ns = std::max<TimeNs>(line.pace_ns, 1);
    line.done_ns = now;
    line.busy = flying(line, 0) + line.foreign >= line.taken;
  }
  look(line);
}

// ---- turns ----

std::uint32_t Grants::flying(const Line& line, int level) noexcept {
  std::uint32_t sum = 0;
  for (auto l = static_cast<std::size_t>(level); l < kLevels; ++l) sum += line.flying[l];
  return sum;
}

std::uint64_t Grants::in_hand(const Line& line, int level) noexcept {
  std::uint64_t sum = std::uint64_t{flying(line, level)} * kWhole;
  for (auto l = static_cast<std::size_t>(level); l < kLevels; ++l) sum += line.held[l];
  return sum;
}

std::uint64_t Grants::room(const Line& line) noexcept {
  const std::uint64_t like_others =
      std::uint64_t{line.foreign} * line.streams / std::max(line.others > 0 ? line.others : line.streams, 1u);
  return (line.slots + like_others) * kWhole;
}

void Grants::decide(TimeNs now, const Asked& asked) noexcept {
  expire(now);
  if (!dirty_) return;
  dirty_ = false;
  for (ComponentId c = 0; c < lines_.size(); ++c) {
    Line& line = lines_[c];
    if (!line.dirty) continue;
    line.dirty = false;
    if (line.closed < 0) continue;
    if (line.shut) {
      line.shut = false;
      for (StreamId s = 0; s < seats_.size(); ++s)
        if (seats_[s].waits && seats_[s].line == c && asked.level_of(s) <= line.closed) set_open(s, false);
    }
    take_turns(now, c, asked);
  }
}

void Grants::take_turns(TimeNs now, ComponentId c, const Asked& asked) noexcept {
  Line& line = lines_[c];
  const std::uint64_t most = room(line);
  while (in_hand(line, kLevels - 1) < most) {
    std::uint8_t level = 0;
    const StreamId stream = next(now, c, asked, &level);
    if (stream == kNone) {
      if (in_hand(line, 0) >= most) return;
      line.closed = -1;
      for (StreamId s = 0; s < seats_.size(); ++s)
        if (seats_[s].waits && seats_[s].line == c) set_open(s, true);
      return;
    }
    if (in_hand(line, level) >= most) return;
    grant(now, stream, level);
  }
}

// Whose turn it is: of those who have a picture, the highest level, and there whose picture is worth most.
StreamId Grants::next(TimeNs now, ComponentId c, const Asked& asked, std::uint8_t* level) const noexcept {
  StreamId best = kNone;
  TimeNs most = 0;
  for (StreamId s = 0; s < seats_.size(); ++s) {
    const Seat& seat = seats_[s];
    if (!seat.waits || seat.open || seat.granted_now || seat.line != c) continue;
    const std::uint8_t mine = asked.level_of(s);
    if (best != kNone && mine < *level) continue;
    const bool beside = best != kNone && mine == *level;
    if (asked.has_waiting(s) || (beside && asked.worth_ns(s, now) <= most)) continue;
    const std::optional<TimeNs> taken_ns = asked.picture_ns(s);
    const TimeNs worth = taken_ns ? asked.worth_ns(s, *taken_ns) : 0;
    if (!taken_ns || (beside && worth <= most)) continue;
    best = s;
    most = worth;
    *level = mine;
  }
  return best;
}

void Grants::grant(TimeNs now, StreamId stream, std::uint8_t level) noexcept {
  Seat& seat = seats_[stream];
  Line& line = lines_[seat.line];
  ++seat.granted;
  seat.granted_now = true;
  seat.expired = false;
  seat.level = level;
  seat.granted_ns = now;
  turns_[stream].deadline_ns = now + std::clamp(4 * seat.lag_ns, kMinExpiry, kMaxExpiry);
  expiries_.insert(turns_.data(), stream);
  // Half of the slots are enough for those whose pictures take longer: as many grants as come in that time.
  const std::uint64_t soon = std::uint64_t{line.slots} * kWhole / 2 * static_cast<std::uint64_t>(line.pace_ns) /
                             static_cast<std::uint64_t>(std::max<TimeNs>(seat.lag_ns, 1));
  seat.weight = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(soon, 1, kWhole));
  line.held[level] += seat.weight;
  tell(stream);
}

void Grants::drop_grant(StreamId stream) noexcept {
  Seat& seat = seats_[stream];
  expiries_.erase(turns_.data(), stream);
  seat.granted_now = false;
  lines_[seat.line].held[seat.level] -= seat.weight;
}

void Grants::expire(TimeNs now) noexcept {
  while (!expiries_.empty() && turns_[expiries_.front()].deadline_ns <= now) {
    const StreamId stream = expiries_.front();
    Seat& seat = seats_[stream];
    drop_grant(stream);
    seat.expired = true;
    seat.lag_ns = std::min(2 * seat.lag_ns, kMaxLag);
    look(lines_[seat.line]);
  }
}

void Grants::shut(TimeNs now, Line& line, int level) noexcept {
  if (level <= line.closed) return;
  if (line.closed < 0) line.closed_ns = now;
  line.closed = level;
  line.shut = true;
  look(line);
}

void Grants::set_open(StreamId stream, bool open) noexcept {
  if (seats_[stream].open == open) return;
  seats_[stream].open = open;
  tell(stream);
}

void Grants::tell(StreamId stream) noexcept {
  if (seats_[stream].listed) return;
  seats_[stream].listed = true;
  changed_.push_back(stream);
}

void Grants::told_all() noexcept {
  for (const StreamId s : changed_) seats_[s].listed = false;
  changed_.clear();
}

void Grants::audit(const Ledger& ledger) const {
  std::vector<Line> found(lines_.size());
  std::size_t turns = 0;
  for (StreamId s = 0; s < seats_.size(); ++s) {
    const Seat& seat = seats_[s];
    if (seat.line == kNone) {
      check(ledger.stream(s).live == 0, "requests of a stream that nobody opened");
      continue;
    }
    Line& line = found[seat.line];
    if (seat.live) ++(seat.waits ? line.streams : line.others);
    if (seat.granted_now) line.held[seat.level] += seat.weight, ++turns;
    for (std::uint32_t r = ledger.stream(s).first; r != kNone; r = ledger.request(r).next) {
      const std::uint8_t kept = ledger.request(r).grant;
      ++(kept == kNotCounted ? line.foreign : line.flying[kept]);
    }
  }
  check(expiries_.audit(turns_.data()) == turns, "the order in which turns expire");
  for (std::size_t c = 0; c < lines_.size(); ++c) {
    const Line &a = lines_[c], &b = found[c];
    check(a.streams == b.streams && a.others == b.others && a.foreign == b.foreign && a.flying == b.flying &&
              a.held == b.held,
          "what is in hand of a component");
  }
}

}  // namespace leat::core
