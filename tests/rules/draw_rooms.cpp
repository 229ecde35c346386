// Draws docs/pictures/rooms.svg anew, after rooms or includes have changed.
#include <cstdio>
#include <fstream>

#include "tests/rules/rooms_picture.h"
#include "tests/rules/source_files.h"

int main() {
  const auto path = leat::test::kRoot / leat::test::kRoomsPicture;
  std::ofstream out(path);
  out << leat::test::rooms_picture();
  out.close();
  std::printf("%s %s\n", out ? "drawn:" : "cannot be written:", path.c_str());
  return out ? 0 : 1;
}
