#include "tools/leat/top/facts/measure.h"

#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {
namespace {

using shm::ClientCounter;
using shm::DaemonCounter;
using shm::ModuleCounter;
using shm::PartitionCounter;
using shm::RecordKind;
using shm::RecordSnapshot;
using shm::StreamCounter;
using shm::UserCounter;
using shm::Which;

constexpr double kMs = 1e6, kUs = 1e3;

const std::vector<RecordSnapshot>* list_of(const Sample* sample, RecordKind kind) {
  if (sample == nullptr) return nullptr;
  switch (kind) {
    case RecordKind::client:
      return &sample->clients;
    case RecordKind::stream:
      return &sample->streams;
    case RecordKind::module:
      return &sample->modules;
    case RecordKind::partition:
      return &sample->partitions;
    case RecordKind::edge:
      return &sample->edges;
    case RecordKind::user:
      return &sample->users;
    default:
      return nullptr;
  }
}

Span span_of_record(const Windows& windows, const Sample* before, const RecordSnapshot& record,
                    std::int64_t began_ns = 0) {
  if (before == nullptr || before == windows.now) return {&record, nullptr, 0};
  const double seconds = static_cast<double>(windows.now->at_ns - before->at_ns) / 1e9;
  for (const auto* single : {&before->total, &before->daemon})
    if (*single && (*single)->kind == record.kind)
      return {&record, &**single, (*single)->epoch == record.epoch ? seconds : 0};
  return span_since(list_of(before, record.kind), before->at_ns, record, windows.now->at_ns, began_ns);
}

void quantiles(const Span& span, Which which, double unit, float* p50, float* p99) {
  if (!span) return;
  const Buckets buckets = span.buckets(which);
  for (const auto& [q, to] : {std::pair{0.5, p50}, std::pair{0.99, p99}}) {
    const auto ns = to != nullptr ? quantile_of(buckets, q) : std::nullopt;
    if (ns) *to = static_cast<float>(*ns / unit);
  }
}

float part(double some, double all) { return all > 0 ? static_cast<float>(100 * some / all) : kUnknownFigure; }

// Of the last minute, or of what was watched of it: the reason that most frames were missed for.
void measure_cause(const Span& span, StreamFigures* out) {
  if (!span) return;
  double most = 0, all = 0;
  for (std::size_t r = 1; r < kReasonCount; ++r) {
    if (loss_of(static_cast<Reason>(r)) == Loss::none) continue;
    const double n = span.cause(r);
    all += n;
    if (n <= most) continue;
    most = n;
    out->cause = static_cast<Reason>(r);
  }
  out->cause_percent = part(most, all);
}

}  // namespace

StreamFigures measure_stream(const Windows& windows, const RecordSnapshot& record, StreamReading* reading) {
  StreamFigures out;
  const std::int64_t opened_ns = time_in(record, StreamCounter::opened_ns);
  const Span five = span_of_record(windows, windows.five, record, opened_ns);
  const Span minute = span_of_record(windows, windows.minute, record, opened_ns);
  out.in = five.rate(StreamCounter::submitted);
  out.good = five.rate(StreamCounter::completed);
  out.late = five.rate(StreamCounter::late);
  out.dropped = five.rate(StreamCounter::dropped);
  out.failed = five.rate(StreamCounter::failed);
  out.rejected = five.rate(StreamCounter::rejected);
  reading->together = record.together;
  reading->five = five.losses();
  reading->minute = minute.losses();
  if (five) out.miss = part(reading->five.missed(), reading->five.answers);
  const Span ten = span_of_record(windows, windows.ten, record, opened_ns);
  if (ten) {
    const Losses losses = ten.losses();
    out.miss10 = part(losses.missed(), losses.answers);
  }
  const Span one = span_of_record(windows, windows.one, record, opened_ns);
  if (one) {
    const Losses losses = one.losses();
    out.came = static_cast<float>(one.delta(StreamCounter::submitted));
    out.done = static_cast<float>(losses.answers);
    out.lost = static_cast<float>(losses.missed());
  }
  quantiles(five, Which::first, kMs, &out.p50, &out.p99);
  quantiles(five, Which::second, kMs, &out.wait50, &out.wait99);
  quantiles(minute, Which::first, kMs, nullptr, &out.p99_minute);
  out.in_flight = gauge(record, StreamCounter::in_flight);
  if (five) out.busy = static_cast<float>(five.delta(StreamCounter::busy_ns) / five.seconds / 1e7);
  measure_cause(minute, &out);
  return out;
}

PartitionFigures measure_partition(const Windows& windows, const RecordSnapshot& record) {
  PartitionFigures out;
  out.key = {record.index, record.epoch};
  out.name = printable(record.label);
  const auto state = record.value(PartitionCounter::state);
  if (state && *state < 4) out.state = static_cast<PartitionState>(*state);
  const Span five = span_of_record(windows, windows.five, record);
  if (five) {
    const double window_ns = five.seconds * 1e9, batches = five.delta(PartitionCounter::batches);
    out.busy = static_cast<float>(std::clamp(100 * five.delta(PartitionCounter::busy_ns) / window_ns, 0.0, 100.0));
    out.over = static_cast<float>(
        std::clamp(100 * five.delta(PartitionCounter::overhead_ns) / window_ns, 0.0, 100.0 - out.busy));
    out.batches = static_cast<float>(batches / five.seconds);
    out.items_rate = five.rate(PartitionCounter::items);
    if (batches > 0) {
      out.items = static_cast<float>(five.delta(PartitionCounter::items) / batches);
      out.overhead_us = static_cast<float>(five.delta(PartitionCounter::overhead_ns) / batches / kUs);
    }
    quantiles(five, Which::first, kMs, &out.p50, &out.p99);
  }
  const Span one = span_of_record(windows, windows.one, record);
  if (one)
    out.busy_now =
        static_cast<float>(std::clamp(100 * one.delta(PartitionCounter::busy_ns) / one.seconds / 1e9, 0.0, 100.0));
  out.queued = gauge(record, PartitionCounter::queued);
  out.restarts = gauge(record, PartitionCounter::restarts);
  out.failures = gauge(record, PartitionCounter::failures);
  out.started_ns = time_in(record, PartitionCounter::started_ns);
  out.lost_ns = time_in(record, PartitionCounter::lost_ns);
  out.next_start_ns = time_in(record, PartitionCounter::next_start_ns);
  out.pid = time_in(record, PartitionCounter::pid);
  out.end_status = gauge(record, PartitionCounter::end_status);
  const Span minute = span_of_record(windows, windows.minute, record);
  if (minute)
    for (std::uint32_t m = 0; m < shm::kMaxCauses; ++m)
      if (const double ns = minute.cause(m); ns > 0)
        out.modules.emplace_back(m, static_cast<float>(100 * ns / minute.seconds / 1e9));
  if (out.state != PartitionState::up && out.state != PartitionState::unknown)
    out.busy = out.over = out.busy_now = kUnknownFigure;  // it does nothing because it cannot
  return out;
}

ModuleFigures measure_module(const Windows& windows, const RecordSnapshot& record) {
  ModuleFigures out;
  out.key = {record.index, record.epoch};
  out.name = printable(record.label);
  out.application = out.name.substr(0, out.name.find('/'));
  const Span five = span_of_record(windows, windows.five, record);
  if (five) {
    const double batches = five.delta(ModuleCounter::batches);
    out.tasks = five.rate(ModuleCounter::tasks);
    if (batches > 0) out.batch = static_cast<float>(five.delta(ModuleCounter::tasks) / batches);
    out.held = static_cast<float>(five.delta(ModuleCounter::busy_ns) / five.seconds / 1e9);
    quantiles(five, Which::first, kMs, &out.wait50, &out.wait99);
    quantiles(five, Which::second, kMs, &out.run50, &out.run99);
    out.come = five.rate(ModuleCounter::arrived);
    out.given_up = five.rate(ModuleCounter::dropped);
  }
  if (const Span minute = span_of_record(windows, windows.minute, record))
    out.not_finite_minute = static_cast<float>(minute.delta(ModuleCounter::not_finite));
  out.waiting = gauge(record, ModuleCounter::queued);
  out.left_out = gauge(record, ModuleCounter::left_out);
  out.squeezed = gauge(record, ModuleCounter::squeezed);
  if (const auto oldest = record.value(ModuleCounter::oldest_ns); oldest && *oldest != 0)
    out.oldest = std::max(0.0F, static_cast<float>(windows.now->at_ns - static_cast<std::int64_t>(*oldest)) / 1e6F);
  else if (oldest)
    out.oldest = 0;
  return out;
}

std::string name_of_user(const Sample& sample, std::uint32_t index) {
  for (const RecordSnapshot& user : sample.users)
    if (user.index == index && user.label.starts_with("uid ")) {
      const std::string uid = user.label.substr(4);
      const auto name = sample.user_names.find(uid);
      return name != sample.user_names.end() ? printable(name->second) : uid;
    }
  return {};
}

UserFigures measure_user(const Windows& windows, const RecordSnapshot& record) {
  UserFigures out;
  out.key = {record.index, record.epoch};
  out.name = name_of_user(*windows.now, record.index);
  out.streams = gauge(record, UserCounter::streams);
  out.share = gauge(record, UserCounter::share_permille) / 1000;
  const Span five = span_of_record(windows, windows.five, record);
  if (five) {
    const double good = five.delta(UserCounter::good), missed = five.delta(UserCounter::missed);
    out.in = five.rate(UserCounter::submitted);
    out.good = five.rate(UserCounter::good);
    out.miss = part(missed, good + missed);
    out.held = static_cast<float>(five.delta(UserCounter::busy_ns) / five.seconds / 1e9);
  }
  const auto used = [&](UserCounter now, UserCounter most, double unit) {
    const auto limit = record.value(most);
    return UserFigures::Used{gauge(record, now) / static_cast<float>(unit),
                             limit && *limit < UINT32_MAX * (unit > 1 ? 1024ull : 1)
                                 ? static_cast<float>(static_cast<double>(*limit) / unit)
                                 : kUnknownFigure};
  };
  out.stream_places = used(UserCounter::streams, UserCounter::max_streams, 1);
  out.depths = used(UserCounter::requests, UserCounter::max_requests, 1);
  out.memory_mib = used(UserCounter::memory_bytes, UserCounter::max_memory_bytes, 1 << 20);
  out.connections = used(UserCounter::sessions, UserCounter::max_sessions, 1);
  out.refused = gauge(record, UserCounter::refused);
  if (const auto why = record.value(UserCounter::last_refusal); why && *why != 0)
    out.last_refusal = name_of(static_cast<shm::Refusal>(*why));
  out.last_refusal_ns = time_in(record, UserCounter::last_refusal_ns);
  return out;
}

DaemonFigures measure_daemon(const Windows& windows) {
  DaemonFigures out;
  if (!windows.now->daemon) return out;
  const RecordSnapshot& record = *windows.now->daemon;
  out.pid = time_in(record, DaemonCounter::pid);
  out.started_ns = time_in(record, DaemonCounter::started_ns);
  out.phase = gauge(record, DaemonCounter::phase);
  const Span five = span_of_record(windows, windows.five, record);
  out.turns = five.rate(DaemonCounter::loops);
  out.turns_with_work = five.rate(DaemonCounter::loops_with_work);
  out.parks = five.rate(DaemonCounter::parks);
  out.wakes = five.rate(DaemonCounter::wakes_sent);
  const Span minute = span_of_record(windows, windows.minute, record);
  if (minute) {
    out.stalls_minute = static_cast<float>(minute.delta(DaemonCounter::stalls));
    out.own_stalls_minute = static_cast<float>(minute.delta(DaemonCounter::own_stalls));
  }
  quantiles(minute, Which::first, kUs, &out.turn50_us, &out.turn99_us);
  out.stalls = gauge(record, DaemonCounter::stalls);
  out.own_stalls = gauge(record, DaemonCounter::own_stalls);
  out.longest_us = gauge(record, DaemonCounter::loop_ns_max) / static_cast<float>(kUs);
  out.longest_own_us = gauge(record, DaemonCounter::loop_own_ns_max) / static_cast<float>(kUs);
  out.sessions = gauge(record, DaemonCounter::sessions);
  out.clients = gauge(record, DaemonCounter::clients);
  out.accepted = gauge(record, DaemonCounter::clients_accepted);
  out.refused = gauge(record, DaemonCounter::clients_refused);
  out.violated = gauge(record, DaemonCounter::clients_violated);
  out.pauses = gauge(record, DaemonCounter::accept_pauses);
  out.unsent = gauge(record, DaemonCounter::sends_exhausted);
  out.memory_mib = gauge(record, DaemonCounter::memory_bytes) / (1 << 20);
  out.retries = gauge(record, DaemonCounter::retries);
  out.idled = gauge(record, DaemonCounter::idled_on_purpose);
  out.undecided = gauge(record, DaemonCounter::left_undecided);
  out.stale = gauge(record, DaemonCounter::stale_events);
  out.change_step = gauge(record, DaemonCounter::change_step);
  out.change_wave = gauge(record, DaemonCounter::change_wave);
  out.change_waves = gauge(record, DaemonCounter::change_waves);
  out.changes = gauge(record, DaemonCounter::changes);
  out.changes_failed = gauge(record, DaemonCounter::changes_failed);
  if (windows.now->total)
    out.missed_ever = static_cast<float>(Span{&*windows.now->total, nullptr, 1}.losses().missed());
  return out;
}

void measure_clients(const Windows& windows, Second* second) {
  for (const RecordSnapshot& record : windows.now->clients) {
    ClientFigures out;
    out.key = {record.index, record.epoch};
    out.name = printable(record.label);
    out.pid = time_in(record, ClientCounter::pid);
    out.connected_ns = time_in(record, ClientCounter::connected_ns);
    out.user = static_cast<std::uint32_t>(record.value(ClientCounter::user).value_or(UINT32_MAX));
    out.streams = gauge(record, ClientCounter::streams);
    double in = 0, good = 0, missed = 0, answers = 0;
    for (const StreamFigures& s : second->streams) {
      if (s.who->client_index != record.index || !known(s.in)) continue;
      in += s.in;
      good += s.good;
      const double done = s.good + s.late + s.dropped + s.failed + s.rejected;
      answers += done;
      if (known(s.miss)) missed += done * s.miss / 100;
    }
    if (windows.five != nullptr && out.streams > 0) {
      out.in = static_cast<float>(in);
      out.good = static_cast<float>(good);
      out.miss = part(missed, answers);
    }
    second->clients.push_back(std::move(out));
  }
}

// Of the streams that are open: requests within their user's share, where users compete at all.
void measure_within(const Windows& windows, Second* second) {
  if (windows.five == nullptr) return;
  for (UserFigures& user : second->users) {
    double within = 0;
    bool any = false;
    for (std::size_t i = 0; i < second->streams.size(); ++i) {
      const StreamFigures& s = second->streams[i];
      if (s.who->user_index != user.key.index) continue;
      const Span five = span_of_record(windows, windows.five, windows.now->streams[i], s.who->opened_ns);
      if (!five) continue;
      any = true;
      within += five.delta(StreamCounter::within_share) / five.seconds;
    }
    if (any) user.within = static_cast<float>(within);
  }
}

std::vector<ReasonFigures> measure_reasons(const Windows& windows) {
  std::vector<ReasonFigures> out;
  if (!windows.now->total) return out;
  const Span minute = span_of_record(windows, windows.minute, *windows.now->total);
  const Span ever{&*windows.now->total, nullptr, 1};
  for (std::size_t r = 1; r < kReasonCount; ++r) {
    if (ever.cause(r) <= 0) continue;
    out.push_back({static_cast<Reason>(r), minute ? static_cast<float>(minute.cause(r)) : kUnknownFigure,
                   static_cast<float>(ever.cause(r))});
  }
  std::stable_sort(out.begin(), out.end(), [](const ReasonFigures& a, const ReasonFigures& b) {
    const float x = known(a.minute) ? a.minute : 0, y = known(b.minute) ? b.minute : 0;
    return x != y ? x > y : a.ever > b.ever;
  });
  return out;
}

}  // namespace leat::tools::top
