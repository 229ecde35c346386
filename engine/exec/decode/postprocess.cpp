#include "engine/exec/decode/postprocess.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "engine/exec/decode/boxes/boxes.h"
#include "engine/exec/decode/class_names.h"
#include "engine/exec/decode/embedding.h"
#include "engine/exec/decode/heads.h"
#include "engine/exec/decode/lines.h"
#include "engine/exec/decode/map.h"
#include "engine/exec/decode/points.h"
#include "engine/exec/decode/segments.h"
#include "engine/exec/decode/text.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMostOutputs = 16;  // of a model whose answer has a room

const float* row_of(const leat_tensor& tensor, std::uint32_t row, std::size_t* values) noexcept {
  std::size_t each = 1;
  for (std::uint32_t d = 1; d < tensor.rank; ++d) each *= static_cast<std::size_t>(tensor.shape[d]);
  *values = each;
  return static_cast<const float*>(tensor.data) + row * each;
}

float area(const Box& b) noexcept { return (b.x1 - b.x0) * (b.y1 - b.y0); }
float overlap(const Box& a, const Box& b) noexcept {
  const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (w <= 0 || h <= 0) return 0;
  return w * h / (area(a) + area(b) - w * h);
}

// Input pixels to frame pixels, clipped. False: nothing of it is left, or a value is not a number.
bool place(const Placement& p, const FrameView& frame, Box* b) noexcept {
  const float w = static_cast<float>(frame.width), h = static_cast<float>(frame.height);
  b->x0 = std::max(p.offset_x + p.scale_x * b->x0, 0.0f), b->x1 = std::min(p.offset_x + p.scale_x * b->x1, w);
  b->y0 = std::max(p.offset_y + p.scale_y * b->y0, 0.0f), b->y1 = std::min(p.offset_y + p.scale_y * b->y1, h);
  return b->x1 - b->x0 > 0 && b->y1 - b->y0 > 0;
}

std::string shape_text(const leat_tensor& t) {
  std::string out = "[n";
  for (std::uint32_t d = 1; d < t.rank; ++d) out += ", " + std::to_string(t.shape[d]);
  return out + "]";
}

// Chances of a head's logits: their sum of exponentials relative to the largest. False: not finite.
bool softmax_sum(const float* logits, std::size_t count, std::size_t* best, float* sum) noexcept {
  *best = static_cast<std::size_t>(std::max_element(logits, logits + count) - logits);
  *sum = 0;
  for (std::size_t i = 0; i < count; ++i) *sum += std::exp(logits[i] - logits[*best]);
  return std::isfinite(*sum);
}

// The score of one of a head's values.
float score_of(float value, Activation act, float largest, float sum) noexcept {
  switch (act) {
    case Activation::softmax:
      return std::exp(value - largest) / sum;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-value));
    case Activation::none:
      break;
  }
  return value;
}

// Puts a head's label where that head has put one before (a batch that is run again), else where there is none yet. A
// byte of `reserved` a label says whose it is, so that two workers never take the same place. Relaxed: these words only
// share out the places among workers. Who reads the labels has them from the worker's report, whose release leatd's
// loop acquires, and from the completion that leatd pushes with a release of its own (docs/internals/transport.md).
void label(leat_detection& d, const leat_label& given) noexcept {
  static_assert(LEAT_MAX_LABELS == sizeof d.reserved);
  const std::atomic_ref owners(d.reserved), count(d.label_count);
  const std::uint32_t mine = given.head + 1;
  std::uint32_t seen = owners.load(std::memory_order_relaxed), place = 0;
  while (place < LEAT_MAX_LABELS) {
    const std::uint32_t owner = seen >> 8 * place & 0xff;
    if (owner == mine ||
        (owner == 0 && owners.compare_exchange_weak(seen, seen | mine << 8 * place, std::memory_order_relaxed)))
      break;
    if (owner != 0) ++place;  // else somebody was faster: look there again
  }
  if (place == LEAT_MAX_LABELS) return;
  d.labels[place] = given;
  std::uint32_t had = count.load(std::memory_order_relaxed);
  while (had <= place && !count.compare_exchange_weak(had, place + 1, std::memory_order_relaxed)) {
  }
}

// The answer has a room of its own, opened with what was parsed.
template <class P, class Spec>
void set_room(PostprocessSpec& to, Spec spec) {
  to.answer = Answer::room;
  to.room = [spec = std::move(spec)](const PostSetting& setting) -> OpenedPost {
    auto opened = P::open(spec, setting);
    if (!opened) return Error{opened.error()};
    return std::unique_ptr<Post>(std::move(*opened));
  };
}

}  // namespace

Result<PostprocessSpec> parse_postprocess(std::string_view line) {
  PostprocessSpec spec;
  SpecLine words("postprocess", line);
  if (words.word("boxes"))
    spec.answer = Answer::boxes;
  else if (words.word("classes"))
    spec.answer = Answer::classes;
  else if (words.word("tensors"))
    spec.answer = Answer::tensors;
  else if (words.word("points"))
    set_room<PointsPost>(spec, PointsPost::parse(words));
  else if (words.word("lines"))
    set_room<LinesPost>(spec, LinesPost::parse(words));
  else if (words.word("heads"))
    set_room<HeadsPost>(spec, HeadsPost::parse(words));
  else if (words.word("segments"))
    set_room<SegmentsPost>(spec, SegmentsPost::parse(words));
  else if (words.word("map"))
    set_room<MapPost>(spec, MapPost::parse(words));
  else if (words.word("text"))
    set_room<TextPost>(spec, TextPost::parse(words));
  else if (words.word("embedding"))
    set_room<EmbeddingPost>(spec, words.word("unit"));
  else
    words.word("checksum");
  if (spec.answer == Answer::room)
    if (auto from = words.text("from")) spec.from = *from;
  if (spec.answer == Answer::boxes) {
    std::optional<std::string> layout = words.text("layout");
    if (!layout && words.has("columns")) layout = "columns";
    if (layout && *layout == "rows")
      spec.layout = BoxLayout::rows;
    else if (layout && *layout != "maps")
      set_room<BoxesPost>(spec, BoxesPost::parse(*layout, words));
  }
  if (spec.answer == Answer::boxes) {
    words.number("stride", 1, 1024, &spec.stride);
    words.number("score", 0, 1, &spec.score_least);
    words.number("overlap", 0, 1, &spec.overlap_most);
  }
  if (spec.answer == Answer::classes) {
    words.whole("top", 1, LEAT_MAX_CLASSES, &spec.top);
    words.choice("act", {"none", "sigmoid", "softmax"}, [&](std::size_t i) { spec.act = static_cast<Activation>(i); });
  }
  if (spec.answer == Answer::tensors) {
    auto tensors = TensorsPost::parse(words);
    if (!tensors) return Error{tensors.error()};
    spec.tensors = std::move(*tensors);
  }
  const auto status = words.finish(
      "boxes [layout= stride= score= overlap=], classes [top= act=], heads, points, map, lines, segments, text, "
      "embedding, "
      "tensors "
      "[names= most=], checksum");
  if (!status) return Error{status.error()};
  return spec;
}

std::uint32_t suppress(std::span<Candidate> candidates, float overlap_most, std::uint32_t most) noexcept {
  // Insertion by index would be stable too; std::stable_sort allocates, so ties are broken by the box itself.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.box.y0 != b.box.y0) return a.box.y0 < b.box.y0;
    return a.box.x0 < b.box.x0;
  });
  std::uint32_t kept = 0;
  for (const Candidate& c : candidates) {
    if (kept == most) break;
    const bool hidden = std::any_of(candidates.begin(), candidates.begin() + kept, [&](const Candidate& k) {
      return k.class_id == c.class_id && overlap(k.box, c.box) > overlap_most;
    });
    if (!hidden) candidates[kept++] = c;
  }
  return kept;
}

Result<Postprocessor> Postprocessor::open(const PostprocessSpec& spec, std::span<const leat_tensor> outputs,
                                          std::span<const std::string> labels, std::uint32_t first_head,
                                          std::uint32_t input_width, std::uint32_t input_height,
                                          std::string_view model) {
  Postprocessor out;
  out.spec_ = spec;
  out.first_head_ = first_head;
  if (outputs.empty()) return Error{"postprocess: the model has no output"};
  std::vector<ItemTensor> items;
  for (const leat_tensor& t : outputs) items.push_back(item_of(t, -1));
  if (!spec.from.empty()) {
    const auto at = std::find_if(items.begin(), items.end(), [&](const ItemTensor& t) { return t.name == spec.from; });
    if (at == items.end() || items.size() > kMostOutputs) {
      std::string all;
      for (const ItemTensor& t : items) all += (all.empty() ? "" : ", ") + std::string(t.name);
      return Error{"postprocess: there is no output '" + spec.from + "' for from=; the model has " + all};
    }
    out.first_ = static_cast<std::size_t>(at - items.begin());
    std::swap(items[0], *at);
  }
  const PostSetting setting{items, input_width, input_height, labels, model};
  if (spec.room) {
    auto opened = spec.room(setting);
    if (!opened) return Error{opened.error()};
    out.room_ = std::move(*opened);
    return out;
  }
  if (spec.answer == Answer::tensors) {
    auto opened = TensorsPost::open(spec.tensors, setting);
    if (!opened) return Error{opened.error()};
    out.tensors_ = opened->get();
    out.room_ = std::move(*opened);
    return out;
  }
  const leat_tensor& first = outputs[0];
  if (spec.answer == Answer::checksum) {
    if (first.dtype == LEAT_U8 && first.rank == 2 && first.shape[1] == 8) return out;
    return Error{"postprocess: checksum needs the executor 'emulated'; write 'boxes' or 'classes' for a model"};
  }
  for (const leat_tensor& t : outputs) {
    if (t.dtype != LEAT_F32) return Error{"postprocess: an output of the model is not float32; export it as float32"};
  }
  std::vector<std::size_t> classes;
  if (spec.answer == Answer::boxes) {
    const bool maps = spec.layout == BoxLayout::maps;
    if (first.rank != (maps ? 4u : 3u) || first.shape[1] < 5) {
      return Error{std::string("postprocess: boxes with layout=") +
                   (maps ? "maps need an output [n, 4 + classes, h, w]" : "rows need an output [n, 4 + classes, m]") +
                   ", and the model's first is " + shape_text(first)};
    }
    classes.push_back(static_cast<std::size_t>(first.shape[1] - 4));
    out.candidates_.resize(static_cast<std::size_t>(first.shape[2] * (maps ? first.shape[3] : 1)));
  } else {
    if (outputs.size() > LEAT_MAX_LABELS)
      return Error{"postprocess: classes can label with at most " + std::to_string(LEAT_MAX_LABELS) +
                   " outputs, and the model has more"};
    for (const leat_tensor& t : outputs) {
      const bool flat = t.rank >= 2 && std::all_of(t.shape + 2, t.shape + t.rank, [](auto side) { return side == 1; });
      if (!flat)
        return Error{"postprocess: classes needs outputs [n, classes], and one of the model's is " + shape_text(t)};
      classes.push_back(static_cast<std::size_t>(t.shape[1]));
    }
  }
  if (!labels.empty() && labels.size() != classes.size()) {
    return Error{"labels: " + std::to_string(labels.size()) + " lists are given for " + std::to_string(classes.size()) +
                 " outputs; write one list of names an output"};
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (auto status = fits(labels[i], classes[i]); !status) return Error{status.error()};
  return out;
}

std::uint32_t Postprocessor::boxes(const leat_tensor& output, std::uint32_t row, const Placement& placement,
                                   const FrameView& frame, leat_result* result) noexcept {
  std::size_t values = 0;
  const float* data = row_of(output, row, &values);
  const bool maps = spec_.layout == BoxLayout::maps;
  const std::size_t cells = candidates_.size(), columns = maps ? static_cast<std::size_t>(output.shape[3]) : cells,
                    classes = values / cells - 4;
  if (values < 5 * cells) return 0;  // not the shape that was announced
  // For maps the classes come first and are logits: compared before the sigmoid, which only the kept ones need.
  const float* scores = maps ? data : data + 4 * cells;
  const float* sides = maps ? data + classes * cells : data;
  const float least = !maps                    ? spec_.score_least
                      : spec_.score_least <= 0 ? -1e30f
                      : spec_.score_least >= 1 ? 1e30f
                                               : std::log(spec_.score_least / (1 - spec_.score_least));
  std::size_t count = 0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c) best = scores[c * cells + cell] > scores[best * cells + cell] ? c : best;
    const float score = scores[best * cells + cell];
    if (!(score >= least)) continue;
    const float a = sides[cell], b = sides[cells + cell], c = sides[2 * cells + cell], d = sides[3 * cells + cell];
    Box box{a - c / 2, b - d / 2, a + c / 2, b + d / 2};
    if (maps) {
      const float x = static_cast<float>(cell % columns) + 0.5f, y = static_cast<float>(cell / columns) + 0.5f;
      box = {(x - a) * spec_.stride, (y - b) * spec_.stride, (x + c) * spec_.stride, (y + d) * spec_.stride};
    }
    if (!place(placement, frame, &box)) continue;
    candidates_[count++] = {box, maps ? 1 / (1 + std::exp(-score)) : std::min(score, 1.0f),
                            static_cast<std::int32_t>(best)};
  }
  const std::uint32_t found = suppress({candidates_.data(), count}, spec_.overlap_most, LEAT_MAX_DETECTIONS * 4);
  const std::uint32_t kept = std::min<std::uint32_t>(found, LEAT_MAX_DETECTIONS);
  for (std::uint32_t i = 0; i < kept; ++i) {
    const Candidate& k = candidates_[i];
    leat_detection& d = result->detections[i];
    d = {};
    d.x0 = k.box.x0, d.y0 = k.box.y0, d.x1 = k.box.x1, d.y1 = k.box.y1;
    d.score = k.score;
    d.class_id = k.class_id;
  }
  result->detection_count = kept;
  result->detections_left_out = found - kept;
  return kept;
}

void Postprocessor::classes(std::span<const leat_tensor> outputs, std::uint32_t row, std::int32_t detection,
                            leat_result* result) noexcept {
  for (std::size_t head = 0; head < outputs.size(); ++head) {
    std::size_t count = 0, best = 0;
    const float* logits = row_of(outputs[head], row, &count);
    float sum = 0;
    if (!softmax_sum(logits, count, &best, &sum)) continue;
    if (detection >= 0) {
      label(result->detections[detection],
            {first_head_ + static_cast<std::uint32_t>(head), static_cast<std::int32_t>(best),
             score_of(logits[best], spec_.act, logits[best], sum)});
      continue;
    }
    // The best `top` by repeated search: top <= 16, and it needs no memory.
    const std::uint32_t most = std::min<std::uint32_t>(spec_.top, static_cast<std::uint32_t>(count));
    const float largest = logits[best];
    for (std::uint32_t k = 0; k < most; ++k) {
      result->classes[k] = {static_cast<std::int32_t>(best), score_of(logits[best], spec_.act, largest, sum)};
      const float last = logits[best];
      std::size_t next = count;
      for (std::size_t i = 0; i < count; ++i) {
        const bool behind = logits[i] < last || (logits[i] == last && i > best);
        if (behind && (next == count || logits[i] > logits[next])) next = i;
      }
      if (next == count) {
        result->class_count = k + 1;
        return;
      }
      best = next;
    }
    result->class_count = most;
    return;
  }
}

std::uint32_t Postprocessor::run(std::span<const leat_tensor> outputs, std::uint32_t row, const Placement& placement,
                                 const FrameView& frame, std::int32_t detection, leat_result* result, leat_part* parts,
                                 const Quad* corners, const Piece& piece) noexcept {
  if (room_) {
    std::array<ItemTensor, kMostOutputs> items;
    const std::size_t count = std::min(outputs.size(), items.size());
    for (std::size_t i = 0; i < count; ++i) items[i] = item_of(outputs[i], static_cast<std::int32_t>(row));
    if (first_ < count) std::swap(items[0], items[first_]);
    result->version = LEAT_RESULT_VERSION;
    if (detection < 0) {
      result->frame_width = frame.width, result->frame_height = frame.height;
      if (result->kind == LEAT_RESULT_NONE) result->kind = LEAT_RESULT_PARTS;
    }
    return room_->run({items.data(), count}, {placement, frame, detection, result, corners, parts, piece});
  }
  if (detection >= 0) {
    if (spec_.answer == Answer::classes) classes(outputs, row, detection, result);
    return 0;
  }
  result->version = LEAT_RESULT_VERSION;
  result->detection_count = result->detections_left_out = result->class_count = 0;
  result->frame_width = frame.width, result->frame_height = frame.height;
  result->checksum = 0;
  switch (spec_.answer) {
    case Answer::boxes:
      result->kind = LEAT_RESULT_DETECTIONS;
      return boxes(outputs[0], row, placement, frame, result);
    case Answer::classes:
      result->kind = LEAT_RESULT_CLASSES;
      classes(outputs, row, -1, result);
      return 0;
    case Answer::tensors:
    case Answer::room:  // answered above
      return 0;
    case Answer::checksum:
      result->kind = LEAT_RESULT_CHECKSUM;
      std::memcpy(&result->checksum, static_cast<const std::byte*>(outputs[0].data) + std::size_t{row} * 8, 8);
      return 0;
  }
  return 0;
}

}  // namespace leat::exec
