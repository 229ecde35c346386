#include "bench/serving/street_videos.h"

#include <cstdlib>
#include <filesystem>

#include "bench/serving/leatd_child.h"
#include "tools/base/cli/progress.h"

namespace leat::bench {

namespace {
namespace fs = std::filesystem;
constexpr std::uint32_t kCameras = 4;
}  // namespace

Result<std::vector<std::string>> street_videos(const std::string& scenes, const std::string& folder,
                                               std::uint64_t pictures) {
  std::vector<std::string> out;
  cli::Progress progress("drawing cameras", kCameras, "cameras");
  for (std::uint32_t c = 0; c < kCameras; ++c) {
    const std::string name = "/street" + std::to_string(c) + ".mp4";
    if (!scenes.empty()) {
      std::error_code none;
      if (!fs::exists(scenes + name, none))
        return Error{scenes + name + ": is not there; run tools/demo once, or leave --scenes out"};
      out.push_back(scenes + name);
      continue;
    }
    out.push_back(folder + name);
    const std::string command =
        "'" + built("tools/scene/leat-scene") + "' --camera " + std::to_string(c) + " --frames " +
        std::to_string(pictures) +
        " --fps 30 --output - 2>/dev/null | ffmpeg -v error -nostdin -y -f rawvideo "
        "-pix_fmt rgb24 -s 1280x720 -r 30 -i - -threads 1 -c:v libx264 -preset veryfast -crf 18 -bf 0 -g 30 "
        "-pix_fmt yuv420p '" +
        out.back() + "'";
    if (std::system(command.c_str()) != 0) return Error{"the cameras cannot be made; are leat-scene and ffmpeg there?"};
    progress.set(c + 1);
  }
  return out;
}

}  // namespace leat::bench
