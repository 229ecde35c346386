#include "engine/exec/test/striped_text.h"

#include <fstream>
#include <random>

#include "engine/exec/test/test_graph.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kLetter = 4, kMargin = 4;  // columns

}  // namespace

std::string save_striped_text_model(const std::string& folder) {
  std::ofstream(folder + "/keys.txt") << "a\nb\n";
  TestGraph g;
  g.input("x", TestGraph::f32, {"n", 3, std::int64_t{StripedText::kHeight}, "w"});
  const std::string colours = g.op("ReduceMean", {"x"}, "", {{"axes", {2}}}, {{"keepdims", 0}});  // [n, 3, w]
  // How much of a column's neighbourhood lies within the picture; what is missing speaks for red, which is blank.
  const std::string ones = g.op("Add", {g.op("Sub", {"x", "x"}), g.constant("", {1}, {1})});
  const std::string plane = g.op("ReduceMean", {ones}, "", {{"axes", {1}}}, {{"keepdims", 1}});
  const std::string within =
      g.op("AveragePool", {plane}, "", {{"kernel_shape", {1, 9}}, {"pads", {0, 4, 0, 4}}}, {{"count_include_pad", 1}});
  const std::string there = g.op("ReduceMean", {within}, "", {{"axes", {2}}}, {{"keepdims", 0}});  // [n, 1, w]
  const std::string missing = g.op("Sub", {g.constant("", {1}, {1}), there});
  const std::string unseen = g.op("Mul", {missing, g.constant("", {1, 3, 1}, {4, 0, 0})});
  g.output(g.op("Transpose", {g.op("Add", {colours, unseen})}, "y", {{"perm", {0, 2, 1}}}), TestGraph::f32,
           {"n", "w", 3});
  g.save(folder + "/stripes.onnx");
  return folder + "/stripes.onnx";
}

StripedText::StripedText(std::string_view letters)
    : width(2 * kMargin + kLetter * static_cast<std::uint32_t>(letters.size())),
      rgb(std::size_t{width} * kHeight * 3, 0) {
  for (std::uint32_t x = 0; x < width; ++x) {
    const std::uint32_t at = x < kMargin ? UINT32_MAX : (x - kMargin) / kLetter;
    const bool ink = at < letters.size() && (x - kMargin) % kLetter < 2;
    for (std::uint32_t y = 0; y < kHeight; ++y)
      rgb[(std::size_t{y} * width + x) * 3 + (!ink ? 0 : letters[at] == 'a' ? 1 : 2)] = 255;
  }
}

FrameView StripedText::view() const {
  FrameView f;
  f.planes[0] = rgb.data(), f.strides[0] = width * 3;
  f.format = LEAT_FORMAT_rgb24, f.width = width, f.height = kHeight, f.bytes = rgb.size();
  return f;
}

std::string striped_letters(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += random() % 2 == 0 ? 'a' : 'b';
  return out;
}

}  // namespace leat::exec
