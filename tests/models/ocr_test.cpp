// PP-OCR (docs/examples/ocr.toml) on pictures drawn here: its tensors against golden figures made with ONNX Runtime's
// own bindings, sixty lines read one by one, and a page through a real leatd. Skipped where the models were not fetched
// (`tools/setup --example ocr`) or the fonts are not installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>

#include "engine/exec/module.h"
#include "engine/exec/registry.h"
#include "leat/result_parts.h"
#include "shm/src/counters/counters.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/scene/text/ocr_pictures.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using scene::kOcrLines;
using scene::kOcrPage;
using scene::TextPainter;
using scene::TextPicture;

std::string models() { return LEAT_OCR_MODELS; }

class Ocr : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::ifstream(models() + "/keys.txt")) GTEST_SKIP() << "tools/setup --example ocr fetches the models";
    for (const std::string_view font : scene::kOcrFonts)
      if (!TextPainter::has_font(font)) GTEST_SKIP() << "the package fonts-dejavu-core is not installed";
  }
};

// ---- tensors ----

struct Golden {
  const char* file;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> dims;
  double mean, rms, max;
  std::size_t at;
  float first[4];
};

TEST_F(Ocr, TensorsAreTheReferences) {
  // PP-OCRv4 on element i = sin(0.001 i), one thread.
  const Golden rows[] = {
      {"read.onnx",
       {1, 3, 48, 320},
       {1, 40, 6625},
       0.0001509434,
       0.01052897,
       0.8847536,
       132500,
       {0.7089312F, 3.836587e-05F, 8.381294e-06F, 8.362854e-07F}},
      {"read.onnx",
       {1, 3, 48, 480},
       {1, 60, 6625},
       0.0001509434,
       0.01060681,
       0.9034851,
       33125,
       {0.4823815F, 5.258119e-05F, 4.943125e-06F, 2.974524e-06F}},
      {"read.onnx",
       {3, 3, 48, 320},
       {3, 40, 6625},
       0.0001509434,
       0.01030916,
       0.8847536,
       132500,
       {0.7089312F, 3.836587e-05F, 8.381294e-06F, 8.362854e-07F}},
      {"turn.onnx", {1, 3, 48, 192}, {1, 2}, 0.5, 0.5872324, 0.807964, 1, {0.192036F, 0.807964F}},
      {"find.onnx", {1, 3, 320, 320}, {1, 1, 320, 320}, 2.910383e-13, 9.313226e-11, 2.980232e-08, 52493, {}},
  };
  const auto executor = exec::find_executor("onnx");
  ASSERT_TRUE(executor.ok()) << executor.error();
  for (const Golden& g : rows) {
    const std::string path = models() + "/" + g.file;
    leat_session_options options{.model_path = path.c_str(), .end_block = UINT32_MAX, .batch_max = 3, .threads = 1};
    leat_session* session = nullptr;
    char error[256];
    ASSERT_EQ((*executor)->open(&options, &session, error, sizeof error), 0) << error;
    std::vector<float> x(static_cast<std::size_t>(
        std::accumulate(g.shape.begin(), g.shape.end(), std::int64_t{1}, std::multiplies<>())));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(0.001 * static_cast<double>(i)));
    leat_tensor in{}, out{};
    in.data = x.data(), in.bytes = x.size() * sizeof(float), in.rank = 4;
    std::copy(g.shape.begin(), g.shape.end(), in.shape);
    ASSERT_EQ((*executor)->run(session, static_cast<std::uint32_t>(g.shape[0]), &in, 1, &out, 1, error, sizeof error),
              0)
        << error;
    ASSERT_EQ(std::vector<std::int64_t>(out.shape, out.shape + out.rank), g.dims) << g.file;
    const auto* const y = static_cast<const float*>(out.data);
    const std::size_t count = out.bytes / sizeof(float);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < count; ++i) sum += y[i], squares += double{y[i]} * y[i];
    const std::size_t at = static_cast<std::size_t>(std::max_element(y, y + count) - y);
    EXPECT_NEAR(sum / static_cast<double>(count), g.mean, 1e-4 * std::max(g.mean, 1e-3)) << g.file;
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(count)), g.rms, 1e-4) << g.file;
    EXPECT_NEAR(y[at], g.max, 1e-4) << g.file;
    if (g.max > 1e-4) {  // the detector's answer to this is nothing everywhere
      EXPECT_EQ(at, g.at) << g.file;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(4, count); ++i) EXPECT_NEAR(y[i], g.first[i], 1e-4) << g.file;
    (*executor)->close(session);
  }
}

// ---- sixty lines ----

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j)
      before = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, before + (a[i - 1] != b[j - 1] ? 1 : 0)}));
  }
  return row.back();
}

struct Read {
  std::vector<std::string> texts;
  std::size_t exact = 0, wrong = 0, characters = 0, squeezed = 0;
  [[nodiscard]] double error_rate() const { return static_cast<double>(wrong) / static_cast<double>(characters); }
};

std::vector<TextPicture> pictures_of(std::span<const scene::OcrLine> lines) {
  const TextPainter painter;
  std::vector<TextPicture> out;
  for (const scene::OcrLine& l : lines)
    out.push_back(painter.line(l.text, {.font = l.font, .pixels = l.pixels, .ink = l.ink}, l.pixels / 5, l.paper));
  return out;
}

Read read_lines(std::span<const scene::OcrLine> lines, const std::vector<TextPicture>& pictures,
                const std::string& sizes, std::uint32_t batch) {
  Read out;
  auto module = exec::Module::open({.name = "read",
                                    .model_path = models() + "/read.onnx",
                                    .preprocess = sizes + " bgr norm=half",
                                    .postprocess = "text ctc keys=keys.txt",
                                    .batch_max = batch});
  EXPECT_TRUE(module.ok()) << module.error();
  if (!module.ok()) return out;
  const exec::PartSpec need = (*module)->parts().at(0);
  for (std::size_t first = 0; first < pictures.size(); first += batch) {
    const std::size_t count = std::min<std::size_t>(batch, pictures.size() - first);
    std::vector<std::vector<std::byte>> slots(count);
    std::vector<exec::Item> items;
    for (std::size_t i = 0; i < count; ++i) {
      slots[i].resize(LEAT_PAYLOAD_OFFSET + exec::round_part(need.bytes + need.tail));
      leat_part part = exec::entry_of(need, 0, false, 1);
      part.offset = LEAT_PAYLOAD_OFFSET;
      std::memcpy(slots[i].data() + LEAT_PARTS_OFFSET, &part, sizeof part);
      auto* const result = reinterpret_cast<leat_result*>(slots[i].data());
      result->part_count = 1;
      items.push_back({.frame = pictures[first + i].view(), .result = result, .parts = exec::parts_of(result, 0)});
    }
    std::vector<exec::ItemReport> reports(count);
    EXPECT_TRUE((*module)->run(items, reports)) << (*module)->error();
    for (std::size_t i = 0; i < count; ++i) {
      leat_part_view view;
      leat_text line;
      EXPECT_TRUE(leat_part_at(items[i].result, slots[i].size(), 0, &view));
      const char* const text = leat_text_at(&view, 0, &line);
      out.texts.emplace_back(text != nullptr ? text : "", line.length);
      out.squeezed += reports[i].squeezed != 0 ? 1 : 0;
      const std::string_view truth = lines[first + i].text;
      out.exact += out.texts.back() == truth ? 1 : 0;
      out.wrong += edits(truth, out.texts.back());
      out.characters += truth.size();
    }
  }
  return out;
}

TEST_F(Ocr, SixtyLines) {
  const std::vector<TextPicture> pictures = pictures_of(kOcrLines);
  const Read exact = read_lines(kOcrLines, pictures, "height=48 longest=1600", 1);
  const Read buckets = read_lines(kOcrLines, pictures, "height=48 widths=96,160,240,320,480,640,960,1600", 8);
  const Read alone = read_lines(kOcrLines, pictures, "height=48 widths=96,160,240,320,480,640,960,1600", 1);
  for (const auto& [what, read] : {std::pair{"exact widths", &exact}, {"widths in buckets", &buckets}})
    std::printf("%s: %zu of %zu exact, character error %.2f %%\n", what, read->exact, read->texts.size(),
                100 * read->error_rate());
  for (std::size_t i = 0; i < pictures.size(); ++i)
    if (exact.texts[i] != kOcrLines[i].text)
      std::printf("  '%s' read as '%s'\n", std::string(kOcrLines[i].text).c_str(), exact.texts[i].c_str());
  ASSERT_EQ(exact.texts.size(), 60u);
  EXPECT_GE(exact.exact, 49u);
  EXPECT_LE(exact.error_rate(), 0.013);
  EXPECT_LE(buckets.error_rate(), exact.error_rate() + 0.002);
  EXPECT_EQ(buckets.texts, alone.texts) << "a line's neighbours in a batch do not change it";
}

// Sixteen lines of 40 to 80 characters, in seven heights; all but one are wider than 960 pixels at the reader's height.
TEST_F(Ocr, WideLines) {
  const std::span<const scene::OcrLine> lines = scene::kOcrWideLines;
  for (const scene::OcrLine& l : lines) EXPECT_TRUE(l.text.size() >= 40 && l.text.size() <= 80) << l.text;
  const std::vector<TextPicture> pictures = pictures_of(lines);
  const Read split = read_lines(lines, pictures, "height=48 widths=96,160,240,320,480,640,960 wide=split", 8);
  const Read alone = read_lines(lines, pictures, "height=48 widths=96,160,240,320,480,640,960 wide=split", 1);
  const Read squeezed = read_lines(lines, pictures, "height=48 widths=96,160,240,320,480", 8);
  std::printf("in pieces: %zu of %zu exact, character error %.2f %%; squeezed into 480: %.2f %%\n", split.exact,
              split.texts.size(), 100 * split.error_rate(), 100 * squeezed.error_rate());
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (split.texts[i] != lines[i].text)
      std::printf("  '%s' read as '%s'\n", std::string(lines[i].text).c_str(), split.texts[i].c_str());
  EXPECT_LE(split.error_rate(), 0.02);
  EXPECT_EQ(split.squeezed, 0u);
  EXPECT_EQ(split.texts, alone.texts) << "a piece's neighbours in a batch do not change it";
  EXPECT_GT(squeezed.error_rate(), 0.1) << "what pieces are for";
  EXPECT_EQ(squeezed.squeezed, lines.size());
}

// ---- a page ----

std::string served(const std::string& partition) {
  std::ifstream file(models() + "/ocr.toml");
  std::stringstream text;
  text << file.rdbuf();
  std::string out = text.str();
  for (std::size_t at = 0; (at = out.find("model = \"", at)) != std::string::npos; at += 9)
    out.insert(at + 9, models() + "/");
  const std::size_t cpu = out.find("cpu = \"auto\"");
  if (cpu != std::string::npos) out.replace(cpu, 12, partition);
  return out;
}

// What the example makes of one page.
void with_answer(const Leatd& leatd, const TextPicture& page, const std::function<void(const Answer& answer)>& look) {
  auto client = Client::connect(leatd.socket(), "page");
  ASSERT_TRUE(client.ok()) << leatd.log();
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "ocr";
  o.format = LEAT_FORMAT_rgb24;
  o.width = page.width, o.height = page.height;
  o.overload = LEAT_OVERLOAD_never_drop;
  auto stream = client->open_stream(o);
  ASSERT_TRUE(stream.ok()) << stream.error() << leatd.log();
  auto frame = stream->acquire();
  ASSERT_TRUE(frame);
  for (std::uint32_t y = 0; y < page.height; ++y)
    std::memcpy(frame->raw().planes[0] + std::size_t{y} * frame->raw().strides[0],
                page.rgb.data() + std::size_t{y} * page.width * 3, std::size_t{page.width} * 3);
  ASSERT_EQ(frame->submit(), LEAT_ERROR_ok);
  const auto answer = client->next_answer(60s);
  ASSERT_TRUE(answer) << leatd.log();
  ASSERT_TRUE(answer->outcome() == Outcome::completed || answer->outcome() == Outcome::late)
      << name_of(answer->reason()) << leatd.log();
  look(*answer);
}

void check_page(const Answer& answer) {
  leat_part_view lines, texts;
  const leat_result* const result = answer.result();
  ASSERT_TRUE(leat_find_part(result, answer.raw().result_bytes, LEAT_PART_oriented, "lines", &lines));
  ASSERT_TRUE(leat_find_part(result, answer.raw().result_bytes, LEAT_PART_text, nullptr, &texts));
  EXPECT_EQ(texts.item, static_cast<std::uint32_t>(LEAT_ITEM_EACH));
  ASSERT_EQ(texts.dims[0], result->detection_count);
  std::size_t found = 0, exact = 0;
  for (const scene::OcrPageText& t : kOcrPage) {
    std::string said = "(not found)";
    for (std::uint32_t i = 0; i < result->detection_count; ++i) {
      const leat_detection& d = result->detections[i];
      if (t.x < d.x0 || t.x > d.x1 || t.y < d.y0 || t.y > d.y1) continue;
      leat_text line;
      const char* const text = leat_text_at(&texts, i, &line);
      said.assign(text != nullptr ? text : "", line.length);
      ++found;
      // The text's corners begin where it is read from: at its left end, whichever way it stands.
      const double radians = t.style.degrees * std::acos(-1.0) / 180;
      EXPECT_GT((line.quad[2] - line.quad[0]) * std::cos(radians) + (line.quad[3] - line.quad[1]) * std::sin(radians),
                50)
          << t.text;
      break;
    }
    exact += said == t.text ? 1 : 0;
    std::printf("  '%s' read as '%s'\n", t.text, said.c_str());
  }
  std::printf("page: %zu of 9 found, %zu exact, %u regions\n", found, exact, result->detection_count);
  EXPECT_EQ(found, 9u);
  EXPECT_GE(exact, 5u);
}

// Wide lines, upright and on their heads: each is read the right way up.
void check_wide_page(const Answer& answer) {
  leat_part_view texts;
  const leat_result* const result = answer.result();
  ASSERT_TRUE(leat_find_part(result, answer.raw().result_bytes, LEAT_PART_text, nullptr, &texts));
  std::vector<std::string> said(std::size(scene::kOcrWideLines));
  for (std::uint32_t i = 0; i < result->detection_count; ++i) {
    const leat_detection& d = result->detections[i];
    leat_text line;
    const char* const text = leat_text_at(&texts, i, &line);
    const auto row = static_cast<std::size_t>((d.y0 + d.y1) / 2 / scene::kOcrWidePageLine);
    ASSERT_LT(row, said.size());
    said[row].append(text != nullptr ? text : "", line.length);
  }
  std::size_t wrong = 0, characters = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const std::string_view truth = scene::kOcrWideLines[i].text;
    wrong += edits(truth, said[i]), characters += truth.size();
    if (said[i] != truth) std::printf("  '%s' read as '%s'\n", std::string(truth).c_str(), said[i].c_str());
  }
  std::printf("wide lines: character error %.2f %%, %u regions\n",
              100 * static_cast<double>(wrong) / static_cast<double>(characters), result->detection_count);
  EXPECT_LE(static_cast<double>(wrong), 0.02 * static_cast<double>(characters));
}

TEST_F(Ocr, PagesThroughLeatd) {
  const TextPainter painter;
  Leatd leatd(served("[[partition]]\nname = \"p\"\ncores = \"0\""));
  with_answer(leatd, ocr_page(painter), check_page);
  with_answer(leatd, ocr_wide_page(painter), check_wide_page);
  for (std::uint32_t m = 0; m < 3; ++m)
    EXPECT_EQ(leatd.record(shm::RecordKind::module, m)->value(shm::ModuleCounter::squeezed), 0U) << m;
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
