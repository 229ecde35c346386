#include "engine/exec/decode/text/text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/exec/decode/activation.h"
#include "engine/exec/decode/classes/class_names.h"
#include "engine/exec/model_files/pinned_models.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/recognise/facts.h"
#include "engine/exec/spec_line.h"

namespace leat::exec {
namespace {

constexpr std::size_t kMaxTextBytes = 1024;  // of one line
constexpr std::size_t kMinSteps = 1024;      // that there is room for, where only a run tells how many there are

}  // namespace

TextSpec TextPost::parse(SpecLine& words) {
  TextSpec s;
  if (words.word("slots"))
    s.slots = true;
  else if (!words.word("ctc"))
    words.fail("text needs ctc or slots behind it");
  if (auto keys = words.text("keys"))
    s.keys = *keys;
  else
    words.fail(
        "text needs keys=FILE, a file with one character a line in the order of the model's classes, or keys=model");
  if (auto none = words.text("none")) s.none = *none;
  if (s.slots) return s;
  words.choice("blank", {"first", "last"}, [&](std::size_t i) { s.blank_last = i == 1; });
  words.choice("axis", {"tc", "ct"}, [&](std::size_t i) { s.classes_first = i == 1; });
  return s;
}

// The characters in the order of the model's classes, of a file or of the model's own metadata.
Result<std::vector<std::string>> TextPost::keys_of(const std::string& name, std::string_view model) {
  const auto trouble = [&](const std::string& what) { return Error{"postprocess: keys=" + name + ": " + what}; };
  std::vector<std::string> out;
  const auto take = [&](std::istream& lines) {
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      out.push_back(line);
    }
  };
  if (name == "model") {
    const auto facts = read_facts(std::string(model));
    if (!facts.ok()) return trouble(facts.error());
    std::istringstream lines(facts->meta("character"));
    take(lines);
    if (out.empty()) return trouble("the model's metadata has no 'character'; name a file with one character a line");
    return out;
  }
  const std::string path = (std::filesystem::path(model).parent_path() / name).string();
  std::ifstream file(pinned_path(path), std::ios::binary);
  if (!file)
    return trouble("there is no " + path +
                   " to read; name a file with one character a line, by its path or relative to the model's folder");
  if (!path.ends_with(".yml") && !path.ends_with(".yaml")) return take(file), out;
  auto keys = names_in_file(path);
  if (!keys.ok()) return trouble(keys.error());
  return std::vector<std::string>(keys->begin(), keys->end());
}

Result<std::unique_ptr<TextPost>> TextPost::open(const TextSpec& spec, const PostSetting& setting) {
  auto out = std::make_unique<TextPost>();
  out->spec_ = spec;
  const auto keys = keys_of(spec.keys, setting.model);
  if (!keys.ok()) return Error{keys.error()};
  if (!spec.slots && !spec.blank_last) out->classes_.emplace_back();
  out->classes_.insert(out->classes_.end(), keys->begin(), keys->end());
  const ItemTensor& t = setting.outputs[0];
  const auto have = static_cast<std::int64_t>(keys->size() + (spec.slots ? 0 : 1));
  const bool line = t.rank <= 2 || (t.rank == 3 && t.shape[1] == 1);  // [T, 1, V]: the batch stands in the middle
  const std::int64_t classes = spec.slots && t.rank == 1           ? have
                               : spec.classes_first && t.rank == 2 ? t.shape[0]
                                                                   : t.last();
  if (!spec.slots && classes == have + 1) out->classes_.emplace_back(" ");
  if (spec.blank_last) out->classes_.emplace_back();
  if (classes != static_cast<std::int64_t>(out->classes_.size()) || !line || t.rank < 1 ||
      t.count() % static_cast<std::size_t>(std::max<std::int64_t>(1, classes)) != 0)
    return Error{"postprocess: keys=" + spec.keys + " has " + std::to_string(have - (spec.slots ? 0 : 1)) +
                 " lines, and the model's output is " + t.text() +
                 "; ctc needs as many classes, one for blank, and one more for a space or none"};
  out->part_ = {.kind = LEAT_PART_text, .rank = 1, .dims = {1}, .bytes = sizeof(leat_text), .tail = kMaxTextBytes};
  out->part_.name = "text";
  const std::size_t known = t.count() / out->classes_.size();
  const std::size_t steps = known != 0 ? known : std::max<std::size_t>(setting.input_width, kMinSteps);
  out->piece_.resize(steps);
  out->line_.resize(kMaxPieces * steps);
  return out;
}

// The best class of every step. A step that has none, because its scores are not finite, leaves the line unread.
void TextPost::read(const ItemTensor& t) noexcept {
  const std::size_t classes = classes_.size(), steps = std::min(t.count() / classes, piece_.size());
  for (std::size_t step = 0; step < steps; ++step) {
    const auto value = [&](std::size_t c) {
      return t.at(spec_.classes_first ? c * (t.count() / classes) + step : step * classes + c);
    };
    const Largest best = largest_of(0, classes, value);
    piece_[step] = {static_cast<std::uint32_t>(best.place), best.value};
    finite_ = finite_ && std::isfinite(best.value);
  }
  piece_steps_ = steps;
}

Answered TextPost::run(std::span<const ItemTensor> outputs, const PostTarget& target) noexcept {
  if (target.parts == nullptr) return {};
  const auto row = static_cast<std::uint32_t>(std::max(target.detection, 0));
  const PartPlace place = place_of(target.result, *target.parts, part_, row);
  if (place.array == nullptr) return {};
  const Piece& piece = target.piece;
  if (piece.index == 0) finite_ = true;
  read(outputs[0]);
  if (piece.index == 0) {
    line_steps_ = 0;
    columns_per_step_ =
        std::max(1e-3f, target.placement.input_width / static_cast<float>(std::max<std::size_t>(1, piece_steps_)));
  }
  const auto at = static_cast<std::size_t>(std::nearbyint(piece.start / columns_per_step_));
  line_steps_ = join_steps(line_, line_steps_, std::span(piece_).first(piece_steps_), at);
  if (piece.index + 1 != piece.count) return {};
  if (!finite_) line_steps_ = 0;
  write(target, place);
  return {.numbers = numbers_of(finite_, false)};
}

void TextPost::write(const PostTarget& target, const PartPlace& place) const noexcept {
  leat_text line{};
  float sum = 0;
  std::uint32_t kept = 0;
  const std::size_t blank = spec_.blank_last ? classes_.size() - 1 : 0;
  std::size_t before = blank;
  for (const CtcStep& step : std::span(line_).first(line_steps_)) {
    const std::string& text = classes_[step.best];
    const bool taken = spec_.slots ? text != spec_.none : step.best != blank && step.best != before;
    before = step.best;
    if (!taken) continue;
    sum += step.score, ++kept;
    if (line.length + text.size() > kMaxTextBytes) continue;
    std::memcpy(place.tail + line.length, text.data(), text.size());
    line.length += static_cast<std::uint32_t>(text.size());
  }
  line.score = kept != 0 ? sum / static_cast<float>(kept) : 0;
  line.offset = place.tail_offset;
  float x0 = 0, y0 = 0, x1 = static_cast<float>(target.frame.width), y1 = static_cast<float>(target.frame.height);
  if (target.detection >= 0) {
    const leat_detection& d = target.result->detections[target.detection];
    x0 = d.x0, y0 = d.y0, x1 = d.x1, y1 = d.y1;
  }
  const Quad quad = target.corners != nullptr ? *target.corners : Quad{{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}};
  for (std::size_t i = 0; i < quad.size(); ++i) line.quad[2 * i] = quad[i].x, line.quad[2 * i + 1] = quad[i].y;
  std::memcpy(place.array, &line, sizeof line);
  wrote(*target.parts, 1, part_.bytes + part_.tail);
}

}  // namespace leat::exec
