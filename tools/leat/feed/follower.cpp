#include "tools/leat/feed/follower.h"

#include <time.h>

#include <algorithm>
#include <utility>

namespace leat::tools {
namespace {

constexpr std::size_t kKept = 128;  // pictures: two seconds of a fast camera
constexpr std::size_t kMaxNames = 4096;

double cpu_s() {
  timespec t{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::string name_of(const leat_detection& found, const leat_stream* stream) {
  const auto name = [&](std::uint32_t head, std::int32_t id) {
    const char* text = stream != nullptr ? ::leat_class_name(stream, head, id) : nullptr;
    return text != nullptr ? std::string(text) : std::to_string(id);
  };
  std::string text;
  for (std::uint32_t l = std::min<std::uint32_t>(found.label_count, LEAT_MAX_LABELS); l-- > 0;)
    text += (text.empty() ? "" : " ") + name(1 + found.labels[l].head, found.labels[l].class_id);
  return text.empty() ? name(0, found.class_id) : text;
}

}  // namespace

bool Follower::takes(const PictureFormat& format) noexcept {
  return raw_layout(format.format, format.width, format.height).planes > 0;
}

Follower::Follower(const PictureFormat& format, const Truth* truth, scene::AnyTracker tracker)
    : own_(format),
      grey_(format, kTrackedWidth),
      truth_(truth),
      figures_{.tracker = tracker.name()},
      tracked_(kKept, std::move(tracker)) {}

std::optional<std::vector<TrackedBox>> Follower::truth_at(std::uint64_t index) const {
  if (truth_ == nullptr || index >= truth_->pictures.size()) return std::nullopt;
  std::vector<TrackedBox> boxes;
  for (const scene::Object& o : truth_->pictures[index])
    if (!o.ignore) boxes.push_back({o.x0, o.y0, o.x1, o.y1});
  return boxes;
}

std::span<const TrackedBox> Follower::show(std::uint64_t number, std::uint64_t index) {
  const double before = cpu_s();
  grey_.take(frame_);
  const auto boxes = tracked_.frame(number, grey_.view());
  shown_.assign(boxes.begin(), boxes.end());
  figures_.tracking_cpu_s += cpu_s() - before;
  const auto s = static_cast<float>(grey_.scale());
  for (TrackedBox& b : shown_) b.x0 *= s, b.y0 *= s, b.x1 *= s, b.y1 *= s;
  newest_ = number;
  ++figures_.frames;
  if (!any_) return shown_;
  ++figures_.followed;
  if (const auto truth = truth_at(index)) {
    ++figures_.judged;
    figures_.off_truth_sum += distance(shown_, *truth);
  }
  return shown_;
}

std::optional<TrackingReport> Follower::answered(std::uint64_t number, std::uint64_t index, const leat_answer& answer) {
  const leat_result& result = *answer.result;
  std::vector<TrackedBox> boxes;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS); ++i) {
    const leat_detection& d = result.detections[i];
    const std::string name = name_of(d, answer.stream);
    auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end() && names_.size() < kMaxNames) at = names_.insert(names_.end(), name);
    boxes.push_back({d.x0, d.y0, d.x1, d.y1, static_cast<std::int32_t>(at - names_.begin())});
  }
  if (const auto truth = truth_at(index)) {
    ++figures_.answers_judged;
    figures_.detector_off_sum += distance(boxes, *truth);
  }
  const float s = 1 / static_cast<float>(grey_.scale());
  for (TrackedBox& b : boxes) b.x0 *= s, b.y0 *= s, b.x1 *= s, b.y1 *= s;
  const double before = cpu_s();
  const auto report = tracked_.answer(number, boxes);
  figures_.tracking_cpu_s += cpu_s() - before;
  any_ = true;
  source_ = std::max(source_, number);
  if (report) {
    ++figures_.reports;
    figures_.seen_sum += report->drop;
  }
  return report;
}

draw::Tracked Follower::tracked(std::uint32_t x, std::uint32_t y) const {
  constexpr draw::Colour kFresh{255, 255, 255}, kCarried{86, 180, 233};
  const double left = x, top = y;
  draw::Tracked out{{left, top, left + frame_.width, top + frame_.height}, {}, "no answer yet"};
  for (const TrackedBox& b : shown_) {
    const bool named = b.label >= 0 && static_cast<std::size_t>(b.label) < names_.size();
    out.boxes.push_back({{left + static_cast<double>(b.x0), top + static_cast<double>(b.y0),
                          left + static_cast<double>(b.x1), top + static_cast<double>(b.y1)},
                         named ? names_[static_cast<std::size_t>(b.label)] : "",
                         newest_ == source_ ? kFresh : kCarried});
  }
  if (any_)
    out.banner = std::to_string(shown_.size()) + " boxes, " + std::to_string(newest_ - std::min(source_, newest_)) +
                 " frames after their answer";
  return out;
}

}  // namespace leat::tools
