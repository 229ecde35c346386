#include "engine/exec/decode/segments.h"

#include <algorithm>
#include <cmath>

#include "engine/exec/picture/preprocess.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kMaxSegments = 200;

bool channels_last(const ItemTensor& t, std::int64_t channels) { return t.rank == 3 && t.last() == channels; }

}  // namespace

SegmentsSpec SegmentsPost::parse(SpecLine& words) {
  SegmentsSpec s;
  words.number("score", 0, 1, &s.score_min);
  words.number("length", 0, 10000, &s.length_min);
  return s;
}

Result<std::unique_ptr<SegmentsPost>> SegmentsPost::open(const SegmentsSpec& spec, const PostSetting& setting) {
  auto out = std::make_unique<SegmentsPost>();
  out->spec_ = spec;
  out->displacements_ = out->scores_ = UINT32_MAX;
  for (std::uint32_t i = 0; i < setting.outputs.size(); ++i) {
    if (channels_last(setting.outputs[i], 4)) out->displacements_ = std::min(out->displacements_, i);
    if (channels_last(setting.outputs[i], 1)) out->scores_ = std::min(out->scores_, i);
  }
  if (std::max(out->displacements_, out->scores_) == UINT32_MAX || setting.outputs[out->scores_].count() == 0 ||
      setting.outputs[out->displacements_].count() != 4 * setting.outputs[out->scores_].count())
    return Error{"postprocess: segments needs outputs [h, w, 4] and [h, w, 1] of one size, and the model's first is " +
                 setting.outputs[0].text()};
  const ItemTensor& scores = setting.outputs[out->scores_];
  out->height_ = static_cast<std::uint32_t>(scores.shape[0]), out->width_ = static_cast<std::uint32_t>(scores.shape[1]);
  out->across_ = static_cast<float>(setting.input_width) / static_cast<float>(out->width_);
  out->down_ = static_cast<float>(setting.input_height) / static_cast<float>(out->height_);
  out->found_.resize(scores.count());
  out->part_ = {.kind = LEAT_PART_keypoints, .rank = 2, .dims = {kMaxSegments, 2}};
  out->part_.bytes = std::uint64_t{kMaxSegments} * 2 * sizeof(leat_keypoint), out->part_.name = "segments";
  return out;
}

Answered SegmentsPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return {};
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  auto* const to = reinterpret_cast<leat_keypoint*>(place_of(target.result, *target.parts, part_, row).array);
  const ItemTensor &scores = outputs[scores_], &d = outputs[displacements_];
  if (to == nullptr || scores.count() > found_.size() || d.count() != 4 * scores.count()) return {};
  std::size_t count = 0;
  bool finite = true;
  for (std::uint32_t cell = 0; cell < scores.count(); ++cell) {
    const float score = scores.at(cell);
    if (score <= spec_.score_min) continue;
    const std::size_t at = 4 * std::size_t{cell};
    const float length = std::hypot(d.at(at + 2) - d.at(at), d.at(at + 3) - d.at(at + 1));
    if (!std::isfinite(score + length))
      finite = false;
    else if (length > spec_.length_min)
      found_[count++] = {score, cell};
  }
  std::sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Found& a, const Found& b) { return a.score != b.score ? a.score > b.score : a.cell < b.cell; });
  const auto kept = static_cast<std::uint32_t>(std::min<std::size_t>(count, kMaxSegments));
  const Placement& p = target.placement;
  for (std::uint32_t i = 0; i < kept; ++i) {
    const std::size_t at = 4 * std::size_t{found_[i].cell};
    const auto x = static_cast<float>(found_[i].cell % width_), y = static_cast<float>(found_[i].cell / width_);
    for (std::uint32_t end = 0; end < 2; ++end)
      to[2 * i + end] = {p.offset_x + p.scale_x * across_ * (x + d.at(at + 2 * end)),
                         p.offset_y + p.scale_y * down_ * (y + d.at(at + 2 * end + 1)), found_[i].score};
  }
  // Behind a detector every crop has a row of one length: what is not filled has the score 0.
  if (target.parts->item == LEAT_ITEM_EACH) std::fill_n(to + 2 * kept, 2 * (kMaxSegments - kept), leat_keypoint{});
  wrote(*target.parts, kept, std::uint64_t{kept} * 2 * sizeof(leat_keypoint));
  return {.numbers = numbers_of(finite, kept != 0)};
}

}  // namespace leat::exec
