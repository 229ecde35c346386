#include "tools/leat/top/test/world.h"

#include <algorithm>
#include <cmath>

namespace leat::tools::top::test {

using shm::ClientCounter;
using shm::DaemonCounter;
using shm::ModuleCounter;
using shm::PartitionCounter;
using shm::RecordKind;
using shm::RecordSnapshot;
using shm::StreamCounter;
using shm::UserCounter;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kSloNs = 100'000'000;

void begin_counters(RecordSnapshot& record) {
  const auto names = shm::counter_names(record.kind);
  for (std::size_t i = 0; i < record.values.size(); ++i)
    record.values[i] = i < names.size() && !names[i].gauge ? 0 : shm::kUnknown;
}

}  // namespace

RecordSnapshot record_of(RecordKind kind, std::uint32_t index, std::string label) {
  RecordSnapshot record;
  record.kind = kind;
  record.index = index;
  record.epoch = 1;
  record.live = true;
  record.label = std::move(label);
  for (auto& buckets : record.buckets) buckets.assign(shm::kBuckets, 0);
  begin_counters(record);
  return record;
}

World::World(std::uint32_t streams, std::uint32_t partitions, std::uint64_t seed) : random_(seed) {
  started_ns_ = now_ns_ - 3600 * kSecond;
  rest_.daemon = record_of(RecordKind::daemon, 0, "leatd");
  set(*rest_.daemon, DaemonCounter::pid, 4321);
  set(*rest_.daemon, DaemonCounter::started_ns, static_cast<std::uint64_t>(started_ns_));
  set(*rest_.daemon, DaemonCounter::phase, 1);
  rest_.total = record_of(RecordKind::total, 0, "total");
  set(*rest_.total, StreamCounter::in_flight, 0);
  for (std::uint32_t u = 0; u < 2; ++u) {
    rest_.users.push_back(record_of(RecordKind::user, u, "uid " + std::to_string(1002 + u)));
    set(rest_.users[u], UserCounter::uid, 1002 + u);
    set(rest_.users[u], UserCounter::streams, (streams + 1 - u) / 2);
    set(rest_.users[u], UserCounter::share_permille, 1000);
    rest_.clients.push_back(record_of(RecordKind::client, u, u == 0 ? "gate" : "yard"));
    set(rest_.clients[u], ClientCounter::pid, 5000 + u);
    set(rest_.clients[u], ClientCounter::user, u);
    set(rest_.clients[u], ClientCounter::streams, (streams + 1 - u) / 2);
    set(rest_.clients[u], ClientCounter::connected_ns, static_cast<std::uint64_t>(now_ns_ - 600 * kSecond));
  }
  rest_.user_names = {{"1002", "gate"}, {"1003", "yard"}};
  for (std::uint32_t m = 0; m < 2; ++m) {
    rest_.modules.push_back(record_of(RecordKind::module, m, m == 0 ? "plates/detect" : "plates/read"));
    set(rest_.modules[m], ModuleCounter::queued, 0);
  }
  for (std::uint32_t p = 0; p < partitions; ++p) {
    rest_.partitions.push_back(record_of(RecordKind::partition, p, "mig" + std::to_string(p)));
    set(rest_.partitions[p], PartitionCounter::state, 2);
    set(rest_.partitions[p], PartitionCounter::queued, 0);
    set(rest_.partitions[p], PartitionCounter::restarts, 0);
    set(rest_.partitions[p], PartitionCounter::failures, 0);
    set(rest_.partitions[p], PartitionCounter::started_ns, static_cast<std::uint64_t>(started_ns_ + 2 * kSecond));
  }
  streams_.resize(streams);
  for (std::uint32_t s = 0; s < streams; ++s) {
    streams_[s].record = record_of(RecordKind::stream, s, "");
    begin(s);
    streams_[s].record.epoch = 1;
    set(streams_[s].record, StreamCounter::opened_ns, static_cast<std::uint64_t>(now_ns_ - 500 * kSecond));
  }
}

void World::begin(std::uint32_t s) {
  RecordSnapshot& record = streams_[s].record;
  const std::uint32_t epoch = record.epoch + 1, client = s % 2;
  record = record_of(RecordKind::stream, s, (client == 0 ? "gate:" : "yard:") + std::to_string(s / 2) + " plates");
  record.epoch = epoch;
  set(record, StreamCounter::in_flight, 0);
  set(record, StreamCounter::slo_ns, kSloNs);
  set(record, StreamCounter::client, client);
  set(record, StreamCounter::depth, 4);
  set(record, StreamCounter::opened_ns, static_cast<std::uint64_t>(now_ns_));
}

void World::deed(Stream& stream, const Deed& d) {
  const int good = std::max(0, d.sent - d.late - d.dropped - d.failed);
  for (RecordSnapshot* record : {&stream.record, &*rest_.total}) {
    const auto count = [&](StreamCounter counter, int n) {
      if (n > 0) add(*record, counter, static_cast<std::uint64_t>(n));
    };
    count(StreamCounter::submitted, d.sent);
    count(StreamCounter::completed, good);
    count(StreamCounter::late, d.late);
    count(StreamCounter::dropped, d.dropped);
    count(StreamCounter::failed, d.failed);
    record->causes[static_cast<std::size_t>(d.reason)] += static_cast<std::uint64_t>(d.dropped);
    record->causes[static_cast<std::size_t>(Reason::partition_lost)] += static_cast<std::uint64_t>(d.failed);
    const auto answers = [&](double ms, int n) {
      if (n > 0)
        record->buckets[0][shm::bucket_of(static_cast<std::uint64_t>(ms * 1e6))] += static_cast<std::uint64_t>(n);
    };
    answers(d.latency_ms, good / 2);
    answers(d.latency_ms * 1.4, good - good / 2);
    answers(120, d.late);
    if (good > 0) record->buckets[1][shm::bucket_of(3'000'000)] += static_cast<std::uint64_t>(good);
    if (d.sent > 0) set(*record, StreamCounter::last_answer_ns, static_cast<std::uint64_t>(now_ns_));
  }
  const auto took = static_cast<std::uint64_t>(good) * 5'000'000;
  add(stream.record, StreamCounter::busy_ns, took);
  RecordSnapshot& user = rest_.users[stream.record.index % 2];
  add(user, UserCounter::submitted, static_cast<std::uint64_t>(d.sent));
  add(user, UserCounter::good, static_cast<std::uint64_t>(good));
  add(user, UserCounter::missed, static_cast<std::uint64_t>(d.sent - good));
  add(user, UserCounter::busy_ns, took);
}

void World::second(const std::vector<Deed>& deeds) {
  now_ns_ += kSecond;
  std::uint64_t tasks = 0;
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (!streams_[s].open) continue;
    const Deed d = s < deeds.size() ? deeds[s] : Deed{.sent = streams_[s].rate};
    deed(streams_[s], d);
    tasks += static_cast<std::uint64_t>(d.sent);
  }
  for (RecordSnapshot& m : rest_.modules) {
    add(m, ModuleCounter::tasks, tasks);
    add(m, ModuleCounter::batches, tasks / 4);
    add(m, ModuleCounter::busy_ns,
        static_cast<std::uint64_t>(busy_ * 1e9 / 2 * static_cast<double>(rest_.partitions.size())));
    m.buckets[0][shm::bucket_of(2'000'000)] += tasks;
    m.buckets[1][shm::bucket_of(9'000'000)] += tasks / 4;
  }
  for (RecordSnapshot& p : rest_.partitions) {
    if (p.value(PartitionCounter::state) != 2) continue;
    const auto ns = static_cast<std::uint64_t>(busy_ * 1e9);
    add(p, PartitionCounter::busy_ns, ns);
    add(p, PartitionCounter::overhead_ns, ns / 50);
    add(p, PartitionCounter::batches, 40);
    add(p, PartitionCounter::items, 160);
    p.causes[0] += ns / 2;
    p.causes[1] += ns / 2;
    p.buckets[0][shm::bucket_of(9'000'000)] += 40;
  }
  add(*rest_.daemon, DaemonCounter::loops, 1000);
  add(*rest_.daemon, DaemonCounter::loops_with_work, 600);
}

Observation World::look() const {
  Observation out;
  out.sample = rest_;
  out.sample.at_ns = now_ns_;
  out.wall_ns = 1'795'000'000'000'000'000 + now_ns_;
  for (const Stream& s : streams_)
    if (s.open) out.sample.streams.push_back(s.record);
  return out;
}

Observation World::gone() const {
  Observation out;
  out.sample.at_ns = now_ns_;
  out.wall_ns = 1'795'000'000'000'000'000 + now_ns_;
  out.gone = true;
  return out;
}

void World::partition(std::uint32_t index, std::uint64_t state) {
  RecordSnapshot& p = rest_.partitions[index];
  if (p.value(PartitionCounter::state) == state) return;
  set(p, PartitionCounter::state, state);
  if (state == 3) set(p, PartitionCounter::lost_ns, static_cast<std::uint64_t>(now_ns_));
  if (state == 3) set(p, PartitionCounter::next_start_ns, static_cast<std::uint64_t>(now_ns_ + kSecond));
  if (state == 1) add(p, PartitionCounter::restarts, 1);
  if (state == 2) set(p, PartitionCounter::started_ns, static_cast<std::uint64_t>(now_ns_));
}

void World::refuse() {
  add(rest_.users[1], UserCounter::refused, 1);
  set(rest_.users[1], UserCounter::last_refusal, static_cast<std::uint64_t>(shm::Refusal::memory));
  set(rest_.users[1], UserCounter::last_refusal_ns, static_cast<std::uint64_t>(now_ns_));
}

void World::close(std::uint32_t stream) { streams_[stream].open = false; }

void World::open(std::uint32_t stream) {
  begin(stream);
  streams_[stream].open = true;
}

void World::walk() {
  const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; };
  const auto step = [&](double width) { return std::normal_distribution<>(0, width)(random_); };
  std::vector<Deed> deeds(streams_.size());
  for (std::uint32_t i = 0; i < streams_.size(); ++i) {
    Stream& s = streams_[i];
    if (s.open ? chance(0.001) : chance(0.05)) {
      if (s.open)
        close(i);
      else
        open(i);
    }
    if (chance(0.02)) s.kind = static_cast<int>(random_() % 4);
    s.trouble = std::clamp(s.trouble + step(0.04) - 0.008, 0.0, 0.9);
    if (chance(0.02)) s.rate = std::clamp(s.rate + static_cast<int>(step(6)), 0, 60);
    if (s.quiet == 0 && chance(0.003)) s.quiet = 1 + static_cast<int>(random_() % 30);
    Deed& d = deeds[i];
    d.sent = s.quiet > 0 ? 0 : s.rate;
    if (s.quiet > 0) --s.quiet;
    const int lost = std::binomial_distribution<>(d.sent, s.trouble)(random_);
    d.late = s.kind == 0 ? lost : 0;
    d.dropped = s.kind == 1 || s.kind == 2 ? lost : 0;
    d.failed = s.kind == 3 ? lost : 0;
    d.reason = s.kind == 1 ? Reason::overload : Reason::superseded;
    d.latency_ms = std::clamp(20 + 80 * s.trouble + step(5), 1.0, 99.0);
  }
  busy_ = std::clamp(busy_ + step(0.05), 0.0, 1.0);
  for (std::uint32_t p = 0; p < rest_.partitions.size(); ++p) {
    const std::uint64_t state = rest_.partitions[p].value(PartitionCounter::state).value_or(2);
    if (state == 2 && chance(0.004)) partition(p, 3);
    if (state == 3 && chance(0.4)) partition(p, 1);
    if (state == 1 && chance(0.4)) partition(p, chance(0.7) ? 2 : 3);
  }
  if (chance(0.01)) refuse();
  if (chance(0.05)) add(*rest_.daemon, DaemonCounter::stalls, 1);
  second(deeds);
}

}  // namespace leat::tools::top::test
