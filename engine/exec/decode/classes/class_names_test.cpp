// Names of classes from everywhere they come from.
#include "engine/exec/decode/classes/class_names.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace leat::exec {
namespace {

TEST(ClassNames, Presets) {
  const ClassNames eighty = preset_names("coco-80"), ninety = preset_names("coco-91");
  ASSERT_EQ(eighty.size(), 80U);
  EXPECT_EQ(eighty[0], "person");
  EXPECT_EQ(eighty[79], "toothbrush");
  ASSERT_EQ(ninety.size(), 91U);
  EXPECT_EQ(ninety[1], "person");
  EXPECT_EQ(ninety[90], "toothbrush");
  EXPECT_EQ(ninety[12], "") << "COCO has no 12";
  EXPECT_TRUE(preset_names("coco-81").empty());
}

TEST(ClassNames, PythonAndYamlLiterals) {
  const ClassNames wanted = {"person", "it's", "cow, brown"};
  EXPECT_EQ(names_in_literal("{0: 'person', 1: \"it's\", 2: 'cow, brown'}"), wanted);
  EXPECT_EQ(names_in_literal("['person', 'it\\'s', \"cow, brown\"]"), wanted);
  EXPECT_EQ(names_in_literal("[person, bus]"), (ClassNames{"person", "bus"}));
  EXPECT_EQ(names_in_literal("{'1': bus, '0': person}"), (ClassNames{"person", "bus"}));
  EXPECT_EQ(names_in_literal("{2: 'c'}"), (ClassNames{"", "", "c"}));
  EXPECT_EQ(names_in_literal("['a\tb\nc']"), (ClassNames{"a b c"}));
  for (const char* const wrong :
       {"", "person", "{", "[", "['a'", "{0: 'a'", "{a: b}", "{0}", "{99999999999999999999: a}"})
    EXPECT_TRUE(names_in_literal(wrong).empty()) << wrong;
  EXPECT_TRUE(names_in_literal("{70000: 'a'}").empty());
}

TEST(ClassNames, Files) {
  char folder[] = "/tmp/leat_names_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const auto read = [&](const std::string& name, const std::string& text) {
    std::ofstream(std::string(folder) + "/" + name) << text;
    return names_in_file(std::string(folder) + "/" + name);
  };
  const ClassNames wanted = {"person", "bus"};
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"labels.txt", "person\r\nbus\r\n\r\n"},
           {"block.yaml", "path: x\nnames:\n  0: person  # one\n  1: 'bus'\nnc: 2\n"},
           {"list.yaml", "names:\n- person\n- bus\ntrain: a\n"},
           {"flow.yml", "nc: 2\nnames: ['person',\n        'bus']\n"},
           {"map.yaml", "names: {0: person, 1: bus}\n"},
           {"config.json", R"({"id2label": {"1": "bus", "0": "person"}})"},
           {"names.json", R"(["person", "bus"])"}}) {
    const auto names = read(name, text);
    ASSERT_TRUE(names.ok()) << names.error();
    EXPECT_EQ(*names, wanted) << name;
  }
  EXPECT_FALSE(read("none.yaml", "train: a\n").ok());
  EXPECT_FALSE(read("broken.json", "{").ok());
  EXPECT_FALSE(read("empty.txt", "").ok());
  EXPECT_FALSE(names_in_file(std::string(folder) + "/absent").ok());
  std::filesystem::remove_all(folder);
}

TEST(ClassNames, OneForEachClass) {
  EXPECT_EQ(joined({"a", "b"}), "a\tb");
  EXPECT_TRUE(fits("a\tb", 2).ok());
  const Status wrong = fits("a\tb", 3);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().find("2 names"), std::string::npos) << wrong.error();
}

}  // namespace
}  // namespace leat::exec
