#include "tools/leat/draw/answer.h"

#include <cmath>
#include <cstdio>

#include "tools/leat/draw/kinds/kinds.h"

namespace leat::tools::draw {
namespace {

constexpr Colour kPaper{22, 24, 29};

Picture on_sheet(const Picture& frame, const Sheet& sheet) {
  const Size shown{static_cast<std::uint32_t>(sheet.picture.width()),
                   static_cast<std::uint32_t>(sheet.picture.height())};
  Picture out(sheet.size, kPaper);
  paste(out, resized(frame, shown), 0, 0);
  return out;
}

Sheet sheet_for(const Picture& frame, const std::optional<Size>& tile) {
  return tile ? tile_of(frame.size, *tile) : sheet_of(frame.size);
}

// "3 found", "2 lines read", or nothing where the kind of answer has no number.
std::string count_text(const Work& work, const std::vector<leat_part_view>& parts) {
  const leat_result& result = *work.answer.result;
  const auto many = [](std::uint64_t n, const char* one, const char* more) {
    return std::to_string(n) + (n == 1 ? one : more);
  };
  if (result.kind == LEAT_RESULT_DETECTIONS) {
    std::string text = many(work.detections(), " found", " found");
    if (result.detections_left_out > 0) text += " and " + std::to_string(result.detections_left_out) + " more";
    return text;
  }
  for (const leat_part_view& part : parts) {
    if (part.kind == LEAT_PART_text) return many(part.count, " line read", " lines read");
    if (part.kind == LEAT_PART_boxes || part.kind == LEAT_PART_oriented) return std::to_string(part.count) + " found";
    if (part.kind == LEAT_PART_keypoints && part.rank > 1 && part.dims[1] == 2)
      return many(part.dims[0], " line", " lines");
  }
  return "";
}

void write_banner(Work& work, const std::vector<leat_part_view>& parts) {
  char time[32];
  std::snprintf(time, sizeof time, "%.1f ms", work.answer.milliseconds);
  const bool late = work.answer.outcome == Outcome::late;
  work.marks.banner = late ? "late, " + std::string(time) : std::string(time);
  if (const std::string count = count_text(work, parts); !count.empty()) work.marks.banner += ", " + count;
  if (late) work.marks.banner_colour = kWarning;
}

void no_result(Work& work) {
  for (std::uint32_t& p : work.on.pixels) p = blend(p, kPaper, 0.35);
  work.marks.banner = std::string(name_of(work.answer.outcome));
  if (work.answer.reason != Reason{}) work.marks.banner += ": " + std::string(text_of(work.answer.reason));
  work.marks.banner_colour = kWarning;
}

}  // namespace

std::string percent(float score) {
  return std::isfinite(score) && score > 0 ? std::to_string(std::lround(std::min(score, 1.0F) * 100)) + "%" : "";
}

Picture draw_answer(const Picture& frame, const AnswerView& answer, std::optional<Size> tile, Placed* placed) {
  const Sheet sheet = sheet_for(frame, tile);
  Picture out = on_sheet(frame, sheet);
  Work work{out, sheet, sheet.view(frame.size), Style::of(sheet.picture.width(), sheet.picture.height()), answer, {}};
  std::vector<leat_part_view> parts;
  if (answer.result == nullptr) {
    no_result(work);
  } else {
    parts = parts_of(answer);
    for (const leat_part_view& part : parts) {
      if (part.kind == LEAT_PART_map) draw_map(work, part);
      if (part.kind == LEAT_PART_masks) draw_masks(work, part);
    }
    list_classes(work, parts);
    if (answer.result->kind == LEAT_RESULT_CHECKSUM) list_checksum(work);
    for (const leat_part_view& part : parts) list_numbers(work, part);
    write_banner(work, parts);
  }
  Pen pen(out);
  if (answer.result != nullptr) {
    draw_objects(work, pen, parts);
    for (const leat_part_view& part : parts)
      if (part.kind == LEAT_PART_keypoints) draw_points(work, pen, part);
  }
  if (!answer.title.empty()) work.marks.banner = answer.title + ": " + work.marks.banner;
  const Placed where = draw_marks(pen, sheet, work.style, work.marks);
  if (placed != nullptr) *placed = where;
  return out;
}

Picture draw_tracked(const Picture& frame, std::span<const Tracked> parts, std::optional<Size> tile) {
  const Sheet sheet = sheet_for(frame, tile);
  Picture out = on_sheet(frame, sheet);
  const View view = sheet.view(frame.size);
  const Style style = Style::of(sheet.picture.width(), sheet.picture.height());
  Pen pen(out);
  for (const Tracked& tracked : parts) {
    Sheet part = sheet;
    part.picture = view.rect(tracked.part.x0, tracked.part.y0, tracked.part.x1, tracked.part.y1);
    if (!sheet.beside || parts.size() > 1) part.notes = part.picture, part.beside = false;
    Marks marks;
    for (const Label& box : tracked.boxes) {
      const Rect at = view.rect(box.of.x0, box.of.y0, box.of.x1, box.of.y1);
      pen.outline(at, style.line, box.colour);
      if (!box.text.empty()) marks.labels.push_back({at, box.text, box.colour});
    }
    if (parts.size() > 1) pen.outline(part.picture, style.line / 2, kWhite);
    marks.banner = tracked.banner;
    (void)draw_marks(pen, part, style, marks);
  }
  return out;
}

}  // namespace leat::tools::draw
