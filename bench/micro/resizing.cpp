// What each way to resize costs beside the linear one: frames of 1920x1080 into 640x640 (letterbox), in turns within
// one run, each frame from memory as a client has left it there. Processor time; ratios to linear, the median of all
// rounds and the range of their middle half.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "engine/exec/picture/preprocess.h"
#include "shm/src/segments/segment_layout.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;

constexpr std::uint32_t kWidth = 1920, kHeight = 1080, kSide = 640, kFrames = 24;  // frames: more than caches hold
constexpr const char* kWays[] = {"linear", "antialias", "area", "cubic", "lanczos"};
constexpr std::size_t kWayCount = std::size(kWays);
constexpr std::pair<const char*, std::uint32_t> kFormats[] = {
    {"nv12", LEAT_FORMAT_nv12}, {"i420", LEAT_FORMAT_i420}, {"rgb24", LEAT_FORMAT_rgb24}, {"gray8", LEAT_FORMAT_gray8}};

constexpr cli::Option kOptions[] = {
    cli::integer_option("rounds", "60", 1, 10000, "frames that each way resizes"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "resizing", .summary = "what resize= costs: 1080p to 640x640, beside linear", .options = kOptions};

struct Frames {
  std::vector<std::uint8_t> bytes;
  std::vector<exec::FrameView> views;
};
Frames frames_of(std::uint32_t format) {
  Frames out;
  std::uint64_t at[LEAT_MAX_PLANES] = {}, end = 0;
  exec::FrameView view{.format = format, .width = kWidth, .height = kHeight};
  for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) {
    const auto shape = shm::plane_shape(format, p, kWidth, kHeight);
    view.strides[p] = shape.row_bytes;
    at[p] = end;
    end += std::uint64_t{shape.row_bytes} * shape.rows;
  }
  view.bytes = end;
  out.bytes.resize(end * kFrames);
  std::mt19937 random(format);
  for (auto& b : out.bytes) b = static_cast<std::uint8_t>(random());
  for (std::uint32_t f = 0; f < kFrames; ++f) {
    for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) view.planes[p] = out.bytes.data() + f * end + at[p];
    out.views.push_back(view);
  }
  return out;
}

// Of this thread: what else runs on the host takes turns with it, the longer way more often.
double now_us() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

double part_of(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  const std::int64_t rounds = args.integer("rounds");
  std::vector<float> input(std::size_t{3} * kSide * kSide);
  Json out = {{"rounds", rounds}, {"formats", Json::object()}};
  std::string text;
  for (const auto& [name, format] : kFormats) {
    const Frames frames = frames_of(format);
    std::vector<exec::Preprocessor> ways;
    for (const char* const way : kWays) {
      const auto spec = exec::parse_preprocess(std::string("letterbox rgb norm=unit resize=") + way);
      auto opened = exec::Preprocessor::open(*spec, 3, kSide, kSide);
      if (!opened.ok()) return cli::fail("resizing", opened.error());
      ways.push_back(std::move(*opened));
    }
    std::vector<double> us[kWayCount], ratios[kWayCount];
    std::size_t frame = 0;
    for (std::int64_t round = -2; round < rounds; ++round) {  // the first two lay weights and touch pages
      double took[kWayCount];
      for (std::size_t w = 0; w < kWayCount; ++w) {
        const double before = now_us();
        if (!ways[w].run(frames.views[frame++ % kFrames], nullptr, input.data())) return 1;
        took[w] = now_us() - before;
      }
      for (std::size_t w = 0; round >= 0 && w < kWayCount; ++w)
        us[w].push_back(took[w]), ratios[w].push_back(took[w] / took[0]);
    }
    for (std::size_t w = 0; w < kWayCount; ++w) {
      const double median = part_of(ratios[w], .5), low = part_of(ratios[w], .25), high = part_of(ratios[w], .75);
      out["formats"][name][kWays[w]] = {
          {"us", part_of(us[w], .5)}, {"over_linear", median}, {"low", low}, {"high", high}};
      char line[160];
      std::snprintf(line, sizeof line, "%-6s %-10s %8.0f us, %5.2f times linear (%.2f to %.2f)\n", name, kWays[w],
                    part_of(us[w], .5), median, low, high);
      text += line;
    }
  }
  if (!json.alone()) std::fputs(text.c_str(), stdout);
  return json.write(out.dump(2));
}
