#include "tools/leat/feed/cameras/camera.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/leat/feed/source/picture_source.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kSteadyNs = 10'000'000'000;  // who ran so long begins with the first pause again
constexpr std::int64_t kRateNs = 5'000'000'000;     // pictures are counted over so long, twice that at most
constexpr std::int64_t kLateNs = 2'000'000'000;     // who had nothing but pictures that are too old for so long is late

}  // namespace

Camera::Camera(FeederOptions options, bool comes_back, Say say, CameraPauses pauses)
    : feeder_(std::move(options)), comes_back_(comes_back), say_(std::move(say)), pauses_(pauses) {}

Camera::~Camera() {
  stop();
  join();
}

Status Camera::open() {
  if (const Status opened = feeder_.open_source(stop_); !opened.ok()) return opened;
  open_ = true;
  return feeder_.open_streams();
}

void Camera::start(std::int64_t start_ns) {
  thread_ = std::thread([this, start_ns] { live(start_ns); });
}

void Camera::join() {
  if (thread_.joinable()) thread_.join();
}

void Camera::set(CameraState state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
}

void Camera::live(std::int64_t start_ns) {
  feeder_.begin(start_ns);
  bool first = open_, again = false;  // again: the next round of a film
  while (!stop_.load(std::memory_order_relaxed) && !feeder_.done()) {
    const std::int64_t due_ns = again ? feeder_.next_due_ns() : 0;
    if (!open_ && !open_source(std::exchange(again, false))) {
      if (broke(error_)) continue;
      break;
    }
    set(CameraState::running);
    opened_ns_ = ::leat_now_ns();
    const Status fed = feeder_.feed(std::exchange(first, false) ? start_ns : std::max(opened_ns_, due_ns), stop_);
    open_ = false;
    again = fed.ok() && comes_back_ && feeder_.loops();
    if (again) continue;
    if (stop_.load(std::memory_order_relaxed) || feeder_.done() || (fed.ok() && !feeder_.live())) break;
    error_ = fed.ok() ? "'" + shown_name(feeder_.options().source) + "' ended" : fed.error();
    if (!broke(error_)) break;
  }
  const Status finished = feeder_.finish();
  if (comes_back_ || stop_.load(std::memory_order_relaxed)) error_.clear();  // it was said when it happened
  if (error_.empty() && !finished.ok()) error_ = finished.error();
  set(CameraState::ended);
  ended_.store(true, std::memory_order_release);  // partner: ended()
}

bool Camera::open_source(bool again) {
  set(CameraState::opening);
  const Status opened = feeder_.open_source(stop_);
  open_ = opened.ok();
  error_ = opened.ok() ? "" : opened.error();
  if (opened.ok() && !again) say_("stream " + feeder_.describe());
  return opened.ok();
}

bool Camera::broke(const std::string& why) {
  if (!comes_back_ || stop_.load(std::memory_order_relaxed)) return false;
  const std::int64_t now_ns = ::leat_now_ns();
  const bool steady = opened_ns_ > 0 && now_ns - opened_ns_ >= kSteadyNs;
  opened_ns_ = 0;
  pause_ns_ = steady || pause_ns_ == 0 ? pauses_.first_ns : std::min(2 * pause_ns_, pauses_.longest_ns);
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    state_ = CameraState::waiting;
    last_error_ = why;
    last_error_ns_ = now_ns;
    ++breaks_;
    char pause[24];
    std::snprintf(pause, sizeof pause, "%.3g s", static_cast<double>(pause_ns_) / 1e9);
    line = lines_.line(now_ns, "camera '" + feeder_.options().name + "': " + why + "; opened again in " + pause);
  }
  if (!line.empty()) say_(line);
  feeder_.rest(now_ns + pause_ns_, stop_);
  return true;
}

CameraReport Camera::report(std::int64_t now_ns) {
  const std::string unserved = feeder_.unserved();
  const std::lock_guard lock(mutex_);
  CameraReport out{.name = feeder_.options().name,
                   .source = shown_name(feeder_.options().source),
                   .application = feeder_.options().application,
                   .state = state_,
                   .rate = 0,
                   .last_picture_ns = feeder_.last_picture_ns(),
                   .pictures = feeder_.pictures(),
                   .breaks = breaks_,
                   .time_steps = feeder_.time_steps(),
                   .damaged = feeder_.damaged(),
                   .format_changes = feeder_.format_changes(),
                   .last_error = last_error_,
                   .last_error_ns = last_error_ns_};
  const std::int64_t late_since_ns = feeder_.too_late_since_ns();
  std::string trouble;
  if (state_ == CameraState::running && !unserved.empty()) {
    out.state = CameraState::unserved;
    trouble = unserved;
  } else if (state_ == CameraState::running && late_since_ns != 0 && now_ns - late_since_ns >= kLateNs) {
    out.state = CameraState::late;
    trouble = "its pictures are older than the objective when they can be sent; check the network and `leat top`";
  }
  if (!trouble.empty()) {
    last_error_ = out.last_error = trouble;
    last_error_ns_ = out.last_error_ns = now_ns;
    const std::string line =
        said_trouble_ == trouble ? "" : lines_.line(now_ns, "camera '" + out.name + "' is not served: " + trouble);
    if (!line.empty()) say_(line);
  }
  said_trouble_ = trouble;
  if (now_ns - newer_.at_ns >= kRateNs) older_ = std::exchange(newer_, {now_ns, out.pictures});
  if (older_.at_ns == 0) older_ = newer_;
  if (now_ns > older_.at_ns)
    out.rate = static_cast<double>(out.pictures - older_.pictures) * 1e9 / static_cast<double>(now_ns - older_.at_ns);
  return out;
}

}  // namespace leat::tools
