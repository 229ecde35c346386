// Every family of models that people bring, as a real ONNX file of its exact layout: what its file lets be concluded,
// or the question that is asked; what is decoded, against numbers that were put into the model; and that no family
// passes for another. Prints a table: exec_families_test --gtest_filter='*EachIs*'.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "engine/exec/decode/postprocess.h"
#include "engine/exec/module.h"
#include "engine/exec/recognise/recognise.h"
#include "engine/exec/test/test_families.h"
#include "engine/exec/test/test_family_builder.h"
#include "engine/exec/test/test_slot.h"

namespace leat::exec {
namespace {

class Families : public testing::Test {
 protected:
  Families() {
    char name[] = "/tmp/leat_families_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Families() override { std::filesystem::remove_all(folder_); }

  std::string path_of(const FamilyModel& f, std::size_t i) { return save(f, folder_ + "/" + std::to_string(i)); }
  static std::string with_keys(std::string words, const std::string& model) {
    if (const std::size_t at = words.find("FILE"); at != std::string::npos)
      words.replace(at, 4, std::filesystem::path(model).replace_filename("keys.txt").string());
    return words;
  }
  std::string folder_;
};

Result<std::unique_ptr<Module>> open(const std::string& path, const std::string& pre, const std::string& post) {
  return Module::open({.name = "m",
                       .model_path = path,
                       .preprocess = pre,
                       .postprocess = post,
                       .labels = {},
                       .cuts = {},
                       .emulated_ns = {},
                       .extra = {}});
}

// Every number of the answer to one picture of the model's own size, in the order of FamilyModel::answer.
// typed: with the kind and type of each part before it.
std::vector<double> read(Module& module, std::uint32_t width, std::uint32_t height, bool typed = false) {
  std::vector<std::uint8_t> pixels(std::size_t{3} * width * height);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
  FrameView f;
  f.planes[0] = pixels.data(), f.strides[0] = 3 * width, f.format = LEAT_FORMAT_rgb24, f.width = width,
  f.height = height, f.bytes = pixels.size();
  Slot slot(module);
  Item item{.frame = f, .result = slot.result()};
  item.parts = parts_of(slot.result(), 0);
  ItemReport report;
  EXPECT_TRUE(module.run({&item, 1}, {&report, 1})) << module.error();
  std::vector<double> out;
  const leat_result& r = *slot.result();
  for (std::uint32_t i = 0; i < r.detection_count; ++i) {
    const leat_detection& d = r.detections[i];
    for (const float v : {d.x0, d.y0, d.x1, d.y1, d.score}) out.push_back(static_cast<double>(v));
    out.push_back(d.class_id);
  }
  for (std::uint32_t i = 0; i < r.class_count; ++i)
    out.insert(out.end(), {static_cast<double>(r.classes[i].class_id), static_cast<double>(r.classes[i].score)});
  for (std::uint32_t i = 0; i < r.part_count; ++i) {
    const leat_part_view part = slot.part(i);
    if (typed) out.insert(out.end(), {static_cast<double>(part.kind), static_cast<double>(part.dtype)});
    if (part.kind == LEAT_PART_text) {
      for (std::uint32_t t = 0; t < part.count; ++t) {
        leat_text line;
        const char* const bytes = leat_text_at(&part, t, &line);
        for (std::uint32_t c = 0; c < line.length; ++c) out.push_back(bytes[c]);
        out.push_back(static_cast<double>(line.score));
      }
    } else if (part.kind == LEAT_PART_masks) {
      for (std::uint32_t m = 0; m < part.count; ++m) {
        leat_mask mask;
        const std::uint8_t* const bits = leat_mask_at(&part, m, &mask);
        for (const float v : {mask.x0, mask.y0, mask.x1, mask.y1}) out.push_back(static_cast<double>(v));
        out.insert(out.end(), {static_cast<double>(mask.width), static_cast<double>(mask.height)});
        for (std::uint32_t y = 0; y < mask.height && bits != nullptr; ++y)
          for (std::uint32_t x = 0; x < mask.width; ++x)
            out.push_back(bits[y * ((mask.width + 7) / 8) + x / 8] >> x % 8 & 1);
      }
    } else if (part.kind == LEAT_PART_oriented) {
      for (const leat_oriented_box& b : slot.values<leat_oriented_box>(i)) {
        for (const float v : {b.cx, b.cy, b.width, b.height, b.angle, b.score}) out.push_back(static_cast<double>(v));
        out.push_back(b.class_id);
      }
    } else if (part.kind == LEAT_PART_classes) {
      for (const leat_class& c : slot.values<leat_class>(i))
        out.insert(out.end(), {static_cast<double>(c.class_id), static_cast<double>(c.score)});
    } else if (part.dtype == LEAT_U8 && part.kind == LEAT_PART_map) {
      for (const std::uint8_t v : slot.values<std::uint8_t>(i)) out.push_back(v);
    } else {
      for (std::uint64_t n = 0; n < part.bytes / sizeof(float); ++n) {
        float v = 0;
        std::memcpy(&v, static_cast<const std::byte*>(part.data) + n * sizeof v, sizeof v);
        out.push_back(static_cast<double>(v));
      }
    }
  }
  return out;
}

bool close(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-4 * std::max(1.0, std::abs(b[i])))) return false;
  return true;
}

std::string shown(const std::vector<double>& v) {
  std::string out;
  char text[32];
  for (std::size_t i = 0; i < std::min<std::size_t>(v.size(), 40); ++i) {
    std::snprintf(text, sizeof text, "%.5g ", v[i]);
    out += text;
  }
  return out + "(" + std::to_string(v.size()) + ")";
}

// What became of a family: recognised with its words, asked for in a line that has them, refused, or taken for another.
enum class Became : std::uint8_t { recognised, asked, refused, wrong };

Became became(const FamilyModel& f, const Result<Recognised>& known) {
  if (known.ok())
    return f.refused.empty() && known->preprocess.words == f.preprocess && known->postprocess.words == f.postprocess
               ? Became::recognised
               : Became::wrong;
  const std::string& line = known.error();
  if (!f.refused.empty())
    return line.find(f.refused) != std::string::npos && line.find("tensors") != std::string::npos ? Became::refused
                                                                                                  : Became::wrong;
  const auto has = [&](const std::string& words) { return line.find("\"" + words + "\"") != std::string::npos; };
  const bool size_alone = line.find("leaves the picture's size") != std::string::npos;
  const bool picture = line.find("likely preprocess") == std::string::npos || has(f.preprocess);
  return (size_alone || has(f.postprocess)) && picture ? Became::asked : Became::wrong;
}

TEST_F(Families, EachIsRecognisedOrAskedForAndDecoded) {
  const std::vector<FamilyModel> all = family_models();
  static constexpr const char* kShown[] = {"by itself", "asked for", "refused", "WRONG"};
  std::array<std::size_t, 4> count{};
  std::size_t right = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FamilyModel& f = all[i];
    SCOPED_TRACE(f.name);
    const std::string path = path_of(f, i);
    const auto known = recognise(path, {});
    const Became what = became(f, known);
    ++count[static_cast<std::size_t>(what)];
    const Became expected = !f.refused.empty() ? Became::refused : f.asked ? Became::asked : Became::recognised;
    EXPECT_EQ(what, expected) << (known.ok() ? known->preprocess.words + "; " + known->postprocess.words
                                             : known.error());
    if (what == Became::recognised) {
      EXPECT_EQ(known->labels.words, f.labels);
      EXPECT_FALSE(known->preprocess.from.empty() || known->postprocess.from.empty());
    }
    const auto tell = [&](const char* values) {
      std::printf("%-36s %-10s %-9s %-58s %s\n", f.name.c_str(), kShown[static_cast<std::size_t>(what)], values,
                  f.postprocess.c_str(), f.preprocess.c_str());
    };
    if (!f.refused.empty()) {
      tell("-");
      continue;
    }
    auto module = f.asked ? open(path, f.preprocess, with_keys(f.postprocess, path)) : open(path, "", "");
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error());
    if (!module.ok()) continue;
    const std::vector<double> answer = read(**module, f.width, f.height);
    const bool values = close(answer, f.answer);
    tell(values ? "right" : "NOT RIGHT");
    EXPECT_TRUE(values) << shown(answer) << "\ninstead of\n" << shown(f.answer);
    if (values) ++right;
  }
  std::printf(
      "%zu families: %zu by themselves, %zu asked for, %zu refused, %zu wrong; the values of %zu answers are right\n",
      all.size(), count[0], count[1], count[2], count[3], right);
  EXPECT_EQ(right, count[0] + count[1]);
  EXPECT_EQ(count[3], 0U);
  EXPECT_GE(count[0], 40U);
  EXPECT_GE(all.size(), 80U);
}

// The words that a question proposes: what stands in quotes and begins as words for pictures or for answers do.
struct Proposed {
  std::vector<std::string> preprocess, postprocess;
};
Proposed proposed_in(const std::string& question) {
  static const std::set<std::string> kPictures = {"stretch", "letterbox", "cover", "longest", "edge", "height"};
  Proposed out;
  for (std::size_t at = question.find('"'); at != std::string::npos;) {
    const std::size_t end = question.find('"', at + 1);
    if (end == std::string::npos) break;
    const std::string words = question.substr(at + 1, end - at - 1);
    const std::string first = words.substr(0, words.find_first_of(" ="));
    if (kPictures.contains(first))
      out.preprocess.push_back(words);
    else if (parse_postprocess(words).ok())
      out.postprocess.push_back(words);
    at = question.find('"', end + 1);
  }
  if (out.preprocess.empty()) out.preprocess = {""};
  if (out.postprocess.empty()) out.postprocess = {""};
  return out;
}

// Whatever a question proposes can be pasted, with a dictionary where it says FILE: nothing more is asked, the module
// opens, and one of the proposals reads the outputs as the family's answer is read.
TEST_F(Families, EveryProposalWorks) {
  const std::vector<FamilyModel> all = family_models();
  std::size_t pasted = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FamilyModel& f = all[i];
    if (!f.asked) continue;
    SCOPED_TRACE(f.name);
    const std::string path = path_of(f, i);
    const auto asked = judge(path, {});
    ASSERT_TRUE(asked.ok()) << asked.error();
    const Proposed words = proposed_in(asked->question);
    const bool pairs = words.preprocess.size() == words.postprocess.size();
    bool right = false;
    for (std::size_t a = 0; a < words.postprocess.size(); ++a)
      for (std::size_t b = 0; b < words.preprocess.size(); ++b) {
        if (pairs && a != b) continue;
        const std::string pre = words.preprocess[b], post = with_keys(words.postprocess[a], path);
        SCOPED_TRACE(pre + "; " + post);
        const auto again = recognise(path, {.preprocess = pre, .postprocess = post});
        EXPECT_TRUE(again.ok()) << again.error();
        auto module = open(path, pre, post);
        EXPECT_TRUE(module.ok()) << module.error();
        ++pasted;
        right = right || (again.ok() && again->postprocess.words == with_keys(f.postprocess, path));
      }
    EXPECT_TRUE(right) << asked->question;
  }
  EXPECT_GE(pasted, 50U);
}

// Files whose picture's size is open, as exporters write them by default: what is proposed names one.
TEST_F(Families, WhatIsProposedForAnOpenSizeNamesOne) {
  families::Builder b("input", TestGraph::f32, {-1, 3, -1, -1});
  b.put("scores", {1, 1000}, families::zeros(1000));
  const std::string path = folder_ + "/open.onnx";
  b.g.save(path);
  const auto asked = judge(path, {});
  ASSERT_TRUE(asked.ok()) << asked.error();
  const Proposed words = proposed_in(asked->question);
  for (const std::string& post : words.postprocess) {
    const auto module = open(path, words.preprocess.front(), post);
    EXPECT_TRUE(module.ok()) << words.preprocess.front() << "; " << post << ": " << module.error();
  }
}

// Half of the words given: the other half is right, or it is asked for.
TEST_F(Families, HalfOfTheWordsIsNeverGuessed) {
  const std::vector<FamilyModel> all = family_models();
  std::size_t concluded = 0, asked = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FamilyModel& f = all[i];
    if (!f.refused.empty()) continue;
    SCOPED_TRACE(f.name);
    const std::string path = path_of(f, i);
    const auto picture = recognise(path, {.postprocess = with_keys(f.postprocess, path)});
    if (picture.ok()) {
      EXPECT_EQ(picture->preprocess.words, f.preprocess);
    } else {
      EXPECT_NE(picture.error().find("preprocess"), std::string::npos) << picture.error();
    }
    const auto answer = recognise(path, {.preprocess = f.preprocess});
    if (answer.ok()) {
      EXPECT_EQ(answer->postprocess.words, f.postprocess);
    } else {
      EXPECT_NE(answer.error().find("postprocess"), std::string::npos) << answer.error();
    }
    for (const bool ok : {picture.ok(), answer.ok()}) ++(ok ? concluded : asked);
    // What was asked for is not served with a default either.
    if (!picture.ok()) {
      EXPECT_FALSE(open(path, "", with_keys(f.postprocess, path)).ok());
    }
  }
  std::printf("halves: %zu concluded, %zu asked for\n", concluded, asked);
}

// The reading that words stand for, without the limits and the name of the output beside it: what may give the same
// answer by right.
std::string reading_of(const std::string& words) {
  static constexpr const char* kLimits[] = {"score=", "iou=", "threshold=", "grow=", "from="};
  std::string out;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    const bool limit =
        std::any_of(std::begin(kLimits), std::end(kLimits), [&](const char* l) { return word.starts_with(l); });
    if (!limit) out += word + " ";
    at = end + 1;
  }
  return out;
}

TEST_F(Families, NonePassesForAnother) {
  const std::vector<FamilyModel> all = family_models();
  std::set<std::string> readings;
  for (const FamilyModel& f : all)
    if (!f.postprocess.empty()) readings.insert(reading_of(f.postprocess));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FamilyModel& f = all[i];
    if (!f.refused.empty()) continue;
    const std::string path = path_of(f, i), own = reading_of(f.postprocess);
    auto right = open(path, f.preprocess, with_keys(f.postprocess, path));
    EXPECT_TRUE(right.ok()) << f.name << ": " << (right.ok() ? "" : right.error());
    if (!right.ok()) continue;
    const std::vector<double> answer = read(**right, f.width, f.height, true);
    int refused = 0, differ = 0;
    for (const std::string& other : readings) {
      if (other == own) continue;
      auto module = open(path, f.preprocess, with_keys(other, path));
      if (!module.ok()) {
        ++refused;
        continue;
      }
      EXPECT_FALSE(close(read(**module, f.width, f.height, true), answer))
          << f.name << " reads the same as " << other << ": " << shown(answer);
      ++differ;
    }
    std::printf("%-28s refused by %2d readings, visibly different by %2d\n", f.name.c_str(), refused, differ);
  }
}

// One session, pictures of several sizes: maps are as large as each picture, and boxes in parts of it are of its size.
TEST_F(Families, PicturesThatVaryInSize) {
  TestGraph g;
  g.input("x", TestGraph::f32, {"n", 3, "h", "w"});
  g.output(g.op("ReduceMean", {"x"}, "depth", {{"axes", {1}}}, {{"keepdims", 1}}), TestGraph::f32, {"n", 1, "h", "w"});
  const std::string path = folder_ + "/map.onnx";
  g.save(path);
  auto map = open(path, "longest=64 multiple=16 rgb norm=unit", "map value");
  ASSERT_TRUE(map.ok()) << map.error();
  for (const auto& [width, height, cells] :
       {std::array<std::uint32_t, 3>{128, 64, 64 * 32}, {40, 80, 32 * 64}, {64, 64, 64 * 64}, {16, 16, 16 * 16}}) {
    const std::vector<double> values = read(**map, width, height);
    ASSERT_EQ(values.size(), cells) << width;
    for (const double v : values) EXPECT_TRUE(v >= 0 && v <= 1) << v;
  }
  const std::vector<FamilyModel> all = family_models();
  const auto detr = std::find_if(all.begin(), all.end(), [](const FamilyModel& f) { return f.name == "DETR"; });
  ASSERT_NE(detr, all.end());
  auto module = open(path_of(*detr, 1), "", "");
  ASSERT_TRUE(module.ok()) << module.error();
  for (const auto& [width, height] : {std::pair{85U, 64U}, {300U, 50U}, {64U, 640U}, {85U, 64U}}) {
    std::vector<double> expected = detr->answer;
    for (const std::size_t x : {0U, 2U}) expected[x] *= width / 85.0;
    for (const std::size_t y : {1U, 3U}) expected[y] *= height / 64.0;
    const std::vector<double> found = read(**module, width, height);
    EXPECT_TRUE(close(found, expected)) << width << ": " << shown(found) << "\ninstead of\n" << shown(expected);
  }
}

}  // namespace
}  // namespace leat::exec
