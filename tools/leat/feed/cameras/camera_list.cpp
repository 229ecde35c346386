#include "tools/leat/feed/cameras/camera_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/leat/feed/source/picture_source.h"

namespace leat::tools {

Camera& CameraList::add(FeederOptions options, bool comes_back) {
  options.number = options.grid_place = number_++;
  cameras_.push_back({.camera = std::make_unique<Camera>(std::move(options), comes_back, say_), .config = {}});
  return *cameras_.back().camera;
}

void CameraList::start(std::int64_t start_ns) {
  for (Entry& entry : cameras_)
    if (!std::exchange(entry.started, true)) entry.camera->start(start_ns);
}

std::string CameraList::apply(const std::vector<CameraConfig>& wanted, const FeederOptions& all,
                              const std::string& annotated, const std::string& annotate) {
  std::vector<Entry> gone;
  std::size_t changed = 0, kept = 0, added = 0;
  for (std::size_t i = 0; i < cameras_.size();) {
    const Entry& entry = cameras_[i];
    const auto same_name = [&](const CameraConfig& c) { return c.name == entry.config.name; };
    const auto now = std::find_if(wanted.begin(), wanted.end(), same_name);
    if (!entry.of_file || (now != wanted.end() && *now == entry.config)) {
      kept += entry.of_file ? 1 : 0;
      ++i;
      continue;
    }
    changed += now != wanted.end() ? 1 : 0;
    gone.push_back(std::move(cameras_[i]));
    cameras_.erase(cameras_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const std::size_t removed = gone.size() - changed;
  remove(std::move(gone));
  for (const CameraConfig& config : wanted) {
    const auto there = [&](const Entry& entry) { return entry.of_file && entry.config.name == config.name; };
    if (std::any_of(cameras_.begin(), cameras_.end(), there)) continue;
    auto options = options_of(config, all);
    if (!options.ok()) continue;  // it was made once when the file was read
    if (config.name == annotated) options->annotate = annotate;
    (void)add(std::move(*options), true);
    cameras_.back().config = config;
    cameras_.back().of_file = true;
    ++added;
  }
  return std::to_string(added - changed) + " added, " + std::to_string(removed) + " removed, " +
         std::to_string(changed) + " changed, " + std::to_string(kept) + " as they were";
}

void CameraList::remove(std::vector<Entry> gone) {
  for (Entry& entry : gone) entry.camera->stop();
  for (Entry& entry : gone) {
    entry.camera->join();
    for (const NamedLedger& stream : entry.camera->figures()) gone_.add(stream.ledger);
    const std::int64_t first = entry.camera->feeder().first_submit_ns();
    if (first > 0) gone_first_ns_ = gone_first_ns_ == 0 ? first : std::min(gone_first_ns_, first);
    gone_last_ns_ = std::max(gone_last_ns_, entry.camera->feeder().last_answer_ns());
    any_gone_ = true;
  }
}

void CameraList::stop() {
  for (Entry& entry : cameras_) entry.camera->stop();
}

void CameraList::end() {
  stop();
  for (Entry& entry : cameras_) entry.camera->join();
}

bool CameraList::ended() const {
  return std::all_of(cameras_.begin(), cameras_.end(), [](const Entry& entry) { return entry.camera->ended(); });
}

std::vector<CameraReport> CameraList::reports(std::int64_t now_ns) {
  std::vector<CameraReport> out;
  for (Entry& entry : cameras_) out.push_back(entry.camera->report(now_ns));
  return out;
}

FeedReport CameraList::report() const {
  FeedReport report;
  std::int64_t first = gone_first_ns_, last = gone_last_ns_;
  for (const Entry& entry : cameras_) {
    for (NamedLedger& stream : entry.camera->figures()) report.streams.push_back(std::move(stream));
    const std::int64_t from = entry.camera->feeder().first_submit_ns();
    if (from > 0) first = first == 0 ? from : std::min(first, from);
    last = std::max(last, entry.camera->feeder().last_answer_ns());
  }
  report.seconds = first > 0 && last > first ? static_cast<double>(last - first) / 1e9 : 0;
  if (any_gone_) report.streams.push_back({.name = "removed cameras", .ledger = gone_, .seconds = report.seconds});
  return report;
}

std::vector<std::string> CameraList::errors() const {
  std::vector<std::string> out;
  for (const Entry& entry : cameras_)
    if (entry.camera->ended() && !entry.camera->error().empty()) out.push_back(entry.camera->error());
  return out;
}

}  // namespace leat::tools
