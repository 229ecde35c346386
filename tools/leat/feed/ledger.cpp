#include "tools/leat/feed/ledger.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tools/base/json/json.h"

namespace leat::tools {
namespace {

constexpr Outcome kAnswers[] = {Outcome::completed, Outcome::late, Outcome::dropped, Outcome::failed,
                                Outcome::rejected};

struct SkipWord {
  Skip skip;
  const char *name, *text;
};
#define X(name, text) {Skip::name, #name, text},
constexpr SkipWord kSkips[] = {LEAT_SKIPS(X)};
#undef X
static_assert(std::size(kSkips) == kSkipCount);

Json known(double value) { return value < 0 ? Json(nullptr) : Json(value); }

Json reasons_json(const Ledger& ledger, Outcome outcome) {
  Json reasons = Json::object();
  for (std::size_t r = 0; r < kReasonCount; ++r) {
    const auto reason = static_cast<Reason>(r);
    if (const std::uint64_t n = ledger.count(outcome, reason); n > 0) reasons[std::string(name_of(reason))] = n;
  }
  return reasons;
}

Json ledger_json(const Ledger& ledger, double seconds) {
  Json json = {{"submitted", ledger.submitted_count()}};
  for (const Outcome outcome : kAnswers) json[std::string(name_of(outcome))] = ledger.count(outcome);
  json["unanswered"] = ledger.unanswered_count();
  json["in_flight"] = ledger.in_flight();
  json["skipped"] = ledger.skipped_count();
  json["skipped_by_reason"] = Json::object();
  for (const SkipWord& word : kSkips) {
    if (const std::uint64_t n = ledger.skipped_count(word.skip); n > 0) json["skipped_by_reason"][word.name] = n;
  }
  json["submitted_past_deadline"] = ledger.past_deadline_count();
  json["dropped_by_reason"] = reasons_json(ledger, Outcome::dropped);
  json["failed_by_reason"] = reasons_json(ledger, Outcome::failed);
  json["rejected_by_reason"] = reasons_json(ledger, Outcome::rejected);
  json["latency_ms_p50"] = known(ledger.latency_ms(0.50));
  json["latency_ms_p95"] = known(ledger.latency_ms(0.95));
  json["latency_ms_p99"] = known(ledger.latency_ms(0.99));
  json["goodput_fps"] =
      seconds > 0 ? Json(static_cast<double>(ledger.count(Outcome::completed)) / seconds) : Json(nullptr);
  json["seconds"] = seconds;
  return json;
}

double ratio(double sum, std::uint64_t n) { return n == 0 ? -1 : sum / static_cast<double>(n); }

constexpr const char* kStandings[] = {"not told", "waiting", "admitted", "silent"};

// What was lost of the truth: how far what was shown was from it, less how far answers were from that of their own
// picture. < 0 may be chance; -1 alone is unknown.
Json coordinated_json(const NamedLedger& stream) {
  const FollowerFigures& f = *stream.followed;
  const double off = ratio(f.off_truth_sum, f.judged), detector = ratio(f.detector_off_sum, f.answers_judged);
  return {{"standing", kStandings[f.schedule.standing % 4]},
          {"interval", f.schedule.interval},
          {"evictions", f.schedule.evictions},
          {"sla_drop", f.schedule.sla_drop},
          {"planned_drop", f.schedule.planned_drop},
          {"measured_drop", f.schedule.measured_drop},
          {"seen_at_answers", known(ratio(f.seen_sum, f.reports))},
          {"frames", f.frames},
          {"sent_share", known(ratio(static_cast<double>(stream.ledger.submitted_count()), f.frames))},
          {"off_truth", known(off)},
          {"detector_off_truth", known(detector)},
          {"lost_of_truth", off < 0 || detector < 0 ? Json(nullptr) : Json(off - detector)},
          {"tracker", std::string(f.tracker)},
          {"tracking_ms", known(1e3 * ratio(f.tracking_cpu_s, f.frames))},
          {"task_weight", stream.task_weight > 0 ? Json(stream.task_weight) : Json(nullptr)}};
}

std::string coordinated_line(const NamedLedger& stream) {
  const Json j = coordinated_json(stream);
  const auto number = [&](const char* key, const char* format) {
    char text[48];
    if (j[key].is_null()) return std::string("-");
    std::snprintf(text, sizeof text, format, j[key].get<double>());
    return std::string(text);
  };
  std::string line = "coordinated " + stream.name + ": " + j["standing"].get<std::string>() + ", every " +
                     number("interval", "%.0f") + " pictures, " + number("frames", "%.0f") + " shown and " +
                     std::to_string(stream.ledger.submitted_count()) + " sent; may lose " + number("sla_drop", "%.3f") +
                     ", planned " + number("planned_drop", "%.3f") + ", measured " + number("measured_drop", "%.3f") +
                     "; tracking (" + j["tracker"].get<std::string>() + ") " + number("tracking_ms", "%.2f") +
                     " ms a picture, evicted " + number("evictions", "%.0f") + " times";
  if (stream.task_weight > 0) line += "; a task that takes turns, weight " + number("task_weight", "%.3g");
  if (!j["lost_of_truth"].is_null())
    line += "; against the truth " + number("off_truth", "%.3f") + ", answers themselves " +
            number("detector_off_truth", "%.3f") + ", so " + number("lost_of_truth", "%.3f") + " was lost";
  return line + "\n";
}

std::string cell(double value) {
  if (value < 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, value < 99.95 ? "%.1f" : "%.0f", value);
  return text;
}

void row(std::string& out, const std::string& name, const Ledger& ledger, double seconds) {
  char line[256];
  std::snprintf(line, sizeof line, "%-22.22s %8llu %9llu %9llu %6llu %8llu %6llu %8llu %9llu %7s %7s %7s %8s\n",
                name.c_str(), static_cast<unsigned long long>(ledger.skipped_count()),
                static_cast<unsigned long long>(ledger.submitted_count()),
                static_cast<unsigned long long>(ledger.count(Outcome::completed)),
                static_cast<unsigned long long>(ledger.count(Outcome::late)),
                static_cast<unsigned long long>(ledger.count(Outcome::dropped)),
                static_cast<unsigned long long>(ledger.count(Outcome::failed)),
                static_cast<unsigned long long>(ledger.count(Outcome::rejected)),
                static_cast<unsigned long long>(ledger.in_flight()), cell(ledger.latency_ms(0.5)).c_str(),
                cell(ledger.latency_ms(0.95)).c_str(), cell(ledger.latency_ms(0.99)).c_str(),
                cell(seconds > 0 ? static_cast<double>(ledger.count(Outcome::completed)) / seconds : -1).c_str());
  out += line;
}

// What happened to a stream's pictures before they were frames, in all streams.
struct SourceFigures {
  std::uint64_t damaged = 0, format_changes = 0;
};
SourceFigures source_figures(const FeedReport& report) {
  SourceFigures all;
  for (const NamedLedger& stream : report.streams)
    all.damaged += stream.damaged, all.format_changes += stream.format_changes;
  return all;
}
void add_source_figures(Json& json, const SourceFigures& figures) {
  json["damaged"] = figures.damaged;
  json["format_changes"] = figures.format_changes;
}

Ledger total_of(const FeedReport& report) {
  Ledger total;
  for (const NamedLedger& stream : report.streams) total.add(stream.ledger);
  return total;
}

}  // namespace

void Ledger::answered(Outcome outcome, Reason reason, std::int64_t latency_ns) {
  ++outcomes_[static_cast<std::size_t>(outcome)];
  if (static_cast<std::size_t>(reason) < kReasonCount)
    ++reasons_[static_cast<std::size_t>(outcome)][static_cast<std::size_t>(reason)];
  if (outcome != Outcome::completed && outcome != Outcome::late) return;
  ++buckets_[bucket_of(latency_ns)];
  ++finished_;
}

void Ledger::add(const Ledger& other) {
  submitted_ += other.submitted_;
  past_deadline_ += other.past_deadline_;
  unanswered_ += other.unanswered_;
  for (std::size_t s = 0; s < kSkipCount; ++s) skipped_[s] += other.skipped_[s];
  for (std::size_t o = 0; o < kOutcomeCount; ++o) {
    outcomes_[o] += other.outcomes_[o];
    for (std::size_t r = 0; r < kReasonCount; ++r) reasons_[o][r] += other.reasons_[o][r];
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) buckets_[b] += other.buckets_[b];
  finished_ += other.finished_;
}

std::uint64_t Ledger::count(Outcome outcome, Reason reason) const noexcept {
  return reasons_[static_cast<std::size_t>(outcome)][static_cast<std::size_t>(reason)];
}

std::uint64_t Ledger::skipped_count() const noexcept {
  return std::accumulate(skipped_.begin(), skipped_.end(), std::uint64_t{0});
}

std::uint64_t Ledger::in_flight() const noexcept {
  std::uint64_t answered = 0;
  for (const Outcome outcome : kAnswers) answered += count(outcome);
  return submitted_ - answered - unanswered_;
}

std::size_t Ledger::bucket_of(std::int64_t ns) noexcept {
  const double us = std::max(static_cast<double>(ns) / 1e3, 1.0);
  const auto octave = std::min<std::size_t>(static_cast<std::size_t>(std::ilogb(us)), kOctaves - 1);
  const double within = us / std::ldexp(1.0, static_cast<int>(octave)) - 1;  // 0..1
  return octave * kSubBuckets + std::min(static_cast<std::size_t>(within * kSubBuckets), kSubBuckets - 1);
}

double Ledger::middle_ms(std::size_t bucket) noexcept {
  const double within = (static_cast<double>(bucket % kSubBuckets) + 0.5) / kSubBuckets;
  return std::ldexp(1 + within, static_cast<int>(bucket / kSubBuckets)) / 1e3;
}

double Ledger::latency_ms(double q) const {
  if (finished_ == 0) return -1;
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(finished_))),
                                              1, finished_);
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) ++bucket;
  return middle_ms(bucket);
}

std::string report_json(const FeedReport& report) {
  Json json;
  json["total"] = ledger_json(total_of(report), report.seconds);
  add_source_figures(json["total"], source_figures(report));
  json["streams"] = Json::array();
  for (const NamedLedger& stream : report.streams) {
    Json entry = {{"name", stream.name}};
    entry.update(ledger_json(stream.ledger, stream.seconds));
    add_source_figures(entry, {stream.damaged, stream.format_changes});
    if (stream.followed) entry["coordinated"] = coordinated_json(stream);
    json["streams"].push_back(entry);
  }
  json["bytes_copied_per_frame"] = known(report.bytes_copied_per_frame);
  json["accuracy"] = {{"map50", known(report.map50)},
                      {"detection_ap50", known(report.detection_ap50)},
                      {"classification", known(report.classification)},
                      {"frames", report.judged_frames},
                      {"idf1", known(report.idf1)}};
  return json.dump(2) + "\n";
}

std::string report_table(const FeedReport& report) {
  char line[256];
  std::string out;
  std::snprintf(line, sizeof line, "%-22s %8s %9s %9s %6s %8s %6s %8s %9s %7s %7s %7s %8s\n", "stream", "skipped",
                "submitted", "completed", "late", "dropped", "failed", "rejected", "in flight", "p50 ms", "p95 ms",
                "p99 ms", "good f/s");
  out += line;
  for (const NamedLedger& stream : report.streams) row(out, stream.name, stream.ledger, stream.seconds);
  const Ledger total = total_of(report);
  if (report.streams.size() != 1) row(out, "total", total, report.seconds);
  for (const Outcome outcome : {Outcome::dropped, Outcome::failed, Outcome::rejected}) {
    for (std::size_t r = 0; r < kReasonCount; ++r) {
      const auto reason = static_cast<Reason>(r);
      const std::uint64_t n = total.count(outcome, reason);
      if (n == 0) continue;
      out += std::string(name_of(outcome)) + " (" + std::string(name_of(reason)) + "): " + std::to_string(n) + ": " +
             std::string(text_of(reason)) + "\n";
    }
  }
  if (const std::uint64_t n = total.unanswered_count(); n > 0)
    out += "unanswered: " + std::to_string(n) + ": leatd ended before it had answered them\n";
  for (const SkipWord& word : kSkips) {
    const std::uint64_t n = total.skipped_count(word.skip);
    if (n > 0) out += std::string("skipped (") + word.name + "): " + std::to_string(n) + ": " + word.text + "\n";
  }
  for (const NamedLedger& stream : report.streams) {
    if (report.streams.size() == 1 || stream.ledger.skipped_count() == 0) continue;
    std::string why;
    for (const SkipWord& word : kSkips) {
      const std::uint64_t n = stream.ledger.skipped_count(word.skip);
      if (n > 0) why += (why.empty() ? "" : ", ") + std::string(word.name) + " " + std::to_string(n);
    }
    out += "skipped of " + stream.name + ": " + why + "\n";
  }
  const SourceFigures sources = source_figures(report);
  if (sources.damaged > 0)
    out += "damaged: " + std::to_string(sources.damaged) + " pictures may show an error of their stream\n";
  if (sources.format_changes > 0)
    out += "format changes: " + std::to_string(sources.format_changes) + ": of size or pixel format in mid-stream\n";
  for (const NamedLedger& stream : report.streams)
    if (stream.followed) out += coordinated_line(stream);
  if (report.bytes_copied_per_frame >= 0) {
    std::snprintf(line, sizeof line, "bytes copied per frame after the producer's write: %.0f\n",
                  report.bytes_copied_per_frame);
    out += line;
  }
  if (report.map50 >= 0) {
    std::snprintf(line, sizeof line, "accuracy over %llu frames: mAP@0.5 %.3f, classification %.3f",
                  static_cast<unsigned long long>(report.judged_frames), report.map50, report.classification);
    out += line;
    if (report.idf1 >= 0) std::snprintf(line, sizeof line, ", identities kept (IDF1) %.3f", report.idf1);
    out += (report.idf1 >= 0 ? line : std::string()) + "\n";
  }
  return out;
}

}  // namespace leat::tools
