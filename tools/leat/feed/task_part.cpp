#include "tools/leat/feed/task_part.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace leat::tools {

PictureFormat TaskPart::of(const PictureFormat& whole) const {
  PictureFormat format = whole;
  if (width > 0) format.width = width, format.height = height;
  return format;
}

Result<TaskPart> parse_task(const std::string& text) {
  const auto wrong = [&] {
    return Error{"'--task' is '" + text +
                 "', but must be WIDTHxHEIGHT+X+Y in even pixels, or 'all', then @APPLICATION where another one "
                 "takes it, then a weight from 0.001 to 1000 if it has one, such as 640x360+320+0@faces:2"};
  };
  TaskPart part;
  const std::size_t colon = text.find(':');
  part.name = text.substr(0, colon);
  const std::size_t at = part.name.find('@');
  const std::string pixels = part.name.substr(0, at);
  if (at != std::string::npos && (part.application = part.name.substr(at + 1)).empty()) return wrong();
  if (pixels != "all") {
    int end = 0;
    if (std::sscanf(pixels.c_str(), "%5ux%5u+%5u+%5u%n", &part.width, &part.height, &part.x, &part.y, &end) != 4 ||
        static_cast<std::size_t>(end) != pixels.size() || part.width == 0 || part.height == 0 ||
        (part.width | part.height | part.x | part.y) % 2 != 0)
      return wrong();
  }
  if (colon == std::string::npos) return part;
  int end = 0;
  const std::string weight = text.substr(colon + 1);
  if (std::sscanf(weight.c_str(), "%lf%n", &part.weight, &end) != 1 || static_cast<std::size_t>(end) != weight.size() ||
      !(part.weight >= 0.001 && part.weight <= 1000))
    return wrong();
  return part;
}

void copy_part(const leat_frame& from, const TaskPart& part, const leat_frame& to) {
  for (std::uint32_t p = 0; p < to.plane_count; ++p) {
    const std::size_t right = std::uint64_t{part.x} * from.row_bytes[p] / from.width;
    const std::size_t down = std::uint64_t{part.y} * from.rows[p] / from.height;
    for (std::uint32_t y = 0; y < to.rows[p]; ++y)
      std::memcpy(to.planes[p] + std::size_t{y} * to.strides[p], from.planes[p] + (down + y) * from.strides[p] + right,
                  to.row_bytes[p]);
  }
}

Truth truth_of(const Truth& whole, const TaskPart& part) {
  if (part.width == 0) return whole;
  Truth out{.width = part.width, .height = part.height};
  const auto w = static_cast<float>(part.width), h = static_cast<float>(part.height);
  for (const std::vector<scene::Object>& all : whole.pictures) {
    std::vector<scene::Object>& objects = out.pictures.emplace_back();
    for (scene::Object o : all) {
      const float area = (o.x1 - o.x0) * (o.y1 - o.y0);
      const auto x = static_cast<float>(part.x), y = static_cast<float>(part.y);
      o.x0 = std::clamp(o.x0 - x, 0.0f, w), o.x1 = std::clamp(o.x1 - x, 0.0f, w);
      o.y0 = std::clamp(o.y0 - y, 0.0f, h), o.y1 = std::clamp(o.y1 - y, 0.0f, h);
      const float inside = (o.x1 - o.x0) * (o.y1 - o.y0);
      if (inside <= 0) continue;
      o.ignore = o.ignore || inside < area / 2;
      objects.push_back(o);
    }
  }
  return out;
}

}  // namespace leat::tools
