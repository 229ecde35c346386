// Streams side by side: a stream's newest picture is copied when the one before it has been drawn, so that nothing is
// copied or drawn more often than the grid is.
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "tools/leat/feed/video/drawing_annotator.h"

namespace leat::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRate = 12.5;  // grids a second
constexpr draw::Size kGrid{1920, 1080};
constexpr draw::Colour kGap{10, 11, 13};

class Grid : public DrawingAnnotator {
 public:
  ~Grid() override { stop(); }

  Status open(const std::string& path, std::uint32_t streams) {
    columns_ = static_cast<std::uint32_t>(std::ceil(std::sqrt(streams)));
    const std::uint32_t rows = (streams + columns_ - 1) / columns_;
    tile_ = {kGrid.width / columns_, kGrid.height / rows};
    grid_ = draw::Picture({tile_.width * columns_ & ~1U, tile_.height * rows & ~1U}, kGap);
    newest_.resize(streams);
    return begin(path, grid_.size, kRate);
  }

  bool wants(std::uint32_t stream, std::int64_t) override {
    const std::lock_guard lock(mutex_);
    return stream < newest_.size() && !newest_[stream];
  }
  void add(std::uint32_t stream, std::uint64_t, Shot shot) override {
    const std::lock_guard lock(mutex_);
    newest_[stream] = std::move(shot);
  }
  Result<std::uint64_t> finish() override {
    if (const Status ended = end_file(); !ended.ok()) return Error{ended.error()};
    return std::uint64_t{0};  // a grid shows the newest; what it does not show was not left out for want of time
  }

 private:
  void draw_all() override {
    const auto begun = Clock::now();
    const auto period = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / kRate));
    std::uint64_t tick = 0;
    for (bool last = false; !last;) {
      std::vector<std::optional<Shot>> shots(newest_.size());
      {
        std::unique_lock lock(mutex_);
        last = wake_.wait_until(lock, begun + static_cast<std::int64_t>(tick + 1) * period, [this] { return ended_; });
        shots.swap(newest_);
      }
      draw(shots);
      const auto now = static_cast<std::uint64_t>((Clock::now() - begun) / period);
      tick = std::max(tick + 1, now);
      write(tick, grid_);
    }
  }

  void draw(const std::vector<std::optional<Shot>>& shots) {
    for (std::uint32_t i = 0; i < shots.size(); ++i) {
      if (!shots[i]) continue;
      const draw::Picture tile = shots[i]->draw(tile_);
      const std::uint32_t x = i % columns_ * tile_.width + (tile_.width - tile.size.width) / 2,
                          y = i / columns_ * tile_.height + (tile_.height - tile.size.height) / 2;
      draw::paste(grid_, tile, x, y);
    }
  }

  draw::Picture grid_;  // the thread's
  draw::Size tile_;
  std::uint32_t columns_ = 1;
  std::vector<std::optional<Shot>> newest_;  // by stream; empty: drawn, or none yet. It keeps its length
};

}  // namespace

Result<std::unique_ptr<Annotator>> Annotator::open_grid(const std::string& path, std::uint32_t streams) {
  auto grid = std::make_unique<Grid>();
  if (const Status opened = grid->open(path, streams); !opened.ok()) return Error{opened.error()};
  return std::unique_ptr<Annotator>(std::move(grid));
}

}  // namespace leat::tools
