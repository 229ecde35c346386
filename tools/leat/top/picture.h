// A page of `leat top` as a picture (SVG), for documents and reports. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/leat/top/page.h"

namespace leat::tools {

[[nodiscard]] std::string top_picture(const std::vector<Line>& lines);

}  // namespace leat::tools
