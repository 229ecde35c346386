#include "tools/leat/answers/stream_answers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "tools/leat/answers/answer_json.h"

namespace leat::tools {
namespace {

// Leat's clock is the monotonic one; readers of lines want the wall's. "2026-11-24T02:15:07.123Z"
std::string wall_time(std::int64_t monotonic_ns) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t wall_ns = now.tv_sec * 1'000'000'000LL + now.tv_nsec - (leat_now_ns() - monotonic_ns);
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(wall_ns / 1'000'000 % 1000));
  return text;
}

double milliseconds(std::int64_t ns) { return std::round(static_cast<double>(ns) / 1e4) / 1e2; }

}  // namespace

Result<StreamAnswers> StreamAnswers::make(StreamAnswersOptions options, LineWriter& to) {
  StreamAnswers answers(std::move(options), to);
  const StreamAnswersOptions& o = answers.options_;
  if (!o.tracks) return answers;
  leat_track_ids_options tracks;
  leat_track_ids_options_init(&tracks);
  tracks.min_score = std::max(tracks.min_score, o.min_score);
  tracks.high_score = std::max(tracks.high_score, tracks.min_score);
  tracks.new_score = std::max(tracks.new_score, tracks.high_score);
  tracks.classes = o.classes.data();
  tracks.class_count = static_cast<std::uint32_t>(o.classes.size());
  auto made = TrackIds::create(&tracks);
  if (!made.ok()) return Error{made.error()};
  answers.tracks_.emplace(std::move(*made));
  return answers;
}

void StreamAnswers::add(std::uint64_t number, std::uint64_t picture, const leat_answer& answer) {
  Waiting waiting{.line = {{"v", kAnswerVersion}, {"stream", options_.stream}, {"application", options_.application}},
                  .picture = picture,
                  .capture_ns = answer.capture_ns,
                  .detections = {}};
  Json& line = waiting.line;
  line["picture"] = picture;
  line["captured"] = wall_time(answer.capture_ns);
  line["latency_ms"] = milliseconds(answer.answered_ns - answer.capture_ns);
  if (const std::int64_t began_ns = leat_dispatched_ns(&answer); began_ns != 0) {
    line["queue_ms"] = milliseconds(began_ns - answer.capture_ns);
    line["run_ms"] = milliseconds(answer.answered_ns - began_ns);
  }
  if (answer.result != nullptr)
    line["size"] = std::vector<std::uint32_t>{answer.result->frame_width, answer.result->frame_height};
  line.update(answer_json(answer, {.max_values = options_.max_values, .mask_runs = true}));
  if (answer.result != nullptr && answer.result->kind == LEAT_RESULT_DETECTIONS)
    waiting.detections.emplace(
        answer.result->detections,
        answer.result->detections + std::min<std::uint32_t>(answer.result->detection_count, LEAT_MAX_DETECTIONS));
  in_order_.add(number, std::move(waiting), [&](Waiting next) { write(std::move(next)); });
}

void StreamAnswers::finish(std::uint64_t from) {
  in_order_.finish(from, [&](Waiting next) { write(std::move(next)); });
}

bool StreamAnswers::wanted(const leat_detection& d) const {
  const auto& classes = options_.classes;
  return d.score >= options_.min_score &&
         (classes.empty() || std::find(classes.begin(), classes.end(), d.class_id) != classes.end());
}

void StreamAnswers::identify(Waiting& answer) {
  const auto ids = tracks_->update(answer.capture_ns, *answer.detections);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != 0) answer.line["detections"][i]["track"] = ids[i];
  if (options_.identified) options_.identified(answer.picture, *answer.detections, ids);
}

// The others say where they stood: rows of parts belong to all.
void StreamAnswers::leave_out(Waiting& answer) const {
  Json left = Json::array();
  for (std::size_t i = 0; i < answer.detections->size(); ++i) {
    if (!wanted((*answer.detections)[i])) continue;
    left.push_back(std::move(answer.line["detections"][i]));
    left.back()["index"] = i;
  }
  answer.line["detections"] = std::move(left);
}

void StreamAnswers::write(Waiting answer) {
  if (tracks_ && answer.detections) identify(answer);
  if (leaves_out() && answer.detections) leave_out(answer);
  to_->push(answer.line.dump());
}

std::optional<std::int32_t> class_id_of(const leat_stream* stream, const std::string& name) {
  constexpr std::int32_t kMaxClasses = 65536;
  for (std::int32_t id = 0; id < kMaxClasses; ++id)
    if (const char* known = leat_class_name(stream, 0, id); known != nullptr && name == known) return id;
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

std::string lost_line(std::uint64_t lines) { return Json{{"v", kAnswerVersion}, {"lost", lines}}.dump(); }

}  // namespace leat::tools
