#include "engine/daemon/metrics/metrics.h"

namespace leat::daemon {

using shm::Record;
using shm::RecordKind;
using shm::StreamCounter;
using shm::UserCounter;
using shm::Which;

Result<std::unique_ptr<Metrics>> Metrics::create() {
  auto writer = shm::CountersWriter::create();
  if (!writer) return Error{writer.error()};
  std::unique_ptr<Metrics> metrics(new Metrics(std::move(*writer)));
  metrics->daemon_ = metrics->writer_.begin(RecordKind::daemon, 0, "leatd");
  metrics->total_ = metrics->writer_.begin(RecordKind::total, 0, "total");
  metrics->total_.set(StreamCounter::in_flight, 0);
  metrics->total_.set(StreamCounter::bytes_copied, 0);
  metrics->total_.set(StreamCounter::damaged, 0);
  return metrics;
}

void Metrics::enter(Record& record, std::uint64_t frame_bytes) noexcept {
  const Record::Update update(record);
  record.add(StreamCounter::submitted);
  record.add(StreamCounter::in_flight);
  record.add(StreamCounter::bytes_in, frame_bytes);
}

void Metrics::leave(Record& record, Outcome outcome, Reason reason, std::int64_t latency_ns,
                    std::int64_t now_ns) noexcept {
  constexpr std::uint64_t kMinusOne = UINT64_MAX;  // sums are modulo 2^64
  const Record::Update update(record);
  switch (outcome) {
    case Outcome::completed:
      record.add(StreamCounter::completed);
      break;
    case Outcome::late:
      record.add(StreamCounter::late);
      break;
    case Outcome::dropped:
      record.add(StreamCounter::dropped);
      break;
    case Outcome::rejected:
      record.add(StreamCounter::rejected);
      break;
    case Outcome::failed:
    case Outcome::pending:
      record.add(StreamCounter::failed);
      break;
  }
  record.add(StreamCounter::in_flight, kMinusOne);
  if (reason != Reason::none) record.cause(reason);
  if (outcome == Outcome::completed || outcome == Outcome::late) record.observe(Which::first, latency_ns);
  record.set(StreamCounter::last_answer_ns, static_cast<std::uint64_t>(now_ns));
}

void Metrics::submitted(std::uint32_t stream, std::uint32_t user, std::uint64_t frame_bytes,
                        std::int64_t age_ns) noexcept {
  ++in_flight_total_;
  daemon().observe(Which::second, age_ns);
  Record record = writer_.record(RecordKind::stream, stream);
  enter(record, frame_bytes);
  enter(total_, frame_bytes);
  of(RecordKind::user, user).add(UserCounter::submitted);
}

void Metrics::first_dispatch(std::uint32_t stream, std::int64_t waited_ns) noexcept {
  Record record = writer_.record(RecordKind::stream, stream);
  record.observe(Which::second, waited_ns);
  total_.observe(Which::second, waited_ns);
}

void Metrics::answered(std::uint32_t stream, std::uint32_t user, Outcome outcome, Reason reason,
                       std::int64_t latency_ns, std::int64_t now_ns) noexcept {
  --in_flight_total_;
  Record record = writer_.record(RecordKind::stream, stream);
  leave(record, outcome, reason, latency_ns, now_ns);
  leave(total_, outcome, reason, latency_ns, now_ns);
  of(RecordKind::user, user).add(outcome == Outcome::completed ? UserCounter::good : UserCounter::missed);
}

void Metrics::took(std::uint32_t stream, std::uint32_t user, std::int64_t busy_ns) noexcept {
  const auto ns = static_cast<std::uint64_t>(busy_ns);
  of(RecordKind::stream, stream).add(StreamCounter::busy_ns, ns);
  of(RecordKind::user, user).add(UserCounter::busy_ns, ns);
}

void Metrics::event(shm::EventKind kind, std::int64_t now_ns, std::uint32_t stream, std::uint64_t token,
                    std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  shm::Event event;
  event.at_ns = now_ns;
  event.kind = kind;
  event.stream = stream;
  event.token = token;
  event.a = a;
  event.b = b;
  event.c = c;
  writer_.event(event);
}

}  // namespace leat::daemon
