#include "shm/src/counters/counters.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace leat::shm {

namespace {

#define X(name, gauge, text) CounterName{#name, gauge != 0, text},
constexpr CounterName kStream[] = {LEAT_STREAM_COUNTERS(X)};
constexpr CounterName kClient[] = {LEAT_CLIENT_COUNTERS(X)};
constexpr CounterName kModule[] = {LEAT_MODULE_COUNTERS(X)};
constexpr CounterName kPartition[] = {LEAT_PARTITION_COUNTERS(X)};
constexpr CounterName kEdge[] = {LEAT_EDGE_COUNTERS(X)};
constexpr CounterName kUser[] = {LEAT_USER_COUNTERS(X)};
constexpr CounterName kDaemon[] = {LEAT_DAEMON_COUNTERS(X)};
#undef X
static_assert(std::size(kStream) <= kMaxValues && std::size(kDaemon) <= kMaxValues &&
              std::size(kPartition) <= kMaxValues && std::size(kUser) <= kMaxValues);

constexpr CountersLayout kLayout = counters_layout();

std::uint64_t record_offset(RecordKind kind, std::uint32_t index) noexcept {
  return kLayout.offset[static_cast<std::size_t>(kind)] + index * sizeof(RecordLayout);
}
bool in_range(RecordKind kind, std::uint32_t index) noexcept {
  return kind < RecordKind::count_ && index < kMaxRecords[static_cast<std::size_t>(kind)];
}

std::uint64_t load(std::uint64_t& value) noexcept { return atomic_ref(value).load(std::memory_order_relaxed); }

}  // namespace

std::span<const CounterName> counter_names(RecordKind kind) noexcept {
  switch (kind) {
    case RecordKind::daemon:
      return kDaemon;
    case RecordKind::total:
    case RecordKind::stream:
      return kStream;
    case RecordKind::client:
      return kClient;
    case RecordKind::module:
      return kModule;
    case RecordKind::partition:
      return kPartition;
    case RecordKind::edge:
      return kEdge;
    case RecordKind::user:
      return kUser;
    case RecordKind::count_:
      break;
  }
  return {};
}

std::string_view name_of(RecordKind kind) noexcept {
  constexpr std::string_view kNames[] = {"daemon", "total", "client", "stream", "module", "partition", "edge", "user"};
  static_assert(std::size(kNames) == kRecordKinds);
  return kind < RecordKind::count_ ? kNames[static_cast<std::size_t>(kind)] : "unknown";
}

std::string_view name_of(Refusal refusal) noexcept {
  switch (refusal) {
#define X(name, value, text) \
  case Refusal::name:        \
    return #name;
    LEAT_REFUSALS(X)
#undef X
  }
  return "unknown";
}

std::string_view text_of(Refusal refusal) noexcept {
  switch (refusal) {
#define X(name, value, text) \
  case Refusal::name:        \
    return text;
    LEAT_REFUSALS(X)
#undef X
  }
  return "unknown";
}

std::string_view name_of(EventKind kind) noexcept {
  switch (kind) {
#define X(name, value)  \
  case EventKind::name: \
    return #name;
    LEAT_EVENTS(X)
#undef X
  }
  return "unknown";
}

std::uint32_t bucket_of(std::uint64_t ns) noexcept {
  if (ns < (std::uint64_t{1} << kLowestOctave)) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(ns)) - 1;  // 2^octave <= ns
  const auto sub = static_cast<std::uint32_t>(ns >> (octave - 4)) & (kSubBuckets - 1);
  static_assert(kSubBuckets == 16 && kLowestOctave >= 4);
  return std::min((octave - kLowestOctave) * kSubBuckets + sub, kBuckets - 1);
}

std::uint64_t bucket_low_ns(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket / kSubBuckets + kLowestOctave;
  return std::uint64_t{kSubBuckets + bucket % kSubBuckets} << (octave - 4);
}

Result<CountersWriter> CountersWriter::create() {
  Result<Segment> segment = Segment::create("leat:counters", kLayout.bytes, Seal::future_write);
  if (!segment) return Error{segment.error()};
  CountersWriter w;
  w.segment_ = std::move(segment).value();
  w.segment_.memory().at<SegmentHeader>(0)->publish(SegmentKind::counters, kLayout.bytes);
  return w;
}

RecordLayout* CountersWriter::at(RecordKind kind, std::uint32_t index) const noexcept {
  return in_range(kind, index) ? segment_.memory().at<RecordLayout>(record_offset(kind, index)) : nullptr;
}

Record CountersWriter::begin(RecordKind kind, std::uint32_t index, std::string_view label) noexcept {
  RecordLayout* r = at(kind, index);
  if (r == nullptr) return {};
  Record record(r);
  {
    Record::Update together(record);
    const auto names = counter_names(kind);
    for (std::size_t i = 0; i < kMaxValues; ++i)
      atomic_ref(r->values[i]).store(i < names.size() && !names[i].gauge ? 0 : kUnknown, std::memory_order_relaxed);
    for (auto& cause : r->causes) atomic_ref(cause).store(0, std::memory_order_relaxed);
    for (auto& histogram : r->buckets)
      for (auto& bucket : histogram) atomic_ref(bucket).store(0, std::memory_order_relaxed);
    for (std::size_t i = 0; i < sizeof r->label; ++i)
      atomic_ref(r->label[i])
          .store(i < label.size() && i + 1 < sizeof r->label ? label[i] : '\0', std::memory_order_relaxed);
    atomic_ref epoch(r->epoch);
    epoch.store(epoch.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // release: label and zeroed values before "live", also for a snapshot that is not together; partner: the acquire in
  // CountersReader::snapshot.
  atomic_ref(r->state).store(static_cast<std::uint32_t>(RecordState::live), std::memory_order_release);
  return record;
}

void CountersWriter::end(RecordKind kind, std::uint32_t index) noexcept {
  // release: the last values before "ended"; partner: snapshot.
  if (RecordLayout* r = at(kind, index))
    atomic_ref(r->state).store(static_cast<std::uint32_t>(RecordState::ended), std::memory_order_release);
}

Record CountersWriter::record(RecordKind kind, std::uint32_t index) noexcept { return Record(at(kind, index)); }

void CountersWriter::event(const Event& event) noexcept {
  auto& head = *segment_.memory().at<std::uint64_t>(kLayout.events_head);
  const std::uint64_t n = load(head);
  Event* cell = segment_.memory().at<Event>(kLayout.events) + (n & (kEvents - 1));
  atomic_ref(cell->sequence).store(0, std::memory_order_relaxed);
  release_fence();  // "being written" before the body; partner: the acquire fence in CountersReader::events
  const auto put = [](auto& to, auto value) { atomic_ref(to).store(value, std::memory_order_relaxed); };
  put(cell->at_ns, event.at_ns);
  put(cell->kind, event.kind);
  put(cell->stream, event.stream);
  put(cell->token, event.token);
  put(cell->a, event.a);
  put(cell->b, event.b);
  put(cell->c, event.c);
  put(cell->sequence, n + 1);
  // release: the whole event before it is counted; partner: the load of the head in CountersReader::events.
  atomic_ref(head).store(n + 1, std::memory_order_release);
}

std::uint64_t RecordSnapshot::observations(Which which) const {
  std::uint64_t sum = 0;
  for (const std::uint64_t n : buckets[static_cast<std::size_t>(which)]) sum += n;
  return sum;
}

std::optional<double> RecordSnapshot::quantile_ns(Which which, double q) const {
  const auto& histogram = buckets[static_cast<std::size_t>(which)];
  const auto total = static_cast<double>(observations(which));
  if (total == 0) return std::nullopt;
  const double wanted = std::clamp(q, 0.0, 1.0) * total;
  double below = 0;
  for (std::uint32_t b = 0; b < histogram.size(); ++b) {
    const auto here = static_cast<double>(histogram[b]);
    if (here > 0 && below + here >= wanted) {
      const auto low = static_cast<double>(bucket_low_ns(b)), high = static_cast<double>(bucket_low_ns(b + 1));
      return low + (high - low) * std::clamp((wanted - below) / here, 0.0, 1.0);
    }
    below += here;
  }
  return static_cast<double>(bucket_low_ns(kBuckets));
}

Result<CountersReader> CountersReader::map(Fd fd, std::uint64_t bytes) {
  if (bytes != kLayout.bytes && bytes != kLayout.events)
    return Error{"the counters are of another layout; install the same release of leatd and its tools"};
  Result<Mapping> mapping = Mapping::map(fd.get(), bytes, Access::read_only, false);
  if (!mapping) return Error{mapping.error()};
  CountersReader reader;
  reader.memory_ = std::move(mapping).value();
  if (!reader.memory_.at<SegmentHeader>(0)->published(SegmentKind::counters))
    return Error{"the counters are of another layout version; install the same release of leatd and its tools"};
  return reader;
}

std::optional<RecordSnapshot> CountersReader::snapshot(RecordKind kind, std::uint32_t index, int tries) const {
  if (!in_range(kind, index)) return std::nullopt;
  auto* r = memory_.at<RecordLayout>(record_offset(kind, index));
  RecordSnapshot s;
  s.kind = kind;
  s.index = index;
  for (auto& histogram : s.buckets) histogram.resize(kBuckets);
  for (int attempt = 0; attempt < tries; ++attempt) {
    // acquire: pairs with the release stores of `state` in begin() and end().
    const auto state = static_cast<RecordState>(atomic_ref(r->state).load(std::memory_order_acquire));
    if (state == RecordState::unused) return std::nullopt;
    s.live = state == RecordState::live;
    // acquire: pairs with the release store that ends an Update.
    const std::uint32_t before = atomic_ref(r->version).load(std::memory_order_acquire);
    for (std::size_t i = 0; i < kMaxValues; ++i) s.values[i] = load(r->values[i]);
    for (std::size_t i = 0; i < kMaxCauses; ++i) s.causes[i] = load(r->causes[i]);
    for (std::size_t h = 0; h < 2; ++h)
      for (std::size_t b = 0; b < kBuckets; ++b) s.buckets[h][b] = load(r->buckets[h][b]);
    char label[sizeof r->label];
    for (std::size_t i = 0; i < sizeof label; ++i) label[i] = atomic_ref(r->label[i]).load(std::memory_order_relaxed);
    s.label.assign(label, strnlen(label, sizeof label));
    s.epoch = atomic_ref(r->epoch).load(std::memory_order_relaxed);
    acquire_fence();  // the values before the second look; partner: the release fence that begins an Update
    const std::uint32_t after = atomic_ref(r->version).load(std::memory_order_relaxed);
    s.together = before == after && (before & 1u) == 0;
    if (s.together) break;
  }
  return s;
}

std::vector<RecordSnapshot> CountersReader::live(RecordKind kind) const {
  std::vector<RecordSnapshot> all;
  if (kind >= RecordKind::count_) return all;
  for (std::uint32_t i = 0; i < kMaxRecords[static_cast<std::size_t>(kind)]; ++i)
    if (auto s = snapshot(kind, i); s && s->live) all.push_back(std::move(*s));
  return all;
}

std::uint32_t CountersReader::events(std::uint64_t from, std::span<Event> out, std::uint64_t* next) const {
  // acquire: the events counted are complete; partner: the release store of the head in event().
  const std::uint64_t head =
      atomic_ref(*memory_.at<std::uint64_t>(kLayout.events_head)).load(std::memory_order_acquire);
  std::uint64_t at = std::max(from, head > kEvents ? head - kEvents : 0);
  std::uint32_t count = 0;
  for (; at < head && count < out.size(); ++at) {
    Event* cell = memory_.at<Event>(kLayout.events) + (at & (kEvents - 1));
    const auto get = [](auto& value) { return atomic_ref(value).load(std::memory_order_relaxed); };
    // relaxed: the head has brought the events it counts; a later one in the same cell has another sequence.
    if (get(cell->sequence) != at + 1) continue;
    Event e{at + 1,
            get(cell->at_ns),
            get(cell->kind),
            get(cell->stream),
            get(cell->token),
            get(cell->a),
            get(cell->b),
            get(cell->c),
            0};
    acquire_fence();  // the body before the second look; partner: the release fence in event()
    if (get(cell->sequence) == at + 1) out[count++] = e;
  }
  *next = at;
  return count;
}

}  // namespace leat::shm
