// Raw frames that another program made, of each format, range and matrix: the RGB that a model sees of them against
// zimg's (README.md), from preprocess.cpp, from the device's kernels over the stand-in driver, and through leatd from
// the C++ client.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cuda/device/stand_in_host.h"
#include "engine/exec/device.h"
#include "engine/exec/picture/preprocess.h"
#include "engine/exec/test/test_graph.h"
#include "leat/executor.h"
#include "leat/result_parts.h"
#include "shm/src/segments/segment_layout.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

constexpr double kLargest = 2, kMean = .5;  // of 255
constexpr const char* kWords = "stretch rgb norm=raw";

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Raw {
  std::string name, bytes;
  std::uint32_t format = 0, width = 0, height = 0, frames = 0, stride = 0;
  shm::Color said;            // what only its user knows; unspecified: nothing
  std::vector<int> expected;  // of all frames: each place of the grid, R, G, B
  std::size_t columns = 0, rows = 0;

  [[nodiscard]] const std::uint8_t* frame(std::uint32_t i) const {
    return reinterpret_cast<const std::uint8_t*>(bytes.data()) + bytes.size() / frames * i;
  }
};

shm::Color color_of(const std::string& said) {
  if (said.empty()) return {};
  const bool full = said.starts_with("full");
  const std::string matrix = said.substr(full ? 4 : 7);
  return {static_cast<std::uint8_t>(full ? LEAT_COLOR_RANGE_full : LEAT_COLOR_RANGE_limited),
          static_cast<std::uint8_t>(matrix == "601"   ? LEAT_COLOR_MATRIX_bt601
                                    : matrix == "709" ? LEAT_COLOR_MATRIX_bt709
                                                      : LEAT_COLOR_MATRIX_bt2020)};
}

std::uint32_t format_of(const std::string& name) {
  if (name == "nv12") return LEAT_FORMAT_nv12;
  if (name == "i420") return LEAT_FORMAT_i420;
  if (name == "rgb24") return LEAT_FORMAT_rgb24;
  if (name == "bgr24") return LEAT_FORMAT_bgr24;
  return LEAT_FORMAT_gray8;
}

std::vector<Raw> raw_inputs() {
  const std::string folder = LEAT_REAL_INPUTS;
  std::vector<Raw> out;
  for (const Json& one : Json::parse(text_of(folder + "/inputs.json"))) {
    if (one["kind"] != "raw") continue;
    const auto number = [&](const char* key) { return one[key].get<std::uint32_t>(); };
    Raw raw{.name = one["file"].get<std::string>(),
            .width = number("width"),
            .height = number("height"),
            .frames = number("frames"),
            .stride = number("stride")};
    raw.format = format_of(one["format"].get<std::string>()), raw.said = color_of(one["said"].get<std::string>());
    raw.bytes = text_of(folder + "/files/" + raw.name);
    std::ifstream ppm(folder + "/expected/" + raw.name + ".ppm", std::ios::binary);
    std::string kind;
    int highest = 0;
    ppm >> kind >> raw.columns >> raw.rows >> highest;
    ppm.get();
    for (int c = 0; (c = ppm.get()) != EOF;) raw.expected.push_back(c);
    raw.rows /= raw.frames;
    out.push_back(std::move(raw));
  }
  return out;
}

// `value(channel, x, y)` of the frame, in pixels.
template <class Value>
void expect_as_sent(const Raw& raw, std::uint32_t frame, const Value& value) {
  double largest = 0, sum = 0;
  const std::size_t count = raw.columns * raw.rows * 3;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = i / 3, x = place % raw.columns * raw.stride, y = place / raw.columns * raw.stride;
    const double seen = value(i % 3, x, y), by = std::abs(seen - raw.expected[frame * count + i]);
    largest = std::max(largest, by), sum += by;
  }
  EXPECT_LE(largest, kLargest) << raw.name << " frame " << frame;
  EXPECT_LE(sum / static_cast<double>(count), kMean) << raw.name << " frame " << frame;
}

exec::FrameView view_of(const Raw& raw, std::uint32_t frame) {
  exec::FrameView view{.format = raw.format,
                       .width = raw.width,
                       .height = raw.height,
                       .color = raw.said,
                       .bytes = raw.bytes.size() / raw.frames};
  const std::uint8_t* at = raw.frame(frame);
  for (std::uint32_t p = 0; p < shm::plane_count(raw.format); ++p) {
    const shm::PlaneShape shape = shm::plane_shape(raw.format, p, raw.width, raw.height);
    view.planes[p] = at, view.strides[p] = shape.row_bytes;
    at += std::size_t{shape.row_bytes} * shape.rows;
  }
  return view;
}

TEST(AsSent, FramesOfEachColorOnTheProcessor) {
  const auto inputs = raw_inputs();
  ASSERT_GE(inputs.size(), 10U);
  for (const Raw& raw : inputs) {
    auto opened = exec::Preprocessor::open(*exec::parse_preprocess(kWords), 3, raw.width, raw.height);
    ASSERT_TRUE(opened.ok()) << opened.error();
    const std::size_t plane = std::size_t{raw.width} * raw.height;
    std::vector<float> seen(3 * plane);
    for (std::uint32_t frame = 0; frame < raw.frames; ++frame) {
      ASSERT_TRUE(opened->run(view_of(raw, frame), nullptr, seen.data()));
      expect_as_sent(raw, frame, [&](auto c, auto x, auto y) { return seen[c * plane + y * raw.width + x]; });
    }
  }
}

TEST(AsSent, FramesOfEachColorOnTheDevice) {
  const auto host = stand_in_host();
  ASSERT_NE(host, nullptr) << ::dlerror();
  void* const library = ::dlopen(LEAT_DEVICE_PLUGIN, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto* const plugin = reinterpret_cast<const leat_device_api* (*)()>(::dlsym(library, "leat_device_entry"))();
  char error[256] = "";
  leat_device* device = nullptr;
  const leat_device_options options{nullptr, LEAT_PICTURE_UPLOADED};
  ASSERT_EQ(plugin->open(&options, &device, error, sizeof error), LEAT_DEVICE_OK) << error;
  for (const Raw& raw : raw_inputs()) {
    auto opened = exec::Preprocessor::open(*exec::parse_preprocess(kWords), 3, raw.width, raw.height);
    ASSERT_TRUE(opened.ok()) << opened.error();
    const std::size_t plane = std::size_t{raw.width} * raw.height;
    std::vector<float> seen(3 * plane);
    leat_device_memory memory{};
    ASSERT_EQ(plugin->allocate(device, seen.size() * sizeof(float), 0, &memory, error, sizeof error), LEAT_DEVICE_OK);
    for (std::uint32_t frame = 0; frame < raw.frames; ++frame) {
      leat_picture_job job{};
      ASSERT_TRUE(opened->job(view_of(raw, frame), nullptr, &job));
      job.out = memory.address;
      const leat_picture_target target{raw.width, raw.height, 3, LEAT_F32, LEAT_NCHW, LEAT_RESIZE_linear};
      ASSERT_EQ(plugin->pictures(device, &target, &job, 1, error, sizeof error), LEAT_DEVICE_OK) << error;
      ASSERT_EQ(plugin->copy(device, seen.data(), memory.address, seen.size() * sizeof(float), error, sizeof error),
                LEAT_DEVICE_OK);
      ASSERT_EQ(plugin->wait(device, error, sizeof error), LEAT_DEVICE_OK) << error;
      expect_as_sent(raw, frame, [&](auto c, auto x, auto y) { return seen[c * plane + y * raw.width + x]; });
    }
    plugin->release(device, &memory);
  }
  plugin->close(device);
}

// Its output is its input.
std::string identity_model(const ScratchFolder& folder, std::uint32_t width, std::uint32_t height) {
  exec::TestGraph graph;
  const std::vector<exec::TestGraph::Dim> dims = {1, 3, static_cast<int>(height), static_cast<int>(width)};
  graph.output(graph.op("Identity", {graph.input("x", exec::TestGraph::f32, dims)}, "y"), exec::TestGraph::f32, dims);
  graph.save(folder.path() + "/identity.onnx");
  return folder.path() + "/identity.onnx";
}

enum class Saying { of_the_stream, of_each_frame };

void serve_from_client(const Raw& raw, Client& client, Saying saying) {
  StreamOptions options;
  options.application = "identity";
  options.format = raw.format, options.width = raw.width, options.height = raw.height;
  options.depth = options.slots = 2;
  options.overload = LEAT_OVERLOAD_never_drop;
  // Where each frame says it, the stream says something else.
  if (saying == Saying::of_the_stream) options.color_range = raw.said.range, options.color_matrix = raw.said.matrix;
  if (saying == Saying::of_each_frame && raw.said != shm::Color{})
    options.color_range = LEAT_COLOR_RANGE_limited, options.color_matrix = LEAT_COLOR_MATRIX_bt601;
  auto stream = client.open_stream(options);
  ASSERT_TRUE(stream.ok()) << stream.error();
  for (std::uint32_t i = 0; i < raw.frames; ++i) {
    auto frame = stream->acquire();
    ASSERT_TRUE(frame);
    const std::uint8_t* from = raw.frame(i);
    for (std::uint32_t p = 0; p < frame->raw().plane_count; ++p)
      for (std::uint32_t y = 0; y < frame->raw().rows[p]; ++y, from += frame->raw().row_bytes[p])
        std::memcpy(frame->raw().planes[p] + std::size_t{y} * frame->raw().strides[p], from, frame->raw().row_bytes[p]);
    leat_submit_options more{};
    if (saying == Saying::of_each_frame) more.color_range = raw.said.range, more.color_matrix = raw.said.matrix;
    ASSERT_EQ(frame->submit(more), LEAT_ERROR_ok) << leat_last_error();
    const auto answer = client.next_answer(kPatience);
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->outcome(), Outcome::completed) << name_of(answer->reason());
    leat_part_view part{};
    ASSERT_TRUE(leat_part_at(answer->result(), answer->raw().result_bytes, 0, &part));
    const auto* const seen = static_cast<const float*>(part.data);
    const std::size_t plane = std::size_t{raw.width} * raw.height;
    ASSERT_EQ(part.count, 3 * plane);
    expect_as_sent(raw, i, [&](auto c, auto x, auto y) { return seen[c * plane + y * raw.width + x]; });
  }
}

TEST(AsSent, FramesOfEachColorFromTheClientThroughLeatd) {
  const auto inputs = raw_inputs();
  const ScratchFolder folder;
  const Leatd leatd(
      "[[partition]]\nname = \"p\"\nkind = \"cpu\"\ncores = \"0\"\n[[application]]\nname = \"identity\"\nslo_ms = "
      "60000\n[[application.module]]\nname = \"m\"\nmodel = \"" +
      identity_model(folder, inputs.front().width, inputs.front().height) + "\"\npreprocess = \"" + kWords +
      "\"\npostprocess = \"tensors\"\nbatch = 1\n");
  auto client = Client::connect(leatd.socket(), "as_sent_test");
  ASSERT_TRUE(client.ok()) << client.error();
  for (const Raw& raw : inputs)
    for (const Saying saying : {Saying::of_the_stream, Saying::of_each_frame}) serve_from_client(raw, *client, saying);
}

}  // namespace
}  // namespace leat::test
