#include "bench/coordinated/real_footage.h"

#include <array>
#include <cmath>

#include "tools/leat/feed/own_picture.h"
#include "tools/leat/feed/small_grey.h"
#include "tools/leat/feed/source/picture_source.h"
#if defined(LEAT_OPENCV)
#include <opencv2/imgproc.hpp>
#include <opencv2/video/background_segm.hpp>
#endif

namespace leat::bench {
namespace {

constexpr std::uint32_t kWidest = 400;

using Boxes = std::vector<TrackedBox>;

[[maybe_unused]] Status read_grey(const std::string& path, scene::Footage& to) {
  auto source = tools::open_source(path, {});
  if (!source.ok()) return Error{source.error()};
  const tools::PictureFormat& format = (*source)->format();
  if (tools::raw_layout(format.format, format.width, format.height).planes == 0)
    return Error{"'" + path + "' has no pixels; name a video"};
  tools::OwnPicture picture(format);
  tools::SmallGrey grey(format, kWidest);
  to.width = grey.view().width;
  to.height = grey.view().height;
  if (format.rate > 0) to.fps = format.rate;
  for (;;) {
    auto time = (*source)->next();
    if (!time.ok()) return Error{time.error()};
    if (!time->has_value()) return Done{};
    auto written = (*source)->write(picture.frame);
    if (!written.ok()) return Error{written.error()};
    if (!*written) return Done{};
    grey.take(picture.frame);
    const GreyFrame small = grey.view();
    to.pixels.insert(to.pixels.end(), small.pixels, small.pixels + small.stride * small.height);
    to.detected.emplace_back();
  }
}

#if defined(LEAT_OPENCV)
// Everything is looked at twice: the first time the background is only learned.
void detect(scene::Footage& footage) {
  cv::setNumThreads(1);
  const auto background = cv::createBackgroundSubtractorMOG2(300, 20, true);
  const cv::Mat close = cv::getStructuringElement(cv::MORPH_ELLIPSE, {5, 11}),
                open = cv::getStructuringElement(cv::MORPH_ELLIPSE, {3, 3});
  const auto min_area = static_cast<int>(footage.width * footage.height / 800);
  cv::Mat mask, labels, figures, middles;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t f = 0; f < footage.detected.size(); ++f) {
      const cv::Mat picture(static_cast<int>(footage.height), static_cast<int>(footage.width), CV_8UC1,
                            const_cast<std::uint8_t*>(footage.frame(f).pixels));  // is only read
      background->apply(picture, mask, 0.002);
      if (round == 0) continue;
      cv::threshold(mask, mask, 200, 255, cv::THRESH_BINARY);  // shadows are 127
      cv::morphologyEx(mask, mask, cv::MORPH_OPEN, open);
      cv::morphologyEx(mask, mask, cv::MORPH_CLOSE, close);
      const int n = cv::connectedComponentsWithStats(mask, labels, figures, middles, 8, CV_32S);
      for (int i = 1; i < n; ++i) {
        const int* const c = figures.ptr<int>(i);
        if (c[cv::CC_STAT_AREA] < min_area) continue;
        const auto x = static_cast<float>(c[cv::CC_STAT_LEFT]), y = static_cast<float>(c[cv::CC_STAT_TOP]);
        footage.detected[f].push_back(
            {x, y, x + static_cast<float>(c[cv::CC_STAT_WIDTH]), y + static_cast<float>(c[cv::CC_STAT_HEIGHT])});
      }
    }
  }
}
#endif

// One thing over time: its boxes from `first` on, one a frame.
struct Track {
  std::size_t first;
  Boxes boxes;
  std::uint32_t unseen = 0;  // frames at its end that were filled
};

TrackedBox between(const TrackedBox& a, const TrackedBox& b, float part) {
  const auto mix = [part](float u, float v) { return u + part * (v - u); };
  return {mix(a.x0, b.x0), mix(a.y0, b.y0), mix(a.x1, b.x1), mix(a.y1, b.y1), a.label};
}

// The value at `at` of the line through the values around it.
float smoothed(const Boxes& boxes, std::size_t at, float TrackedBox::*side) {
  constexpr std::size_t kReach = 3;
  const std::size_t from = at < kReach ? 0 : at - kReach, to = std::min(boxes.size() - 1, at + kReach);
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (std::size_t i = from; i <= to; ++i) {
    const double dx = static_cast<double>(i) - static_cast<double>(at), v = static_cast<double>(boxes[i].*side);
    n += 1, x += dx, y += v, xx += dx * dx, xy += dx * v;
  }
  const double spread = n * xx - x * x;
  const double slope = spread > 0 ? (n * xy - x * y) / spread : 0;
  return static_cast<float>((y - slope * x) / n);
}

}  // namespace

std::vector<Boxes> smoothed_over_time(const std::vector<Boxes>& detected, double fps) {
  constexpr std::uint32_t kGap = 3;
  constexpr float kSame = 0.4f;
  const auto min = static_cast<std::size_t>(std::max(3.0, fps / 2));
  std::vector<Track> open, done;
  for (std::size_t f = 0; f < detected.size(); ++f) {
    std::vector<char> taken(detected[f].size());
    for (Track& track : open) {
      std::size_t best = detected[f].size();
      float max = kSame;
      for (std::size_t i = 0; i < detected[f].size(); ++i) {
        const float iou = overlap(track.boxes.back(), detected[f][i]);
        if (taken[i] == 0 && iou > max) max = iou, best = i;
      }
      const bool found = best < detected[f].size();
      track.boxes.push_back(found ? detected[f][best] : track.boxes.back());
      if (!found) {
        ++track.unseen;
        continue;
      }
      taken[best] = 1;
      // What was held meanwhile went straight from where it was to where it is.
      const std::size_t last = track.boxes.size() - 1, seen = last - track.unseen - 1;
      for (std::size_t i = seen + 1; i < last; ++i)
        track.boxes[i] = between(track.boxes[seen], track.boxes[last],
                                 static_cast<float>(i - seen) / static_cast<float>(last - seen));
      track.unseen = 0;
    }
    for (std::size_t i = 0; i < open.size();) {
      if (open[i].unseen <= kGap) {
        ++i;
        continue;
      }
      done.push_back(std::move(open[i]));
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (std::size_t i = 0; i < detected[f].size(); ++i)
      if (taken[i] == 0) open.push_back({f, {detected[f][i]}});
  }
  for (Track& track : open) done.push_back(std::move(track));
  std::vector<Boxes> out(detected.size());
  for (Track& track : done) {
    track.boxes.resize(track.boxes.size() - track.unseen);
    if (track.boxes.size() < min) continue;
    for (std::size_t i = 0; i < track.boxes.size(); ++i) {
      TrackedBox box = track.boxes[i];
      for (auto side : {&TrackedBox::x0, &TrackedBox::y0, &TrackedBox::x1, &TrackedBox::y1})
        box.*side = smoothed(track.boxes, i, side);
      out[track.first + i].push_back(box);
    }
  }
  return out;
}

Result<scene::Footage> real_footage(const std::string& path) {
#if defined(LEAT_OPENCV)
  scene::Footage footage{.video = path.substr(path.find_last_of('/') + 1)};
  if (const Status read = read_grey(path, footage); !read.ok()) return Error{read.error()};
  if (footage.detected.size() <= scene::DropTable::kStrides)
    return Error{"'" + path + "' is too short; take one of a hundred pictures and more"};
  detect(footage);
  footage.truth = smoothed_over_time(footage.detected, footage.fps);
  return footage;
#else
  return Error{"'" + path +
               "' cannot be searched: this was built without OpenCV, whose background subtraction finds "
               "what moves; 'tools/setup --packages libopencv-video-dev' installs it"};
#endif
}

}  // namespace leat::bench
