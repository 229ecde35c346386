#include <array>
#include <cmath>

#include "tools/leat/draw/kinds/kinds.h"

namespace leat::tools::draw {
namespace {

using Quad = std::array<Point, 4>;

// What is known of detection i besides its box. A part is about detections where it has as many rows as there are.
struct About {
  const leat_part_view* turned = nullptr;  // leat_oriented_box
  const leat_part_view* text = nullptr;
};

Rect bounds_of(const Quad& q) {
  Rect r{q[0].x, q[0].y, q[0].x, q[0].y};
  for (const Point& p : q) r = {std::min(r.x0, p.x), std::min(r.y0, p.y), std::max(r.x1, p.x), std::max(r.y1, p.y)};
  return r;
}

Quad quad_of(const Work& work, const leat_oriented_box& b) {
  const float c = std::cos(b.angle), s = std::sin(b.angle), w = b.width / 2, h = b.height / 2;
  return {work.view.at(b.cx - w * c + h * s, b.cy - w * s - h * c),
          work.view.at(b.cx + w * c + h * s, b.cy + w * s - h * c),
          work.view.at(b.cx + w * c - h * s, b.cy + w * s + h * c),
          work.view.at(b.cx - w * c - h * s, b.cy - w * s + h * c)};
}

Quad quad_of(const Work& work, const leat_text& line) {
  return {work.view.at(line.quad[0], line.quad[1]), work.view.at(line.quad[2], line.quad[3]),
          work.view.at(line.quad[4], line.quad[5]), work.view.at(line.quad[6], line.quad[7])};
}

bool has_area(const leat_text& line) {
  const auto [left, right] = std::minmax({line.quad[0], line.quad[2], line.quad[4], line.quad[6]});
  const auto [top, bottom] = std::minmax({line.quad[1], line.quad[3], line.quad[5], line.quad[7]});
  return right > left && bottom > top;
}

std::string with_percent(std::string text, float score) {
  const std::string share = percent(score);
  return text.empty() ? share : share.empty() ? text : text + " " + share;
}

// Outlines are drawn first, of all; labels are left for later.
struct Objects {
  Work& work;
  Pen& pen;

  void add(const Rect& box, Colour colour, std::string text) {
    pen.outline(box, work.style.line, colour);
    if (!text.empty()) work.marks.labels.push_back({box, std::move(text), colour});
  }
  void add(const Quad& quad, Colour colour, std::string text) {
    pen.outline(quad, work.style.line, colour);
    if (!text.empty()) work.marks.labels.push_back({bounds_of(quad), std::move(text), colour});
  }
};

// Labels that later modules gave, the last head first ("red square"); else the class, where it says anything.
std::string classes_text(const Work& work, const leat_detection& d) {
  std::string text;
  for (std::uint32_t l = std::min<std::uint32_t>(d.label_count, LEAT_MAX_LABELS); l-- > 0;)
    text += (text.empty() ? "" : " ") + work.name_or_number(1 + d.labels[l].head, d.labels[l].class_id);
  if (!text.empty()) return text;
  const std::string name = work.name_of(0, d.class_id);
  return !name.empty() ? name : d.class_id > 0 ? work.name_or_number(0, d.class_id) : "";
}

void draw_detection(Objects& objects, const About& about, std::uint32_t i) {
  const Work& work = objects.work;
  const leat_detection& d = work.answer.result->detections[i];
  const Colour colour = colour_of_detection(work, d);
  std::string text = with_percent(classes_text(work, d), d.score);
  leat_text line{};
  const char* const read = about.text != nullptr ? leat_text_at(about.text, i, &line) : nullptr;
  if (read != nullptr && line.length > 0) {
    // From left to right (U+200E) and isolated (U+2068, U+2069): a line that runs from right to left does not turn
    // round what stands behind it.
    text = std::string(read, line.length);
    if (d.label_count > 0) text = "\u200e\u2068" + text + "\u2069 (" + classes_text(work, d) + ")";
  }
  if (read != nullptr && has_area(line)) {
    objects.add(quad_of(work, line), colour, text);
  } else if (about.turned != nullptr) {
    objects.add(quad_of(work, element<leat_oriented_box>(*about.turned, i)), colour, text);
  } else {
    objects.add(work.view.rect(d.x0, d.y0, d.x1, d.y1), colour, text);
  }
}

void draw_part(Objects& objects, const leat_part_view& part) {
  const Work& work = objects.work;
  const auto named = [&](std::int32_t id, float score) {
    const std::string name = work.name_of(0, id);
    return with_percent(!name.empty() ? name : id > 0 ? work.name_or_number(0, id) : "", score);
  };
  for (std::uint64_t i = 0; i < part.count; ++i) {
    if (part.kind == LEAT_PART_boxes) {
      const auto b = element<leat_box>(part, i);
      objects.add(work.view.rect(b.x0, b.y0, b.x1, b.y1), colour_of_class(b.class_id, work.name_of(0, b.class_id)),
                  named(b.class_id, b.score));
    } else if (part.kind == LEAT_PART_oriented) {
      const auto b = element<leat_oriented_box>(part, i);
      objects.add(quad_of(work, b), colour_of_class(b.class_id, work.name_of(0, b.class_id)),
                  named(b.class_id, b.score));
    } else {
      leat_text line;
      const char* const read = leat_text_at(&part, static_cast<std::uint32_t>(i), &line);
      if (read == nullptr) continue;
      const std::string text(read, line.length);
      if (has_area(line))
        objects.add(quad_of(work, line), colour_of_class(0), text);
      else if (!text.empty())
        objects.work.marks.rows.push_back({.text = text, .value = percent(line.score)});
    }
  }
}

}  // namespace

Colour colour_of_detection(const Work& work, const leat_detection& d) {
  const std::uint32_t labels = std::min<std::uint32_t>(d.label_count, LEAT_MAX_LABELS);
  for (std::uint32_t l = 0; l < labels; ++l) {
    const std::string name = work.name_of(1 + d.labels[l].head, d.labels[l].class_id);
    if (is_colour(name)) return colour_of_class(0, name);
  }
  if (labels > 0) return colour_of_class(d.labels[0].class_id);
  return colour_of_class(d.class_id, work.name_of(0, d.class_id));
}

void draw_objects(Work& work, Pen& pen, const std::vector<leat_part_view>& parts) {
  const std::uint32_t count = work.detections();
  Objects objects{work, pen};
  About about;
  for (const leat_part_view& part : parts) {
    const bool drawn = part.kind == LEAT_PART_boxes || part.kind == LEAT_PART_oriented || part.kind == LEAT_PART_text;
    if (!drawn) continue;
    const bool each = count > 0 && part.count == count;
    if (each && part.kind == LEAT_PART_oriented)
      about.turned = &part;
    else if (each && part.kind == LEAT_PART_text)
      about.text = &part;
    else
      draw_part(objects, part);
  }
  for (std::uint32_t i = 0; i < count; ++i) draw_detection(objects, about, i);
}

}  // namespace leat::tools::draw
