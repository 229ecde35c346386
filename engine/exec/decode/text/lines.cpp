#include "engine/exec/decode/text/lines.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/decode/activation.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMaxFound = 1000;  // regions that are kept of one map

}  // namespace

LinesSpec LinesPost::parse(SpecLine& words) {
  LinesSpec s;
  words.number("threshold", 0, 1, &s.threshold);
  words.number("score", 0, 1, &s.score_min);
  words.number("grow", 0, 10, &s.grow);
  words.number("side", 0, 1000, &s.side);
  words.choice("act", {"none", "sigmoid"}, [&](std::size_t i) { s.sigmoid = i == 1; });
  return s;
}

Result<std::unique_ptr<LinesPost>> LinesPost::open(const LinesSpec& spec, const PostSetting& setting) {
  const ItemTensor& t = setting.outputs[0];
  const bool map = t.rank == 2 || (t.rank == 3 && (t.shape[0] == 1 || t.shape[0] < 0));
  if (!map || t.last() == 1)
    return Error{"postprocess: lines needs a map of probabilities [1, h, w], and the model's first output is " +
                 t.text()};
  std::size_t cells = t.count();
  std::size_t rows = cells != 0 ? static_cast<std::size_t>(t.shape[t.rank - 2]) : setting.input_height;
  if (cells == 0) cells = std::size_t{setting.input_width} * setting.input_height;
  if (cells == 0)
    return Error{
        "postprocess: lines needs to know how large its map can become; write size= or longest= in preprocess"};
  auto out = std::make_unique<LinesPost>();
  out->spec_ = spec;
  out->input_width_ = static_cast<float>(setting.input_width);
  out->input_height_ = static_cast<float>(setting.input_height);
  if (t.dtype != LEAT_F32 || spec.sigmoid) out->scratch_.resize(cells);
  out->seen_.resize(cells), out->waiting_.resize(cells);
  out->leftmost_.resize(rows), out->rightmost_.resize(rows);
  out->edge_.resize(2 * rows), out->hull_.resize(4 * rows + 1);
  out->found_.resize(kMaxFound);
  out->part_ = {.kind = LEAT_PART_oriented, .rank = 1, .dims = {LEAT_MAX_DETECTIONS}};
  out->part_.bytes = LEAT_MAX_DETECTIONS * sizeof(leat_oriented_box), out->part_.name = "lines";
  return out;
}

// False: the map is larger than what was announced.
bool LinesPost::map_of(const ItemTensor& t, const PostTarget& target, Map* out) noexcept {
  if (t.rank < 2 || t.count() == 0 || t.count() > seen_.size()) return false;
  out->width = static_cast<std::uint32_t>(t.last());
  out->height = static_cast<std::uint32_t>(t.shape[t.rank - 2]);
  if (out->height > leftmost_.size() || std::size_t{out->width} * out->height != t.count()) return false;
  out->cells = static_cast<const float*>(t.data);
  if (t.dtype != LEAT_F32 || spec_.sigmoid) {
    for (std::size_t i = 0; i < t.count(); ++i) scratch_[i] = spec_.sigmoid ? sigmoid(t.at(i)) : t.at(i);
    out->cells = scratch_.data();
  }
  const Placement& p = target.placement;
  const float width = p.input_width > 0 ? p.input_width : input_width_,
              height = p.input_height > 0 ? p.input_height : input_height_;
  out->x0 = p.offset_x, out->y0 = p.offset_y;
  out->across = p.scale_x * width / static_cast<float>(out->width);
  out->down = p.scale_y * height / static_cast<float>(out->height);
  return true;
}

// The region that cell `first` is the topmost of, and its rectangle if that is good.
void LinesPost::take_region(const Map& map, std::uint32_t first) noexcept {
  const std::uint32_t w = map.width, top = first / w;
  std::uint32_t bottom = top;
  std::size_t waiting = 0;
  const auto reach = [&](std::uint32_t x, std::uint32_t y) {
    const std::uint32_t cell = y * w + x;
    if (seen_[cell] != 0 || !(map.cells[cell] > spec_.threshold)) return;
    seen_[cell] = 1;
    waiting_[waiting++] = cell;
    if (y > bottom) bottom = y, leftmost_[y] = rightmost_[y] = x;
    leftmost_[y] = std::min(leftmost_[y], x), rightmost_[y] = std::max(rightmost_[y], x);
  };
  leftmost_[top] = rightmost_[top] = first % w;
  reach(first % w, top);
  while (waiting > 0) {
    const std::uint32_t cell = waiting_[--waiting], x = cell % w, y = cell / w;
    // A row further down is reached from the one above it alone, so that `bottom` grows by one at a time.
    for (std::uint32_t v = y == 0 ? 0 : y - 1; v <= std::min(y + 1, map.height - 1); ++v)
      for (std::uint32_t u = x == 0 ? 0 : x - 1; u <= std::min(x + 1, w - 1); ++u) reach(u, v);
  }
  if (found_count_ == found_.size()) return;
  // The hull of a region is that of each row's first and last cell.
  std::size_t edge = 0;
  for (std::uint32_t y = top; y <= bottom; ++y) {
    edge_[edge++] = map.centre(leftmost_[y], y);
    if (rightmost_[y] != leftmost_[y]) edge_[edge++] = map.centre(rightmost_[y], y);
  }
  const std::size_t corners = convex_hull({edge_.data(), edge}, hull_);
  leat_oriented_box box = smallest_rectangle({hull_.data(), corners});
  const float cell = std::sqrt(map.across * map.down);
  if (!(std::min(box.width, box.height) >= spec_.side * cell)) return;
  box.score = mean_within(map, box);
  if (!(box.score >= spec_.score_min) || !std::isfinite(box.score)) return;
  const float d = box.width * box.height * spec_.grow / (2 * (box.width + box.height));
  box.width += 2 * d, box.height += 2 * d;
  if (!(std::min(box.width, box.height) >= (spec_.side + 2) * cell)) return;
  found_[found_count_++] = box;
}

float LinesPost::mean_within(const Map& map, const leat_oriented_box& b) const noexcept {
  const float c = std::cos(b.angle), s = std::sin(b.angle), slack = 1e-3f * (map.across + map.down);
  const float half_w = b.width / 2 + slack, half_h = b.height / 2 + slack;
  const float reach = std::abs(s) * half_w + std::abs(c) * half_h;
  const auto row_at = [&](float y) { return (y - map.y0) / map.down - 0.5f; };
  const auto last = static_cast<float>(map.height - 1), right = static_cast<float>(map.width - 1);
  double sum = 0;
  std::size_t count = 0;
  const auto from = static_cast<std::uint32_t>(std::clamp(std::ceil(row_at(b.cy - reach)), 0.0f, last));
  const auto to = static_cast<std::uint32_t>(std::clamp(std::floor(row_at(b.cy + reach)), 0.0f, last));
  for (std::uint32_t y = from; y <= to; ++y) {
    // Along the row both |c dx + s dy| <= half_w and |c dy - s dx| <= half_h hold in an interval of dx.
    const float dy = map.centre(0, y).y - b.cy;
    float low = -1e30f, high = 1e30f;
    const auto narrow = [&](float slope, float constant, float max) {  // |slope dx + constant| <= max
      if (std::abs(slope) < 1e-6f) {
        if (std::abs(constant) > max) high = -1e30f;
        return;
      }
      const float a = (-max - constant) / slope, z = (max - constant) / slope;
      low = std::max(low, std::min(a, z)), high = std::min(high, std::max(a, z));
    };
    narrow(c, s * dy, half_w);
    narrow(-s, c * dy, half_h);
    if (!(low <= high)) continue;
    const float first = std::ceil((b.cx + low - map.x0) / map.across - 0.5f),
                final = std::floor((b.cx + high - map.x0) / map.across - 0.5f);
    if (!(first <= right) || !(final >= 0)) continue;
    const auto x1 = static_cast<std::uint32_t>(std::min(final, right));
    for (auto x = static_cast<std::uint32_t>(std::max(first, 0.0f)); x <= x1; ++x)
      sum += map.cells[std::size_t{y} * map.width + x], ++count;
  }
  return count == 0 ? 0 : static_cast<float>(sum / static_cast<double>(count));
}

Answered LinesPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  leat_result* const result = target.result;
  result->kind = LEAT_RESULT_DETECTIONS;
  result->detection_count = result->detections_left_out = 0;
  found_count_ = 0;
  Map map;
  bool finite = true;
  if (map_of(outputs[0], target, &map)) {
    const std::uint32_t cells = map.width * map.height;
    finite = std::all_of(map.cells, map.cells + cells, [](float v) { return std::isfinite(v); });
    std::fill_n(seen_.begin(), cells, std::uint8_t{0});
    for (std::uint32_t i = 0; i < cells; ++i)
      if (seen_[i] == 0 && map.cells[i] > spec_.threshold) take_region(map, i);
  }
  const auto end = found_.begin() + static_cast<std::ptrdiff_t>(found_count_);
  std::sort(found_.begin(), end, [](const leat_oriented_box& a, const leat_oriented_box& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.cy != b.cy ? a.cy < b.cy : a.cx < b.cx;
  });
  auto* const rows = target.parts != nullptr
                         ? reinterpret_cast<leat_oriented_box*>(place_of(result, *target.parts, part_, 0).array)
                         : nullptr;
  const float w = static_cast<float>(target.frame.width), h = static_cast<float>(target.frame.height);
  std::uint32_t kept = 0;
  for (std::size_t i = 0; i < found_count_; ++i) {
    const Quad q = corners_of(found_[i]);
    const auto [x0, x1] = std::minmax({q[0].x, q[1].x, q[2].x, q[3].x});
    const auto [y0, y1] = std::minmax({q[0].y, q[1].y, q[2].y, q[3].y});
    leat_detection d{};
    d.x0 = std::max(x0, 0.0f), d.y0 = std::max(y0, 0.0f), d.x1 = std::min(x1, w), d.y1 = std::min(y1, h);
    if (!(d.x1 > d.x0) || !(d.y1 > d.y0)) continue;
    if (kept == LEAT_MAX_DETECTIONS) {
      ++result->detections_left_out;
      continue;
    }
    d.score = std::min(found_[i].score, 1.0f);
    result->detections[kept] = d;
    if (rows != nullptr) rows[kept] = found_[i];
    ++kept;
  }
  result->detection_count = kept;
  if (rows != nullptr) wrote(*target.parts, kept, kept * sizeof(leat_oriented_box));
  return {kept, numbers_of(finite, kept != 0)};
}

}  // namespace leat::exec
