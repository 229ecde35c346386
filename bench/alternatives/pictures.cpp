#include "bench/alternatives/pictures.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <vector>

#include "tools/base/cli/progress.h"
#include "tools/scene/scene.h"

namespace leat::bench::alternatives {

namespace {
constexpr std::uint32_t kScenes = 4;
constexpr std::uint64_t kBytes = std::uint64_t{kWidth} * kHeight * 3 / 2;
}  // namespace

Result<Pictures> Pictures::draw(std::uint64_t pictures) {
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
  return Pictures(std::move(file), pictures);
}

bool Pictures::read(std::uint32_t camera, std::uint64_t picture, const leat_frame& into) const {
  const std::uint64_t at = (camera % kScenes * each_ + picture % each_) * kBytes;
  const iovec planes[] = {{into.planes[0], std::size_t{kWidth} * kHeight},
                          {into.planes[1], std::size_t{kWidth} * kHeight / 2}};
  return ::preadv(file_.get(), planes, 2, static_cast<off_t>(at)) == static_cast<ssize_t>(kBytes);
}

}  // namespace leat::bench::alternatives
