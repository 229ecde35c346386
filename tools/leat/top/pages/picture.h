// A screen as a picture (SVG), for documents and reports: the same cells. Pure: the same cells, the same bytes.
#pragma once

#include <string>

#include "tools/leat/top/pages/canvas.h"

namespace leat::tools::top {

[[nodiscard]] std::string picture_of(const Canvas& canvas);

}  // namespace leat::tools::top
