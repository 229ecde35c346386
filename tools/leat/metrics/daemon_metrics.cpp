#include "tools/leat/metrics/daemon_metrics.h"

#include <functional>

#include "tools/leat/metrics/slack.h"

namespace leat::tools {
namespace {

using shm::RecordKind;
using shm::RecordSnapshot;

// A counter's name and what its values are multiplied by, in base units.
struct Unit {
  std::string name;
  double factor = 1;
};
Unit unit_of(std::string_view counter) {
  const auto cut = [&](std::string_view tail) { return std::string(counter.substr(0, counter.size() - tail.size())); };
  if (const std::size_t at = counter.find("_ns_"); at != std::string_view::npos)
    return {std::string(counter.substr(0, at)) + std::string(counter.substr(at + 3)) + "_seconds", 1e-9};
  if (counter.ends_with("_ns")) return {cut("_ns") + "_seconds", 1e-9};
  if (counter.ends_with("_ms")) return {cut("_ms") + "_seconds", 1e-3};
  if (counter.ends_with("_ppm")) return {cut("_ppm") + "_ratio", 1e-6};
  if (counter.ends_with("_permille")) return {cut("_permille") + "_ratio", 1e-3};
  return {std::string(counter), 1};
}

MetricText::Labels labels_of(const RecordSnapshot& record) {
  if (record.kind == RecordKind::daemon || record.kind == RecordKind::total) return {};
  return {{shm::name_of(record.kind), record.label}, {"index", std::to_string(record.index)}};
}

struct Kind {
  RecordKind kind;
  std::vector<RecordSnapshot> records;
};

// Reasons, by the causes of the record; which names they have depends on its kind.
using CauseName = std::function<std::string_view(std::size_t)>;
void add_causes(MetricText& out, const Kind& kind, std::string_view what, std::string_view label, const CauseName& name,
                std::size_t count, std::string_view help) {
  out.counter("leat_" + std::string(shm::name_of(kind.kind)) + "_" + std::string(what), help);
  for (const RecordSnapshot& record : kind.records)
    for (std::size_t c = 1; c < count; ++c) {
      const std::uint64_t value = record.causes[c];
      if (value == shm::kUnknown || value == 0) continue;
      MetricText::Labels labels = labels_of(record);
      labels.emplace_back(label, std::string(name(c)));
      out.add(labels, static_cast<double>(value));
    }
}

void add_histogram(MetricText& out, const Kind& kind, std::size_t which, std::string_view what, std::string_view help) {
  // An octave a bucket, from 64 us to 17 s.
  constexpr std::uint32_t kFirst = 6, kLast = 24;
  std::vector<double> bounds;
  for (std::uint32_t o = kFirst; o <= kLast; ++o)
    bounds.push_back(static_cast<double>(shm::bucket_low_ns(o * shm::kSubBuckets)) / 1e9);
  out.histogram("leat_" + std::string(shm::name_of(kind.kind)) + "_" + std::string(what) + "_seconds", help);
  for (const RecordSnapshot& record : kind.records) {
    const auto& fine = record.buckets[which];
    if (fine.empty()) continue;
    std::vector<std::uint64_t> counts(bounds.size() + 1);
    for (std::uint32_t i = 0; i < fine.size(); ++i) {
      const std::uint32_t octave = i / shm::kSubBuckets;
      counts[octave < kFirst ? 0 : octave >= kLast ? bounds.size() : octave - kFirst + 1] += fine[i];
    }
    out.add_buckets(labels_of(record), bounds, counts);
  }
}

void add_kind(MetricText& out, const Kind& kind) {
  const auto names = shm::counter_names(kind.kind);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Unit unit = unit_of(names[i].name);
    const std::string name = "leat_" + std::string(shm::name_of(kind.kind)) + "_" + unit.name;
    if (names[i].gauge) {
      out.gauge(name, names[i].text);
    } else {
      out.counter(name, names[i].text);
    }
    for (const RecordSnapshot& record : kind.records) {
      const std::uint64_t value = record.values[i];
      if (value >= shm::kQuarterSlo) continue;  // unknown, or no number
      out.add(labels_of(record), static_cast<double>(value) * unit.factor);
    }
  }
}

}  // namespace

void add_daemon_metrics(MetricText& out, const Sample& sample) {
  const auto one = [](const std::optional<RecordSnapshot>& record) {
    return record ? std::vector<RecordSnapshot>{*record} : std::vector<RecordSnapshot>();
  };
  const Kind total{RecordKind::total, one(sample.total)}, streams{RecordKind::stream, sample.streams},
      modules{RecordKind::module, sample.modules}, partitions{RecordKind::partition, sample.partitions},
      users{RecordKind::user, sample.users};
  add_kind(out, {RecordKind::daemon, one(sample.daemon)});
  for (const Kind* kind : {&total, &streams}) {
    add_kind(out, *kind);
    add_causes(
        out, *kind, "ended", "reason", [](std::size_t c) { return name_of(static_cast<Reason>(c)); }, kReasonCount,
        "requests that were not completed, by reason");
    add_histogram(out, *kind, 0, "latency", "from capture to answer, of completed and late requests");
    add_histogram(out, *kind, 1, "wait", "from submission until first sent to a worker");
  }
  add_kind(out, {RecordKind::client, sample.clients});
  add_kind(out, modules);
  add_causes(
      out, modules, "ended", "reason", [](std::size_t c) { return name_of(static_cast<Reason>(c)); }, kReasonCount,
      "requests that were given up here, by reason");
  add_histogram(out, modules, 0, "task_queue", "a task's time in its queue");
  add_histogram(out, modules, 1, "task_run", "a task's time running");
  add_kind(out, partitions);
  add_histogram(out, partitions, 0, "batch_time", "a batch's time");
  add_kind(out, {RecordKind::edge, sample.edges});
  add_kind(out, users);
  add_causes(
      out, users, "refusals", "reason", [](std::size_t c) { return shm::name_of(static_cast<shm::Refusal>(c)); },
      shm::kRefusals, "what was refused the user, by reason");
}

void add_slack(MetricText& out, const Window& window) {
  const auto slack = slack_of(window);
  if (!slack) return;
  out.gauge("leat_slack", "share of the node that is free, 0 to 1");
  out.add({}, slack->free);
  out.gauge("leat_slack_part", "what the slack is made of: busy, refused and waited shares, 0 to 1");
  out.add({{"part", "busy"}}, slack->busy);
  out.add({{"part", "refused"}}, slack->refused);
  out.add({{"part", "waited"}}, slack->waited);
}

}  // namespace leat::tools
