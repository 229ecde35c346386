#include <pwd.h>

#include <ctime>

#include "leat/leat.h"
#include "tools/leat/feed/cameras/camera_states.h"
#include "tools/leat/top/facts/spans.h"
#include "tools/leat/top/source/gpu_watcher.h"
#include "tools/leat/top/source/seen_json.h"
#include "tools/leat/top/source/source.h"

namespace leat::tools::top {
namespace {

class DaemonSource : public Source {
 public:
  DaemonSource(Watch watch, std::string socket) : watch_(std::move(watch)), socket_(std::move(socket)) {}

  std::optional<Observation> look() override {
    Observation out;
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    out.utc_offset_s = local.tm_gmtoff;
    timespec wall{};
    ::clock_gettime(CLOCK_REALTIME, &wall);
    out.wall_ns = std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec;
    if (gone_ || watch_.daemon_gone()) {
      gone_ = true;
      auto again = Watch::connect(socket_);
      if (!again.ok()) {
        out.gone = true;
        out.sample.at_ns = ::leat_now_ns();
        return out;
      }
      watch_ = std::move(*again);
      gone_ = false;
      ends_ = -1;
    }
    out.events = watch_.events();
    out.sample = watch_.sample();
    name_users(&out.sample);
    ask_status(&out);
    out.cameras = cameras_told(read_camera_states(socket_), out.sample.at_ns);
    if (has_gpus_) out.gpus = gpus_.look(out.sample.at_ns);
    return out;
  }

 private:
  void name_users(Sample* sample) {
    for (const shm::RecordSnapshot& user : sample->users) {
      if (!user.label.starts_with("uid ")) continue;
      const std::string uid = user.label.substr(4);
      if (!names_.contains(uid)) {
        const auto number = static_cast<uid_t>(user.value(shm::UserCounter::uid).value_or(0));
        const passwd* entry = ::getpwuid(number);
        names_[uid] = entry != nullptr ? entry->pw_name : uid;
      }
      sample->user_names[uid] = names_[uid];
    }
  }

  // What partitions are does not change; how their workers ended does.
  void ask_status(Observation* out) {
    double ends = 0;
    for (const shm::RecordSnapshot& p : out->sample.partitions)
      ends += static_cast<double>(p.value(shm::PartitionCounter::restarts).value_or(0)) +
              static_cast<double>(p.value(shm::PartitionCounter::lost_ns).value_or(0));
    if (ends == ends_) return;
    auto status = watch_.status_json();
    if (!status.ok()) return;
    ends_ = ends;
    has_gpus_ = !devices_in(*status).empty();
    out->status = std::move(*status);
  }

  Watch watch_;
  std::string socket_;
  std::map<std::string, std::string> names_;
  double ends_ = -1;
  bool gone_ = false, has_gpus_ = false;
  GpuWatcher gpus_;
};

}  // namespace

Result<std::unique_ptr<Source>> open_daemon(const std::string& socket) {
  auto watch = Watch::connect(socket);
  if (!watch.ok()) return Error{watch.error()};
  return std::unique_ptr<Source>(std::make_unique<DaemonSource>(std::move(*watch), socket));
}

}  // namespace leat::tools::top
