// leat-scene: the synthetic street as raw frames, and what is in them as JSON lines.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/cli/command.h"
#include "tools/base/cli/progress.h"
#include "tools/scene/scene.h"
#include "tools/scene/tracking/motion_film.h"

namespace {

using leat::cli::Type;
constexpr leat::cli::Option kOptions[] = {
    {.name = "seed",
     .letter = 's',
     .type = Type::integer,
     .value = "N",
     .fallback = "1",
     .min = 0,
     .max = 9007199254740992,
     .help = "seed of everything"},
    {.name = "camera",
     .letter = 'c',
     .type = Type::integer,
     .value = "N",
     .fallback = "0",
     .min = 0,
     .max = 1000000,
     .help = "first camera: each has its own street and objects"},
    leat::cli::integer_option("cameras", "1", 1, 1000000, "cameras, one after the other"),
    leat::cli::integer_option("start", "0", 0, 1000000000, "first frame of every camera"),
    {.name = "frames",
     .letter = 'n',
     .type = Type::integer,
     .value = "N",
     .fallback = "300",
     .min = 1,
     .max = 1000000000,
     .help = "frames of every camera"},
    leat::cli::integer_option("every", "1", 1, 1000000, "step from frame to frame"),
    leat::cli::integer_option("width", "1280", 32, 8192, "width, even", "PIXELS"),
    leat::cli::integer_option("height", "720", 32, 8192, "height, even", "PIXELS"),
    leat::cli::real_option("fps", "30", 0.01, 10000, "frames a second of the scene's own time", "RATE"),
    {.name = "motion",
     .letter = 'm',
     .type = Type::choice,
     .choices = "street|easy|walk|shaky|fast|crowd|phases|zoom|noisy|swing|counter-swing",
     .fallback = "street",
     .help = "what moves: the street, or a video to measure trackers with, of textured ellipses"},
    {.name = "format",
     .letter = 'f',
     .type = Type::choice,
     .choices = "rgb24|nv12",
     .fallback = "rgb24",
     .help = "pixel format"},
    {.name = "output",
     .letter = 'o',
     .type = Type::path,
     .value = "FILE",
     .fallback = "-",
     .help = "raw frames; - is standard output"},
    {.name = "truth",
     .letter = 't',
     .type = Type::path,
     .value = "FILE",
     .help = "what is in the frames, one JSON line a frame"},
};
constexpr leat::cli::Example kExamples[] = {
    {.line = "leat-scene --frames 600 | ffmpeg -f rawvideo -pix_fmt rgb24 -s 1280x720 -r 30 -i - street.mp4",
     .text = "twenty seconds of video"},
    {.line = "leat-scene --format nv12 --output street.nv12 --truth street.jsonl",
     .text = "raw frames with their ground truth"},
    {.line = "leat-scene --motion zoom --fps 60 --width 640 --height 360 --truth zoom.jsonl -o zoom.rgb",
     .text = "objects that turn and grow; 'leat feed --accuracy 0.06 --rate 60 --raw rgb24 --size 640x360 --truth "
             "zoom.jsonl zoom.rgb' says what following them loses"},
};
constexpr leat::cli::Command kCommand = {
    .name = "leat-scene",
    .summary = "renders a synthetic street scene with its ground truth",
    .description =
        "Coloured shapes move and overlap before a busy background. The same seed, camera, frame and size give the "
        "same picture. "
        "Objects less than 60 % visible, or with a side under 1/22 of the frame's height, are marked \"ignore\" in the "
        "truth.\n\n"
        "With --motion the video is of a kind that trackers are measured on: easy, walk and fast differ in speed; in "
        "shaky the camera shakes; crowd is many objects that hide each other; in phases, and more so in swing and "
        "counter-swing, slow and fast seconds take turns; in zoom objects turn and grow; noisy has a noisy sensor. "
        "Their ellipses are labelled circles.",
    .options = kOptions,
    .examples = kExamples,
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File open_file(const std::string& path) {
  return File(path == "-" ? stdout : std::fopen(path.c_str(), "wb"), std::fclose);
}
int cannot_write(const std::string& path) {
  return leat::cli::fail("leat-scene",
                         "cannot write " + path + ": " + std::strerror(errno) + "; name a writable file with room");
}

}  // namespace

int main(int argc, char** argv) {
  const auto args = leat::cli::parse_or_exit(kCommand, argc, argv);
  const std::string path = args.text("output"), truth_path = args.given("truth") ? args.text("truth") : std::string();
  const File output = open_file(path);
  if (!output) return cannot_write(path);
  const File truth = truth_path.empty() ? File(nullptr, std::fclose) : open_file(truth_path);
  if (!truth_path.empty() && !truth) return cannot_write(truth_path);
  if (truth) std::setvbuf(truth.get(), nullptr, _IOLBF, BUFSIZ);
  const auto frames = args.integer("frames"), cameras = args.integer("cameras");
  leat::scene::SceneOptions options{.seed = static_cast<std::uint64_t>(args.integer("seed")),
                                    .camera = static_cast<std::uint32_t>(args.integer("camera")),
                                    .width = static_cast<std::uint32_t>(args.integer("width")),
                                    .height = static_cast<std::uint32_t>(args.integer("height")),
                                    .fps = args.real("fps")};
  if (options.width % 2 != 0 || options.height % 2 != 0)
    return leat::cli::fail("leat-scene", "--width and --height must be even");
  const bool nv12 = args.text("format") == "nv12";
  const auto motion = leat::scene::motion_kind(args.text("motion"));  // none: the street
  leat::cli::Progress progress("scene", static_cast<std::uint64_t>(frames * cameras), "frames");
  std::vector<std::uint8_t> rgb, yuv;
  for (std::int64_t c = 0; c < cameras; ++c, ++options.camera) {
    std::optional<leat::scene::MotionFilm> film;
    std::optional<leat::scene::Scene> street;
    if (motion)
      film.emplace(*motion, options);
    else
      street.emplace(options);
    const std::size_t pixels = std::size_t{options.width} * options.height;
    rgb.resize(3 * pixels);
    yuv.resize(nv12 ? 3 * pixels / 2 : 0);
    for (std::int64_t i = 0; i < frames; ++i) {
      const auto index = static_cast<std::uint64_t>(args.integer("start") + i * args.integer("every"));
      const std::size_t stride = std::size_t{3} * options.width;
      const auto& objects = film ? film->render(index, rgb.data(), stride) : street->render(index, rgb.data(), stride);
      if (nv12) leat::scene::to_nv12(rgb.data(), stride, options.width, options.height, yuv.data());
      const auto& bytes = nv12 ? yuv : rgb;
      // A frame's truth is out before the frame, so that a reader of both never waits for the truth.
      if (truth && std::fprintf(truth.get(), "%s\n", leat::scene::truth_line(options, index, objects).c_str()) < 0)
        return cannot_write(truth_path);
      if (std::fwrite(bytes.data(), 1, bytes.size(), output.get()) != bytes.size()) return cannot_write(path);
      progress.add(1);
    }
  }
  if (std::fflush(output.get()) != 0) return cannot_write(path);
  if (truth && std::fflush(truth.get()) != 0) return cannot_write(truth_path);
  return 0;
}
