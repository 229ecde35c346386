#include "tests/rules/rooms_picture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/rules/source_files.h"

namespace leat::test {
namespace {

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

TEST(RoomsPicture, IsOfTheRoomsAndIncludesThatThereAre) {
  std::ifstream in(kRoot / kRoomsPicture);
  const std::string drawn{std::istreambuf_iterator<char>(in), {}}, now = rooms_picture();
  ASSERT_NE(now.find("room engine/core/"), std::string::npos);
  ASSERT_NE(now.find("engine/daemon/ includes engine/worker/"), std::string::npos);
  if (drawn == now) return;
  const auto before = lines_of(drawn), after = lines_of(now);
  std::string what;
  const auto tell = [&](const char* word, const std::set<std::string>& of, const std::set<std::string>& other) {
    for (const std::string& line : of)
      if (!other.contains(line) && !line.starts_with("<")) what += std::string("  ") + word + line + "\n";
  };
  tell("drawn, but gone: ", before, after);
  tell("not drawn: ", after, before);
  FAIL() << kRoomsPicture << " no longer fits; run build/tests/draw_rooms\n" << what;
}

}  // namespace
}  // namespace leat::test
