#include "tools/leat/bridge/model_names.h"

#include <gtest/gtest.h>

namespace leat::tools {
namespace {

using Names = std::vector<std::string>;

TEST(ModelNames, GivenThenByNameThenForAllOthersThenTheOnlyOne) {
  ModelNames names{.given = {{"yolov9.onnx", "yard"}}, .otherwise = "", .served = Names{"yard", "faces"}};
  EXPECT_EQ(*names.application_of("yolov9.onnx"), "yard");
  EXPECT_EQ(*names.application_of("faces.onnx"), "faces");
  EXPECT_FALSE(names.application_of("other.onnx").ok());
  EXPECT_FALSE(names.application_of("").ok());
  names.otherwise = "faces";
  EXPECT_EQ(*names.application_of("other.onnx"), "faces");
  EXPECT_EQ(*names.application_of(""), "faces");
  names = {.given = {}, .otherwise = "", .served = Names{"only"}};
  EXPECT_EQ(*names.application_of("anything.tflite"), "only");
  EXPECT_EQ(*names.application_of(""), "only");
}

TEST(ModelNames, BeforeLeatdWasAskedNothingIsRefused) {
  ModelNames names{.given = {{"a", "yard"}}, .otherwise = "", .served = {}};
  EXPECT_EQ(*names.application_of("a.onnx"), "yard");
  EXPECT_EQ(*names.application_of("b.onnx"), "");
  names.served = Names{"faces", "plates"};
  EXPECT_FALSE(names.application_of("a.onnx").ok()) << "what was given is not served";
}

TEST(ModelNames, TheOptionIsNameAndApplication) {
  EXPECT_EQ(*parse_model("a=b"), (std::pair<std::string, std::string>("a", "b")));
  for (const char* wrong : {"a", "=b", "a=", ""}) EXPECT_FALSE(parse_model(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace leat::tools
