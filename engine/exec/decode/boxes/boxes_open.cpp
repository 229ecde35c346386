#include <algorithm>

#include "engine/exec/decode/boxes/boxes.h"
#include "engine/exec/decode/class_names.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kFiveStrides[] = {8, 16, 32, 64, 128};
constexpr std::size_t kMaxRowsFound = 1000;  // of an output whose rows are known only after a run

Status no(const std::string& what) { return Error{"postprocess: boxes " + what}; }
std::string all_of_them(const PostSetting& s) {
  std::string out;
  for (const ItemTensor& t : s.outputs) out += (out.empty() ? "" : ", ") + std::string(t.name) + " " + t.text();
  return out;
}

}  // namespace

BoxesSpec BoxesPost::parse(const std::string& layout, SpecLine& words) {
  BoxesSpec s;
  constexpr std::pair<std::string_view, BoxesLayout> kLayouts[] = {
      {"yolo8", BoxesLayout::yolo8},   {"yolo5", BoxesLayout::yolo5},     {"yolox", BoxesLayout::yolox},
      {"split", BoxesLayout::split},   {"columns", BoxesLayout::columns}, {"query", BoxesLayout::query},
      {"levels", BoxesLayout::levels}, {"priors", BoxesLayout::priors},   {"dfl", BoxesLayout::dfl}};
  const auto found =
      std::find_if(std::begin(kLayouts), std::end(kLayouts), [&](const auto& l) { return l.first == layout; });
  if (found == std::end(kLayouts)) {
    words.fail("layout=" + layout +
               " is not known; write maps, rows, yolo8, yolo5, yolox, split, query, levels, dfl, priors, or columns=");
    return s;
  }
  s.layout = found->second;
  if (const auto columns = words.text("columns")) {
    for (std::size_t at = 0; at <= columns->size();) {
      const std::size_t comma = std::min(columns->find(',', at), columns->size());
      s.columns.push_back(columns->substr(at, comma - at));
      at = comma + 1;
    }
  }
  const bool done =
      s.layout == BoxesLayout::columns || s.layout == BoxesLayout::split || s.layout == BoxesLayout::query;
  if (done) s.overlap_most = 1;
  if (s.layout == BoxesLayout::query) s.unit_one = true, s.order = BoxOrder::cxcywh;
  if (s.layout == BoxesLayout::priors) {
    bool said = false;
    words.choice("set", {"retinaface", "retinanet", "blazeface", "ultraface", "palm", "person"},
                 [&](std::size_t i) { s.set = static_cast<PriorSet>(i), said = true; });
    if (!said) words.fail(std::string("layout=priors needs set= one of ") + kPriorSets);
    if (s.set == PriorSet::retinaface || s.set == PriorSet::ultraface) s.first = 1;
    if (s.set == PriorSet::blazeface || s.set == PriorSet::palm || s.set == PriorSet::person)
      s.act = Activation::sigmoid;
  }
  words.choice("unit", {"px", "one"}, [&](std::size_t i) { s.unit_one = i == 1; });
  words.choice("order", {"xyxy", "yxyx", "cxcywh"}, [&](std::size_t i) { s.order = static_cast<BoxOrder>(i); });
  words.choice("act", {"none", "sigmoid", "softmax"}, [&](std::size_t i) { s.act = static_cast<Activation>(i); });
  words.choice("extra", {"angle", "points", "mask"}, [&](std::size_t i) { s.angle = i == 0, s.mask = i == 2; });
  if (s.layout == BoxesLayout::dfl) {
    words.whole("bins", 2, 32, &s.bins);
    words.number("centre", 0, 1, &s.centre);
  }
  words.whole("first", 0, 1, &s.first);
  words.whole("points", 1, 200, &s.points);
  words.number("score", 0, 1, &s.score_least);
  words.number("overlap", 0, 1, &s.overlap_most);
  return s;
}

Status BoxesPost::resolve_levels(const PostSetting& setting) {
  const auto named = [&](const std::string& name) {
    for (std::uint32_t i = 0; i < setting.outputs.size(); ++i)
      if (setting.outputs[i].name == name) return i;
    return UINT32_MAX;
  };
  yunet_ = named("cls_8") != UINT32_MAX;
  // Scores, boxes and maybe points of three strides with two anchors a cell, or of five with one.
  const auto n = static_cast<std::uint32_t>(setting.outputs.size());
  const std::uint32_t strides = n == 10 || n == 15 ? 5 : 3;
  if (!yunet_ && n != 2 * strides && n != 3 * strides)
    return no(
        "layout=levels needs cls_8 .. kps_32, or scores, boxes and points of three or five strides; the model has " +
        all_of_them(setting));
  for (std::uint32_t l = 0; l < (yunet_ ? 3 : strides); ++l) {
    Level level{.scores = l,
                .objects = l,
                .boxes = strides + l,
                .points = n == 3 * strides ? 2 * strides + l : UINT32_MAX,
                .stride = kFiveStrides[l]};
    if (yunet_) {
      const std::string end = "_" + std::to_string(level.stride);
      level.scores = named("cls" + end), level.objects = named("obj" + end), level.boxes = named("bbox" + end);
      level.points = named("kps" + end);
      if (std::max({level.scores, level.objects, level.boxes}) == UINT32_MAX)
        return no("layout=levels: an output of stride " + std::to_string(level.stride) + " is missing");
    }
    const auto side = [&](std::uint32_t whole) { return (whole + level.stride - 1) / level.stride; };
    level.columns = side(setting.input_width);
    const std::size_t cells = std::size_t{level.columns} * side(setting.input_height);
    const std::size_t rows = setting.outputs[level.scores].count();
    if (cells == 0 || rows % cells != 0 || setting.outputs[level.boxes].count() != 4 * rows)
      return no("layout=levels contradicts the shapes " + all_of_them(setting));
    level.anchors = static_cast<std::uint32_t>(rows / cells);
    if (level.points != UINT32_MAX)
      spec_.points = static_cast<std::uint32_t>(setting.outputs[level.points].count() / rows / 2);
    levels_.push_back(level);
  }
  return Done{};
}

Status BoxesPost::resolve(const PostSetting& setting) {
  const ItemTensor& t = setting.outputs[0];
  if (spec_.mask) {
    if (spec_.layout != BoxesLayout::yolo8 && spec_.layout != BoxesLayout::yolo5 &&
        spec_.layout != BoxesLayout::columns)
      return no("extra=mask suits layout=yolo8, layout=yolo5 and columns=");
    auto masks = Masks::open(setting.outputs, 0);
    if (!masks.ok()) return no(masks.error() + "; the model has " + all_of_them(setting));
    masks_ = std::move(*masks);
  }
  const auto classes = static_cast<std::int64_t>(rows_behind());
  switch (spec_.layout) {
    case BoxesLayout::yolo8:
      if (t.rank != 2 || t.shape[0] < 5 + classes || t.shape[1] < t.shape[0])
        return no("layout=yolo8 needs an output [4 + C, m] with more columns than rows, and the first is " + t.text());
      classes_ = static_cast<std::size_t>(t.shape[0] - 4 - classes);
      return Done{};
    case BoxesLayout::yolo5:
    case BoxesLayout::yolox: {
      if (t.rank != 2 || t.shape[1] < 6 || t.shape[0] < t.shape[1])
        return no("layout=yolo5 and yolox need an output [m, 5 + C] with more rows than columns, and the first is " +
                  t.text());
      std::int64_t cells = 0;
      for (const auto s : std::span(kFiveStrides).first(3))
        cells += std::int64_t{setting.input_width / s} * (setting.input_height / s);
      if (spec_.layout == BoxesLayout::yolox && t.shape[0] != cells)
        return no("layout=yolox: " + std::to_string(cells) + " cells in strides 8, 16, 32, and the output is " +
                  t.text());
      if (t.shape[1] < static_cast<std::int64_t>(6 + columns_behind()))
        return no("layout=yolo5 with points= or extra= needs " + std::to_string(6 + columns_behind()) +
                  " columns at least, and the output is " + t.text());
      classes_ = static_cast<std::size_t>(t.shape[1]) - 5 - columns_behind();
      return Done{};
    }
    case BoxesLayout::columns: {
      const auto columns =
          static_cast<std::int64_t>(spec_.columns.size() + 3 * spec_.points + (masks_ ? masks_->coefficients() : 0));
      if (t.rank != 2 || t.shape[1] < columns)
        return no("columns=, points= and extra= need " + std::to_string(columns) + " columns, and the output is " +
                  t.text());
      const auto has = [&](const char* c) {
        return std::find(spec_.columns.begin(), spec_.columns.end(), c) != spec_.columns.end();
      };
      if (!has("s") ||
          !((has("x0") && has("y0") && has("x1") && has("y1")) || (has("cx") && has("cy") && has("w") && has("h"))))
        return no("columns= needs s and x0, y0, x1, y1 or cx, cy, w, h; known: b x0 y0 x1 y1 cx cy w h s c a -");
      return Done{};
    }
    case BoxesLayout::split:
      boxes_ = scores_ = UINT32_MAX;
      for (std::uint32_t i = 0; i < setting.outputs.size(); ++i) {
        const ItemTensor& o = setting.outputs[i];
        const auto says = [&](const char* word) { return o.name.find(word) != std::string_view::npos; };
        if (says("raw_")) continue;
        if (says("num") || says("count")) {
          count_ = i;
        } else if (o.rank >= 2 && o.last() == 4) {
          boxes_ = i;
        } else if (o.rank == 2 && o.last() == 5) {  // boxes with their score
          boxes_ = scores_ = i;
        } else if (says("label") || says("class") || o.dtype == LEAT_I64 || o.dtype == LEAT_I32) {
          labels_ = i;
        } else if (o.rank <= 2) {
          scores_ = i;
        }
      }
      if (boxes_ == UINT32_MAX || scores_ == UINT32_MAX)
        return no("layout=split needs boxes [k, 4] and scores [k]; the model has " + all_of_them(setting));
      return Done{};
    case BoxesLayout::query: {
      boxes_ = scores_ = UINT32_MAX;
      if (setting.outputs.size() == 1 && t.rank == 2 && t.last() > 4) {
        boxes_ = scores_ = 0;
        classes_ = static_cast<std::size_t>(t.last() - 4);
        return Done{};
      }
      // Three classes and "nothing" make scores as wide as boxes: the name decides before the width.
      const auto of_boxes = [&](const ItemTensor& o, bool by_name) {
        const bool named = o.name.find("box") != std::string_view::npos || o.name == "dets";
        return o.rank == 2 && o.last() == 4 && (named || !by_name);
      };
      for (const bool by_name : {true, false})
        for (std::uint32_t i = 0; i < setting.outputs.size() && boxes_ == UINT32_MAX; ++i)
          if (of_boxes(setting.outputs[i], by_name)) boxes_ = i;
      for (std::uint32_t i = 0; i < setting.outputs.size() && scores_ == UINT32_MAX; ++i)
        if (setting.outputs[i].rank == 2 && i != boxes_) scores_ = i;
      if (boxes_ == UINT32_MAX || scores_ == UINT32_MAX ||
          setting.outputs[boxes_].shape[0] != setting.outputs[scores_].shape[0])
        return no("layout=query needs boxes [k, 4] and scores [k, C], or [k, 4 + C]; the model has " +
                  all_of_them(setting));
      classes_ = static_cast<std::size_t>(setting.outputs[scores_].last());
      classes_ -= std::min<std::size_t>(classes_, spec_.act == Activation::softmax ? 1 : spec_.first);
      return Done{};
    }
    case BoxesLayout::levels:
      return resolve_levels(setting);
    case BoxesLayout::dfl:
      return resolve_dfl(setting);
    case BoxesLayout::priors: {
      auto priors = Priors::open(spec_.set, setting);
      if (!priors.ok()) return no(priors.error());
      priors_ = std::move(*priors);
      spec_.points = priors_->points();
      if (priors_->classes() <= spec_.first)
        return no("layout=priors: first=" + std::to_string(spec_.first) + " leaves no class; write first=0");
      classes_ = priors_->classes() - spec_.first;
      return Done{};
    }
  }
  return Done{};
}

Result<std::unique_ptr<BoxesPost>> BoxesPost::open(const BoxesSpec& spec, const PostSetting& setting) {
  auto out = std::make_unique<BoxesPost>();
  out->spec_ = spec;
  out->width_ = static_cast<float>(setting.input_width), out->height_ = static_cast<float>(setting.input_height);
  if (auto status = out->resolve(setting); !status) return Error{status.error()};
  if (out->classes_ != 0 && !setting.labels.empty())
    if (auto status = fits(setting.labels[0], out->classes_); !status) return Error{status.error()};
  std::size_t most = 0;
  for (const ItemTensor& t : setting.outputs) most = std::max(most, t.count());
  out->found_.resize(std::max(most, kMaxRowsFound));
  const bool angle = spec.angle || std::find(spec.columns.begin(), spec.columns.end(), "a") != spec.columns.end();
  out->spec_.angle = angle;
  if (angle) {
    PartSpec part{.kind = LEAT_PART_oriented, .rank = 1, .bytes = LEAT_MAX_DETECTIONS * sizeof(leat_oriented_box)};
    part.dims[0] = LEAT_MAX_DETECTIONS, part.name = "boxes";
    out->parts_.push_back(part);
  }
  if (out->spec_.points != 0) {
    PartSpec part{.kind = LEAT_PART_keypoints, .rank = 2};
    part.dims[0] = LEAT_MAX_DETECTIONS, part.dims[1] = out->spec_.points;
    part.bytes = std::uint64_t{LEAT_MAX_DETECTIONS} * out->spec_.points * sizeof(leat_keypoint), part.name = "points";
    out->parts_.push_back(part);
  }
  if (out->masks_) out->parts_.push_back(out->masks_->part());
  return out;
}

}  // namespace leat::exec
