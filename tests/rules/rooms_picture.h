// The picture of the rooms and of who includes whom (docs/pictures/rooms.svg), drawn from the page's table and from the
// includes in the code. The same sources, the same bytes.
#pragma once

#include <string>

namespace leat::test {

inline constexpr const char* kRoomsPicture = "docs/pictures/rooms.svg";

// SVG. Behind it, as a comment, a line for each room and each arrow, those too that the drawing leaves out because a
// way over other rooms says the same.
std::string rooms_picture();

}  // namespace leat::test
