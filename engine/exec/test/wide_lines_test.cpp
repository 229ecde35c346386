// Lines wider than any picture that their model is given: the rule by hand, and a model that reads stripes
// (striped_text.h).
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "engine/exec/module.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/test/striped_text.h"
#include "engine/exec/test/test_slot.h"
#include "leat/result_parts.h"

namespace leat::exec {
namespace {

SizeRule rule(const std::string& line) {
  const auto spec = parse_preprocess(line);
  EXPECT_TRUE(spec.ok()) << spec.error();
  return spec.ok() ? spec->sizes : SizeRule{};
}
std::string refusal(const std::string& line) {
  const auto spec = parse_preprocess(line);
  return spec.ok() ? "" : spec.error();
}

TEST(WideLines, PiecesOverlapByTwiceTheHeight) {
  const SizeRule r = rule("height=48 widths=96,320,960 wide=split");
  EXPECT_EQ(r.pieces_of(960, 48).count, 1U);
  EXPECT_EQ(r.pieces_of(480, 24).count, 1U) << "960 columns";
  const Pieces two = r.pieces_of(1824, 48);
  ASSERT_EQ(two.count, 2U);
  EXPECT_EQ(two.squeezed, 0U);
  EXPECT_EQ(two.at(0).from, 0);
  EXPECT_FLOAT_EQ(two.at(0).to, 960.0F / 1824);
  EXPECT_FLOAT_EQ(two.at(1).from, 864.0F / 1824);
  EXPECT_EQ(two.at(1).to, 1);
  EXPECT_EQ(two.at(1).start, 864);
  EXPECT_EQ(two.at(1).index, 1U);
  EXPECT_EQ(two.at(1).count, 2U);
  EXPECT_EQ(r.pieces_of(1825, 48).count, 3U);
  const Pieces max = r.pieces_of(960 + 7 * 864, 48), more = r.pieces_of(20000, 48);
  EXPECT_EQ(max.count, 8U);
  EXPECT_EQ(max.squeezed, 0U);
  EXPECT_EQ(more.count, 8U);
  EXPECT_EQ(more.squeezed, 20000U);
  EXPECT_FLOAT_EQ(more.at(7).from, max.at(7).from) << "all of it is shown, squeezed into as much";
  EXPECT_EQ(more.at(7).to, 1);
  // Pieces are of the widest width but the last.
  for (const std::uint32_t width : {961U, 1000U, 1700U, 5000U, 20000U}) {
    const Pieces pieces = r.pieces_of(static_cast<float>(width), 48);
    for (std::uint32_t i = 0; i + 1 < pieces.count; ++i) {
      const Piece p = pieces.at(i);
      const float shown = std::min(static_cast<float>(width), 960.0F + 7 * 864) * (p.to - p.from);
      EXPECT_NEAR(shown, 960, .01) << width << " " << i;
      EXPECT_LT(pieces.at(i + 1).from, p.to);
    }
  }
  // Widths that leave no room for such an overlap.
  EXPECT_FLOAT_EQ(rule("height=48 widths=100 wide=split").pieces_of(150, 48).at(1).from, 50.0F / 150);
}

TEST(WideLines, OrAreSqueezedOrBegun) {
  const Pieces squeezed = rule("height=48 widths=96,960").pieces_of(2000, 48);
  EXPECT_EQ(squeezed.count, 1U);
  EXPECT_EQ(squeezed.squeezed, 2000U);
  EXPECT_EQ(squeezed.at(0).to, 1);
  EXPECT_EQ(rule("height=48 longest=960 wide=squeeze").pieces_of(2000, 48).squeezed, 2000U);
  const Pieces begun = rule("height=48 widths=192 wide=start").pieces_of(2000, 48);
  EXPECT_EQ(begun.count, 1U);
  EXPECT_EQ(begun.squeezed, 0U);
  EXPECT_EQ(begun.at(0).from, 0);
  EXPECT_FLOAT_EQ(begun.at(0).to, 192.0F / 2000);
  for (const auto& [w, h] : {std::pair{0.0F, 1.0F}, {NAN, 1.0F}, {1.0F, NAN}, {INFINITY, 1.0F}, {1.0F, 0.0F}})
    EXPECT_EQ(rule("height=48 widths=96 wide=split").pieces_of(w, h).count, 1U);
  EXPECT_EQ(rule("longest=960").pieces_of(100000, 1).squeezed, 0U) << "made smaller in its proportions";
  EXPECT_NE(refusal("longest=960 wide=split").find("height="), std::string::npos);
  EXPECT_NE(refusal("height=48 widths=96 wide=cut").find("split"), std::string::npos);
}

class Stripes : public testing::Test {
 protected:
  Stripes() {
    char name[] = "/tmp/leat_stripes_XXXXXX";
    folder_ = ::mkdtemp(name);
    model_ = save_striped_text_model(folder_);
  }
  ~Stripes() override { std::filesystem::remove_all(folder_); }
  Result<std::unique_ptr<Module>> open(const std::string& words, std::uint32_t batch,
                                       const std::string& answer = "text ctc keys=keys.txt") {
    return Module::open({.name = "stripes",
                         .model_path = model_,
                         .preprocess = words + " norm=unit pad=0",
                         .postprocess = answer,
                         .batch_max = batch});
  }
  std::string folder_, model_;
};

struct Answers {
  std::vector<std::string> texts;
  std::vector<ItemReport> reports;
};

Answers read(Module& module, const std::vector<StripedText>& pictures) {
  Answers out;
  out.reports.resize(pictures.size());
  std::vector<Slot> slots(pictures.size(), Slot(module));
  std::vector<Item> items;
  for (std::size_t i = 0; i < pictures.size(); ++i)
    items.push_back(
        {.frame = pictures[i].view(), .result = slots[i].result(), .parts = parts_of(slots[i].result(), 0)});
  EXPECT_TRUE(module.run(items, out.reports)) << module.error();
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const leat_part_view view = slots[i].part(0);
    leat_text line;
    const char* const text = leat_text_at(&view, 0, &line);
    out.texts.emplace_back(text != nullptr ? text : "", line.length);
    EXPECT_EQ(line.quad[2], static_cast<float>(pictures[i].width)) << "a text's place is the whole line's";
  }
  return out;
}

// With widths of at most 64 and a height of 8: pieces of 64 columns, each 48 behind the one before.
TEST_F(Stripes, AreReadInPiecesAndJoinedInOrder) {
  std::vector<std::string> letters;
  std::vector<StripedText> pictures;
  for (const std::size_t count : {5U, 14U, 15U, 26U, 40U, 3U, 98U}) {  // 98: 400 columns, eight pieces
    letters.push_back(striped_letters(static_cast<std::uint32_t>(count), count));
    pictures.emplace_back(letters.back());
  }
  for (const std::uint32_t batch : {1U, 3U, 8U}) {
    const auto module = open("height=8 widths=16,32,64 wide=split", batch);
    ASSERT_TRUE(module.ok()) << module.error();
    const Answers answers = read(**module, pictures);
    EXPECT_EQ(answers.texts, letters) << batch;
    for (const ItemReport& r : answers.reports) {
      EXPECT_EQ(r.reason, Reason::none);
      EXPECT_EQ(r.squeezed, 0U);
    }
  }
}

TEST_F(Stripes, WhatIsSqueezedIsCounted) {
  const std::string letters = striped_letters(7, 40);
  const StripedText wide(letters), narrow("abba");
  const auto squeezed = open("height=8 widths=16,32,64", 4);
  ASSERT_TRUE(squeezed.ok()) << squeezed.error();
  const Answers garbage = read(**squeezed, {narrow, wide});
  EXPECT_EQ(garbage.texts[0], "abba");
  EXPECT_NE(garbage.texts[1], letters) << "this is why";
  EXPECT_EQ(garbage.reports[0].squeezed, 0U);
  EXPECT_EQ(garbage.reports[1].squeezed, wide.width);
  const auto start = open("height=8 widths=16,32,64 wide=start", 4);
  ASSERT_TRUE(start.ok()) << start.error();
  const Answers begun = read(**start, {narrow, wide});
  EXPECT_EQ(begun.texts[0], "abba");
  EXPECT_EQ(begun.texts[1], letters.substr(0, 15)) << "the columns 4 to 61 of 64";
  EXPECT_EQ(begun.reports[1].squeezed, 0U);
  // More than eight pieces hold.
  const auto split = open("height=8 widths=16,32,64 wide=split", 4);
  ASSERT_TRUE(split.ok()) << split.error();
  EXPECT_EQ(read(**split, {StripedText(striped_letters(1, 99))}).reports[0].squeezed, 404U);
}

TEST_F(Stripes, SplittingSuitsTextAlone) {
  const auto module = open("height=8 widths=16,32,64 wide=split", 4, "tensors");
  ASSERT_FALSE(module.ok());
  EXPECT_NE(module.error().find("wide=split"), std::string::npos) << module.error();
}

}  // namespace
}  // namespace leat::exec
