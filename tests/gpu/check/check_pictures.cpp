// leat-gpu-check pictures: the picture kernel against preprocess.cpp, and how long a batch of 1080p frames takes.
#include <algorithm>
#include <cmath>
#include <random>

#include "engine/exec/picture/preprocess.h"
#include "leat/frame_format.h"
#include "shm/src/segments/segment_layout.h"
#include "tests/gpu/check/check.h"
#include "tests/gpu/check/sealed_pages.h"

namespace leat::check {
namespace {

constexpr cli::Option kOptions[] = {kGpuOption, kRunsOption};
constexpr cli::Command kCommand = {.name = "leat-gpu-check pictures",
                                   .summary = "the picture kernel against the host's code; frames a second",
                                   .options = kOptions};
constexpr float kTolerance = 2e-5F, kRounded = 5e-3F;

struct Frame {
  std::vector<std::uint8_t> pixels;
  exec::FrameView view;
};
Frame frame_of(std::uint32_t format, std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  Frame out;
  std::uint64_t at[LEAT_MAX_PLANES] = {}, end = 0;
  for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) {
    const auto shape = shm::plane_shape(format, p, width, height);
    out.view.strides[p] = shape.row_bytes;
    at[p] = end;
    end += std::uint64_t{shape.row_bytes} * shape.rows;
  }
  std::mt19937 random(seed);
  out.pixels.resize(end);
  for (auto& b : out.pixels) b = static_cast<std::uint8_t>(random());
  for (std::uint32_t p = 0; p < shm::plane_count(format); ++p) out.view.planes[p] = out.pixels.data() + at[p];
  out.view.format = format, out.view.width = width, out.view.height = height, out.view.bytes = end;
  return out;
}

int run(const cli::Arguments& arguments) {
  Answers answers("pictures");
  auto opened = open_device(arguments);
  if (!opened.ok()) return cli::fail("leat-gpu-check", opened.error());
  exec::Device& device = **opened;
  const bool stand_in = device.info().has_provider == 0;
  const std::uint32_t side = stand_in ? 64 : 640;
  const std::string words = "letterbox mean=0.485,0.456,0.406 std=0.229,0.224,0.225";
  const auto spec = exec::parse_preprocess(words);
  auto pre = exec::Preprocessor::open(*spec, 3, side, side);
  if (!pre.ok()) return cli::fail("leat-gpu-check", pre.error());
  const std::uint64_t floats = std::uint64_t{3} * side * side, row = floats * sizeof(float);
  constexpr std::uint32_t kBatch = 16;
  auto out = device.allocate(row * kBatch);
  if (!out.ok()) return cli::fail("leat-gpu-check", out.error());
  const leat_picture_target target{side, side, 3, LEAT_F32, LEAT_NCHW, LEAT_RESIZE_linear};
  std::vector<float> got(floats), wanted(floats);
  // Ways to resize; the others than the linear one weigh in floats on the device, and in whole numbers on the host.
  for (const auto& [way, tolerance] : {std::pair{"linear", kTolerance},
                                       {"antialias", kRounded},
                                       {"cubic", kRounded},
                                       {"area", kRounded},
                                       {"lanczos", kRounded}}) {
    const auto line = exec::parse_preprocess(words + " resize=" + way);
    auto resizes = exec::Preprocessor::open(*line, 3, side, side);
    if (!resizes.ok()) return cli::fail("leat-gpu-check", resizes.error());
    float worst = 0;
    for (const std::uint32_t format : {LEAT_FORMAT_nv12, LEAT_FORMAT_i420, LEAT_FORMAT_rgb24, LEAT_FORMAT_bgr24}) {
      const Frame frame = frame_of(format, 322, 242, format);
      const exec::Box box{10.5F, 20, 200, 180.25F};
      for (const exec::Box* b : {static_cast<const exec::Box*>(nullptr), &box}) {
        leat_picture_job job{};
        if (!resizes->job(frame.view, b, &job) || !resizes->run(frame.view, b, wanted.data())) continue;
        job.out = out->data();
        leat_picture_target resized = target;
        resized.resize = line->resize;
        if (!device.pictures(resized, {&job, 1}) || !device.copy(got.data(), out->data(), row) || !device.wait())
          return cli::fail("leat-gpu-check", device.error());
        for (std::uint64_t i = 0; i < floats; ++i) worst = std::max(worst, std::abs(got[i] - wanted[i]));
      }
    }
    const std::string suffix = std::string(way) == "linear" ? "" : std::string("_") + way;
    answers.value("largest_difference" + suffix, worst);
    answers.verdict("equal_to_the_host" + suffix, worst <= tolerance);
  }

  const Frame frame = frame_of(LEAT_FORMAT_nv12, 1920, 1080, 9);
  auto pinned = device.pinned(frame.pixels.size());
  if (!pinned.ok()) return cli::fail("leat-gpu-check", pinned.error());
  const std::int64_t runs = arguments.integer("runs");
  // A slot for each picture, as in service: what a cache holds of one is of no use to the next.
  auto slots = SealedPages::create(kBatch * page_multiple(frame.pixels.size()));
  if (!slots.ok()) return cli::fail("leat-gpu-check", slots.error());
  for (std::uint32_t i = 0; i < kBatch; ++i) slots->write(i * page_multiple(frame.pixels.size()), frame.pixels);
  if (auto secured = slots->secure(); !secured.ok()) return cli::fail("leat-gpu-check", secured.error());
  const Status registered = device.register_host(slots->data(), slots->bytes(), true);
  answers.verdict("slots_are_registered", registered.ok(), registered.ok() ? "" : registered.error());
  answers.value("pins_read_only", device.info().reads_read_only != 0);
  for (const std::uint32_t batch : {1U, kBatch}) {
    std::vector<leat_picture_job> jobs(kBatch);
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      exec::FrameView view = frame.view;
      for (auto& plane : view.planes)
        if (plane != nullptr)
          plane = slots->data() + i * page_multiple(frame.pixels.size()) + (plane - frame.pixels.data());
      (void)pre->job(view, nullptr, &jobs[i]);
      jobs[i].out = out->data() + i * row;
    }
    std::uint32_t next = 0;  // one picture after the other, each from another slot
    const auto times = time_us(runs, [&] {
      const std::span<const leat_picture_job> now(jobs.data() + (batch == 1 ? next++ % kBatch : 0), batch);
      return device.pictures(target, now) && device.wait();
    });
    answers.figure("1080p_to_" + std::to_string(side) + "_batch_" + std::to_string(batch), times, "us");
  }
  device.unregister_host(slots->data());
  answers.value("bytes_least_1080p", frame.pixels.size() + row);
  std::vector<std::byte> there(frame.pixels.size());
  auto room = device.allocate(frame.pixels.size());
  if (!room.ok()) return cli::fail("leat-gpu-check", room.error());
  answers.figure(
      "upload_1080p_pinned",
      time_us(runs, [&] { return device.copy(room->data(), pinned->data(), frame.pixels.size()) && device.wait(); }),
      "us");
  return answers.print();
}

}  // namespace

extern const cli::Subcommand kCheckPictures;
const cli::Subcommand kCheckPictures = {&kCommand, run};

}  // namespace leat::check
