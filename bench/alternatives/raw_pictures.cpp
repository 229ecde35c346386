#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/alternatives/pictures.h"
#include "tools/base/cli/progress.h"
#include "tools/base/text/fd.h"
#include "tools/scene/scene.h"

namespace leat::bench::alternatives {

namespace {

constexpr std::uint32_t kScenes = 4;
constexpr std::uint64_t kBytes = std::uint64_t{kWidth} * kHeight * 3 / 2;

class RawFilm final : public Film {
 public:
  RawFilm(int file, std::uint64_t first, std::uint64_t count) : file_(file), first_(first), count_(count) {}
  Got go_to(std::uint64_t picture) override {
    at_ = picture;
    return Got::ready;
  }
  bool write(const leat_frame& into) override {
    const iovec planes[] = {{into.planes[0], std::size_t{kWidth} * kHeight},
                            {into.planes[1], std::size_t{kWidth} * kHeight / 2}};
    const std::uint64_t at = (first_ + at_ % count_) * kBytes;
    return ::preadv(file_, planes, 2, static_cast<off_t>(at)) == static_cast<ssize_t>(kBytes);
  }

 private:
  int file_;
  std::uint64_t first_, count_, at_ = 0;
};

class RawPictures final : public Pictures {
 public:
  RawPictures(Fd file, std::uint64_t each) : file_(std::move(file)), each_(each) {}
  [[nodiscard]] leat_format format() const override { return LEAT_FORMAT_nv12; }
  [[nodiscard]] Result<std::unique_ptr<Film>> open(std::uint32_t camera) const override {
    const RawPart part = part_of(camera);
    return std::unique_ptr<Film>(std::make_unique<RawFilm>(part.file, part.first, part.count));
  }
  [[nodiscard]] std::optional<RawPart> raw(std::uint32_t camera) const override { return part_of(camera); }

 private:
  [[nodiscard]] RawPart part_of(std::uint32_t camera) const {
    return {.file = file_.get(), .first = camera % kScenes * each_, .count = each_};
  }

  Fd file_;
  std::uint64_t each_;
};

}  // namespace

Result<std::unique_ptr<Pictures>> draw_raw(std::uint64_t pictures) {
  Fd file(::memfd_create("pictures", MFD_CLOEXEC));
  if (!file) return Error{"there is no memory for the pictures; give fewer by --pictures"};
  cli::Progress progress("drawing cameras", kScenes * pictures, "pictures");
  std::vector<std::uint8_t> rgb, nv12(kBytes);
  for (std::uint32_t camera = 0; camera < kScenes; ++camera) {
    scene::Scene street({.seed = 1, .camera = camera, .width = kWidth, .height = kHeight, .fps = kRate});
    rgb.resize(street.rgb_bytes());
    for (std::uint64_t i = 0; i < pictures; ++i, progress.add(1)) {
      street.render(i, rgb.data(), std::size_t{3} * kWidth);
      scene::to_nv12(rgb.data(), std::size_t{3} * kWidth, kWidth, kHeight, nv12.data());
      const std::uint64_t at = (camera * pictures + i) * kBytes;
      if (::pwrite(file.get(), nv12.data(), kBytes, static_cast<off_t>(at)) != static_cast<ssize_t>(kBytes))
        return Error{"there is no memory for the pictures; give fewer by --pictures"};
    }
  }
  return std::unique_ptr<Pictures>(std::make_unique<RawPictures>(std::move(file), pictures));
}

}  // namespace leat::bench::alternatives
