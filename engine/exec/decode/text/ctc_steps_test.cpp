// Steps of pieces that overlap: written down by hand, one letter a step, '-' for blank.
#include "engine/exec/decode/text/ctc_steps.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace leat::exec {
namespace {

std::vector<CtcStep> steps(std::string_view text) {
  std::vector<CtcStep> out;
  for (const char c : text) out.push_back({static_cast<std::uint32_t>(c), 1});
  return out;
}

// What the pieces make together; each begins at its step of the whole.
std::string joined(std::initializer_list<std::pair<std::string_view, std::size_t>> pieces, std::size_t room = 64) {
  std::vector<CtcStep> line(room);
  std::size_t count = 0;
  for (const auto& [piece, at] : pieces) count = join_steps(line, count, steps(piece), at);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += static_cast<char>(line[i].best);
  return out;
}

TEST(CtcSteps, ChangesWhereBothPiecesSayTheSame) {
  EXPECT_EQ(joined({{"h-e-l-l-o", 0}}), "h-e-l-l-o");
  // The first piece misreads what its right end cuts through, the second what its left end does.
  EXPECT_EQ(joined({{"a-bb--c-d-x", 0}, {"y-c-d-e--ff", 4}}), "a-bb--c-d-e--ff");
  // The later of two letters stands a step further right in the second piece: neither twice nor lost.
  EXPECT_EQ(joined({{"a-b-c-d--", 0}, {"--c--d--e", 2}}), "a-b-c--d--e");
  // A letter on the change, two steps long in both, stays one run: read once.
  EXPECT_EQ(joined({{"ab-ccc-q", 0}, {"z-ccc-de", 1}}), "ab-ccc-de");
  // They agree on the overlap's end alone.
  EXPECT_EQ(joined({{"a-b-q-r-s-t-", 0}, {"zzzzzzs-t-u-", 2}}), "a-b-q-r-s-t-u-");
  // Three pieces.
  EXPECT_EQ(joined({{"one--tw", 0}, {"e--two--t", 2}, {"wo--three", 6}}), "one--two--three");
}

TEST(CtcSteps, WithoutAgreementTheMiddle) {
  EXPECT_EQ(joined({{"aaaaaa", 0}, {"bbbbbb", 2}}), "aaaabbbb");
  EXPECT_EQ(joined({{"aaaa", 0}, {"bbbb", 4}}), "aaaabbbb") << "no overlap";
}

TEST(CtcSteps, NothingIsWrittenBeyondTheRoom) {
  EXPECT_EQ(joined({{"abcdef", 0}}, 4), "abcd");
  EXPECT_EQ(joined({{"abcd", 0}, {"cdefgh", 2}}, 6), "abcdef");
  EXPECT_EQ(joined({{"abcd", 0}, {"efgh", 9}}, 10), "abcdefgh") << "a beginning past the end is the end";
  EXPECT_EQ(joined({{"abcd", 0}, {"", 2}}), "abcd") << "a piece of no steps takes nothing away";
  EXPECT_EQ(joined({{"", 0}}), "");
}

}  // namespace
}  // namespace leat::exec
