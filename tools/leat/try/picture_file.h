// One picture into a file: PNG or JPEG, by the path's ending. Thread rule: none. Errors: one line.
#pragma once

#include <string>

#include "leat/result.hpp"
#include "tools/leat/draw/canvas/picture.h"

namespace leat::tools {

// Whether the path ends as a picture does; other endings are videos'.
[[nodiscard]] bool is_picture_path(const std::string& path);
Status write_picture(const std::string& path, const draw::Picture& picture);

}  // namespace leat::tools
