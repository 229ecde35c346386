#include "tools/leat/top/facts/facts.h"

#include <algorithm>

#include "leat/leat.h"
#include "tools/leat/top/facts/backfill.h"
#include "tools/leat/top/facts/measure.h"
#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {
namespace {

using shm::RecordKind;
using shm::RecordSnapshot;
using shm::StreamCounter;

constexpr std::int64_t kFineNs = 11 * kSecondNs, kMinuteNs = 60 * kSecondNs;

// "yard:3 plates" of the record: who, and of which application.
std::pair<std::string, std::string> split_label(const std::string& label) {
  const std::size_t space = label.rfind(' ');
  if (space == std::string::npos) return {printable(label), ""};
  return {printable(std::string_view(label).substr(0, space)), printable(std::string_view(label).substr(space + 1))};
}

std::string format_name(std::uint64_t format) {
  switch (format) {
#define X(name, value, planes, text) \
  case value:                        \
    return #name;
    LEAT_FORMATS(X)
#undef X
    default:
      return {};
  }
}

std::string overload_name(std::uint32_t rule) {
#define X(name, value, meaning) \
  if (rule == (value)) return #name;
  LEAT_OVERLOADS(X)
#undef X
  return {};
}

}  // namespace

// The newest at or before a time; the oldest where none is so old. Null: there is none but the newest.
const Sample* Facts::sample_before(std::int64_t at_ns) const noexcept {
  const Sample* found = nullptr;
  for (const SamplePtr& sample : samples_) {
    if (sample == samples_.back()) break;
    if (found == nullptr || sample->at_ns <= at_ns) found = sample.get();
  }
  return found;
}

void Facts::keep(SamplePtr sample) {
  const std::int64_t now = sample->at_ns;
  samples_.push_back(std::move(sample));
  // Of older ones, one in ten seconds.
  for (std::size_t i = 1; i + 1 < samples_.size();) {
    const bool fine = now - samples_[i]->at_ns < kFineNs;
    if (fine) break;
    if (samples_[i + 1]->at_ns - samples_[i - 1]->at_ns <= 10 * kSecondNs)
      samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  while (samples_.size() > 2 && now - samples_[1]->at_ns >= kMinuteNs) samples_.pop_front();
}

void Facts::read_status(const std::string& text) {
  const auto json = Json::try_parse(text);
  if (!json || !json->is_object()) return;
  try {
    status_.version = printable(json->value("version", ""));
    status_.partitions.clear();
    for (const Json& p : json->value("partitions", Json::array())) {
      PartitionStatus& to = status_.partitions[printable(p.value("name", ""))];
      to.kind = printable(p.value("kind", ""));
      to.cores = printable(p.value("cores", ""));
      to.gpu = printable(gpu_text(p));
      if (const Json* const gpu = p.find("gpu"); gpu != nullptr && gpu->is_object()) {
        to.device = gpu->value("device", "");
        if (to.device.empty()) to.device = gpu->value("uuid", "");
      }
      to.last_end = printable(p.value("last_end", ""));
      to.why_down = printable(p.value("why_down", ""));
      to.sandbox = printable(p.value("sandbox", ""));
    }
  } catch (const JsonError&) {  // another release's: what could be read is kept
  }
}

void Facts::add_heat(const std::vector<HeatFigures>& gpus, Second* second) const {
  for (const HeatFigures& g : gpus) {
    const auto heat = std::make_shared<const HeatFigures>(g);
    for (PartitionFigures& p : second->partitions)
      if (const auto s = status_.partitions.find(p.name); s != status_.partitions.end() && s->second.device == g.uuid)
        p.heat = heat;
  }
}

std::shared_ptr<const StreamIdentity> Facts::identity_of(const RecordSnapshot& record, const Sample& sample) {
  if (identities_.size() <= record.index) identities_.resize(record.index + 1);
  auto& kept = identities_[record.index];
  const Key key{record.index, record.epoch};
  if (kept && kept->key == key) return kept;
  auto who = std::make_shared<StreamIdentity>();
  who->key = key;
  std::tie(who->name, who->application) = split_label(record.label);
  who->client_index = static_cast<std::uint32_t>(record.value(StreamCounter::client).value_or(UINT32_MAX));
  for (const RecordSnapshot& client : sample.clients) {
    if (client.index != who->client_index) continue;
    who->client = printable(client.label);
    who->pid = time_in(client, shm::ClientCounter::pid);
    who->user_index = static_cast<std::uint32_t>(client.value(shm::ClientCounter::user).value_or(UINT32_MAX));
    who->user = name_of_user(sample, who->user_index);
  }
  who->opened_ns = time_in(record, StreamCounter::opened_ns);
  who->slo_ms = gauge(record, StreamCounter::slo_ns) / 1e6;
  who->period_ms = gauge(record, StreamCounter::period_ns) / 1e6;
  who->width = gauge(record, StreamCounter::width);
  who->height = gauge(record, StreamCounter::height);
  who->slots = gauge(record, StreamCounter::slots);
  who->depth = gauge(record, StreamCounter::depth);
  if (const auto format = record.value(StreamCounter::format)) who->format = format_name(*format);
  if (const auto terms = record.value(StreamCounter::terms)) {
    static constexpr const char* kPriorities[] = {"background", "normal", "high", "protected"};
    const std::uint32_t priority = shm::priority_of_terms(*terms);
    if (priority < std::size(kPriorities)) who->priority = kPriorities[priority];
    who->overload = overload_name(shm::overload_of_terms(*terms));
  }
  who->coordinated = record.value(StreamCounter::standing).value_or(0) != 0;
  kept = who;
  return who;
}

void Facts::take(Observation observation) {
  wall_offset_ns_ = observation.wall_ns - observation.sample.at_ns;
  utc_offset_s_ = observation.utc_offset_s;
  const std::int64_t now = observation.sample.at_ns;
  if (observation.status) read_status(*observation.status);
  Second second;
  if (observation.gone) {
    if (!seconds_.empty()) second = seconds_.back();
    second.at_ns = now;
    second.gone = true;
    health_.judge_gone(&second);
    samples_.clear();
    began_ns_ = 0;
  } else {
    const std::int64_t pid =
        observation.sample.daemon ? time_in(*observation.sample.daemon, shm::DaemonCounter::pid) : 0;
    if (pid != daemon_pid_) {  // another leatd: nothing is the same any more
      samples_.clear();
      identities_.clear();
      last_frames_.clear();
      began_ns_ = 0;
      daemon_pid_ = pid;
    }
    if (began_ns_ == 0) began_ns_ = now;
    second.at_ns = now;
    keep(std::make_shared<const Sample>(std::move(observation.sample)));
    const Sample& sample = *samples_.back();
    const Windows windows{
        &sample, sample_before(now - kSecondNs + kSecondNs / 20), sample_before(now - 5 * kSecondNs + kSecondNs / 20),
        sample_before(now - 10 * kSecondNs + kSecondNs / 20), sample_before(now - kMinuteNs + kSecondNs / 20)};
    Reading reading;
    if (sample.total) {
      second.total = measure_stream(windows, *sample.total, &reading.total);
      reading.last_answer_ns = time_in(*sample.total, StreamCounter::last_answer_ns);
      const Span ever{&*sample.total, nullptr, 1};
      reading.faults_ever = ever.losses().faults;
    }
    for (const RecordSnapshot& record : sample.streams) {
      StreamReading of;
      StreamFigures figures = measure_stream(windows, record, &of);
      figures.who = identity_of(record, sample);
      reading.longest_slo_ns =
          std::max(reading.longest_slo_ns, 1e6 * (known(figures.who->slo_ms) ? figures.who->slo_ms : 0));
      second.streams.push_back(std::move(figures));
      reading.streams.push_back(of);
    }
    for (const RecordSnapshot& record : sample.partitions)
      second.partitions.push_back(measure_partition(windows, record));
    for (const RecordSnapshot& record : sample.modules) second.modules.push_back(measure_module(windows, record));
    measure_clients(windows, &second);
    for (const RecordSnapshot& record : sample.users) {
      UserFigures user = measure_user(windows, record);
      if (known(user.refused)) reading.refused += user.refused;
      if (!user.last_refusal.empty()) reading.refusal = "user " + user.name + ": " + user.last_refusal;
      second.users.push_back(std::move(user));
    }
    measure_within(windows, &second);
    second.daemon = measure_daemon(windows);
    if (known(second.daemon.violated)) reading.violated = second.daemon.violated;
    second.reasons = measure_reasons(windows);
    if (seconds_.empty() && !observation.events.empty()) {
      for (Second& before : backfilled(observation.events, now, identities_)) seconds_.push_back(std::move(before));
    }
    last_frames_.take(observation.events);
    add_heat(observation.gpus, &second);
    cameras_.add(observation.cameras, &second);
    reading.streams.resize(second.streams.size());
    reading.watched_ns = now - began_ns_;
    health_.judge(reading, &second);
  }
  changes_.take(second, status_.version);
  seconds_.push_back(std::move(second));
  if (seconds_.size() > kSecondsKept) seconds_.pop_front();
}

Span Facts::minute_span(RecordKind kind, Key key) const {
  if (samples_.empty()) return {};
  const Sample& now = *samples_.back();
  const Sample* before = sample_before(now.at_ns - kMinuteNs + kSecondNs / 20);
  const auto look = [&](const std::vector<RecordSnapshot>& list, const std::vector<RecordSnapshot>* was) -> Span {
    for (const RecordSnapshot& record : list)
      if (record.index == key.index && record.epoch == key.epoch)
        return span_since(was, before == nullptr ? 0 : before->at_ns, record, now.at_ns,
                          kind == RecordKind::stream ? time_in(record, StreamCounter::opened_ns) : 0);
    return {};
  };
  if (kind == RecordKind::stream) return look(now.streams, before == nullptr ? nullptr : &before->streams);
  if (kind == RecordKind::partition) return look(now.partitions, before == nullptr ? nullptr : &before->partitions);
  if (kind == RecordKind::daemon && now.daemon)
    return {&*now.daemon, before != nullptr && before->daemon ? &*before->daemon : nullptr,
            before == nullptr ? 0 : static_cast<double>(now.at_ns - before->at_ns) / 1e9};
  return {};
}

std::optional<Buckets> Facts::minute_of(RecordKind kind, Key key, shm::Which which) const {
  const Span span = minute_span(kind, key);
  return span ? std::optional(span.buckets(which)) : std::nullopt;
}

std::string Facts::clock_at(std::int64_t at_ns) const { return clock_of(wall_of(at_ns), utc_offset_s_); }

}  // namespace leat::tools::top
