// Lines of answers: each kind of part by its schema and by value, their order, and readers who do not read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "tools/leat/answers/answer_json.h"
#include "tools/leat/answers/in_order.h"
#include "tools/leat/answers/line_writer.h"
#include "tools/leat/answers/stream_answers.h"

namespace leat::tools {
namespace {

// ---- what of JSON Schema the schema uses ----

class Schema {
 public:
  explicit Schema(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    root_ = Json::parse(text.str());
  }
  // What is wrong; empty: nothing.
  [[nodiscard]] std::string check(const Json& value) const { return check(value, root_, "$"); }

 private:
  [[nodiscard]] static bool is(const Json& v, const std::string& type) {
    if (type == "object") return v.is_object();
    if (type == "array") return v.is_array();
    if (type == "string") return v.is_string();
    if (type == "integer") return v.is_integer();
    if (type == "number") return v.is_number();
    if (type == "null") return v.is_null();
    return type == "boolean" && v.is_boolean();
  }
  [[nodiscard]] std::string check(const Json& v, const Json& schema, const std::string& at) const {
    if (const Json* ref = schema.find("$ref"); ref != nullptr)
      return check(v, root_["$defs"][ref->get<std::string>().substr(std::strlen("#/$defs/"))], at);
    if (const Json* any = schema.find("oneOf"); any != nullptr) {
      std::string all;
      int right = 0;
      for (const Json& one : *any) {
        const std::string wrong = check(v, one, at);
        right += wrong.empty() ? 1 : 0;
        all += wrong + "; ";
      }
      return right == 1 ? "" : "not one of them: " + all;
    }
    if (const Json* type = schema.find("type"); type != nullptr) {
      const Json types = type->is_array() ? *type : Json{*type};
      if (std::none_of(types.begin(), types.end(), [&](const Json& t) { return is(v, t.get<std::string>()); }))
        return at + " is of another type: " + v.dump();
    }
    if (const Json* only = schema.find("const"); only != nullptr && !(*only == v)) return at + " is " + v.dump();
    if (const Json* some = schema.find("enum");
        some != nullptr && std::find(some->begin(), some->end(), v) == some->end())
      return at + " is " + v.dump();
    if (const Json* low = schema.find("minimum"); low != nullptr && v.get<double>() < low->get<double>())
      return at + " is " + v.dump();
    if (const Json* pattern = schema.find("pattern");
        pattern != nullptr && !std::regex_search(v.get<std::string>(), std::regex(pattern->get<std::string>())))
      return at + " is " + v.dump();
    return v.is_array() ? check_elements(v, schema, at) : v.is_object() ? check_members(v, schema, at) : "";
  }
  [[nodiscard]] std::string check_elements(const Json& v, const Json& schema, const std::string& at) const {
    if (v.size() < schema.value("minItems", std::size_t{0}) || v.size() > schema.value("maxItems", SIZE_MAX >> 1))
      return at + " has " + std::to_string(v.size());
    if (const Json* items = schema.find("items"); items != nullptr)
      for (const Json& element : v)
        if (std::string wrong = check(element, *items, at + "[]"); !wrong.empty()) return wrong;
    return "";
  }
  [[nodiscard]] std::string check_members(const Json& v, const Json& schema, const std::string& at) const {
    for (const Json& key : schema.value("required", Json::array()))
      if (!v.contains(key.get<std::string>())) return at + " lacks " + key.dump();
    for (const auto& [key, member] : v.items()) {
      const Json* const known = schema["properties"].find(key);
      if (known == nullptr) return at + " has an unknown '" + key + "'";
      if (std::string wrong = check(member, *known, at + "." + key); !wrong.empty()) return wrong;
    }
    return "";
  }
  Json root_;
};

const Schema& schema() {
  static const Schema one(LEAT_SOURCE_DIR "/docs/reference/answer.schema.json");
  return one;
}

// ---- answers made by hand ----

struct Made {
  alignas(64) std::array<std::byte, 1 << 16> slot{};
  leat_answer answer{};
  std::size_t used = LEAT_PAYLOAD_OFFSET;

  Made() {
    answer.outcome = static_cast<std::uint8_t>(Outcome::completed);
    answer.capture_ns = leat_now_ns() - 30'000'000;
    answer.answered_ns = answer.capture_ns + 12'345'678;
    answer.result = &result();
    answer.result_bytes = slot.size();
    result().version = LEAT_RESULT_VERSION;
    result().frame_width = 640, result().frame_height = 360;
    result().model_version = 0xabcdef0123456789;
  }
  leat_result& result() { return *reinterpret_cast<leat_result*>(slot.data()); }
  void detect(float x, float score = 0.9f, std::int32_t class_id = 3) {
    result().kind = LEAT_RESULT_DETECTIONS;
    leat_detection& d = result().detections[result().detection_count++];
    d.x0 = x, d.y0 = 10, d.x1 = x + 20, d.y1 = 40, d.score = score, d.class_id = class_id;
  }
  template <class T>
  void part(leat_part_kind kind, std::vector<std::uint32_t> dims, const std::vector<T>& rows, std::uint32_t dtype = 0,
            const std::string& behind = {}) {
    auto* parts = reinterpret_cast<leat_part*>(slot.data() + LEAT_PARTS_OFFSET);
    leat_part& p = parts[result().part_count++];
    p.kind = static_cast<std::uint16_t>(kind), p.dtype = dtype, p.rank = static_cast<std::uint32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), p.dims);
    p.offset = used, p.bytes = rows.size() * sizeof(T) + behind.size();
    std::memcpy(slot.data() + used, rows.data(), rows.size() * sizeof(T));
    std::memcpy(slot.data() + used + rows.size() * sizeof(T), behind.data(), behind.size());
    std::snprintf(p.name, sizeof p.name, "out%u", result().part_count);
    used = (used + p.bytes + 63) / 64 * 64;
  }
};

// A pipe and its other end.
struct Pipe {
  Pipe() {
    int ends[2] = {};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read.reset(ends[0]), write.reset(ends[1]);
    path = "/proc/self/fd/" + std::to_string(ends[1]);
  }
  std::unique_ptr<LineWriter> open(std::size_t max_bytes = 1 << 20) {
    auto writer = LineWriter::open(path, {.max_bytes = max_bytes, .notice = lost_line});
    EXPECT_TRUE(writer.ok()) << (writer.ok() ? "" : writer.error());
    write.reset();
    return std::move(*writer);
  }
  std::vector<std::string> lines() {  // to its end
    std::string text;
    char piece[4096];
    for (ssize_t n; (n = ::read(read.get(), piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(n));
    std::vector<std::string> out;
    std::stringstream stream(text);
    for (std::string line; std::getline(stream, line);) out.push_back(line);
    return out;
  }
  Fd read, write;
  std::string path;
};

constexpr std::int64_t kLong = 20'000'000'000;

std::vector<Json> lines_of(const std::function<void(StreamAnswers&)>& act, StreamAnswersOptions options = {}) {
  Pipe pipe;
  {
    auto writer = pipe.open();
    options.stream = "gate", options.application = "people";
    auto answers = StreamAnswers::make(std::move(options), *writer);
    EXPECT_TRUE(answers.ok());
    act(*answers);
    writer->finish(kLong);
  }
  std::vector<Json> out;
  for (const std::string& line : pipe.lines()) {
    out.push_back(Json::parse(line));
    EXPECT_EQ(schema().check(out.back()), "") << line;
  }
  return out;
}

TEST(AnswerLines, OfEachKindAreAsTheSchemaSays) {
  Made all;
  all.detect(100);
  all.detect(200, 0.5f);
  all.result().detections[0].label_count = 1;
  all.result().detections[0].labels[0] = {.head = 1, .class_id = 4, .score = 0.75f};
  all.part<leat_box>(LEAT_PART_boxes, {1}, {{1, 2, 3, 4, 0.5f, 7, {}}});
  all.part<leat_oriented_box>(LEAT_PART_oriented, {1}, {{5, 6, 7, 8, 0.5f, 0.25f, 1, 0}});
  all.part<leat_keypoint>(LEAT_PART_keypoints, {1, 2}, {{1.25f, 2, 0.5f}, {3, 4, 1}});
  all.part<leat_mask>(LEAT_PART_masks, {1}, {{0, 0, 10, 10, 4, 2, sizeof(leat_mask), 2}}, 0,
                      std::string("\x06\x01", 2));
  all.part<leat_text>(LEAT_PART_text, {1}, {{{0, 0, 9, 0, 9, 5, 0, 5}, 0.99f, sizeof(leat_text), 5, 0}}, 0, "Grüß");
  all.part<leat_class>(LEAT_PART_classes, {2, 2}, {{1, 0.6f}, {2, 0.4f}, {5, 0.9f}, {0, 0}});
  all.part<float>(LEAT_PART_embedding, {3}, {0.5f, -1, 2}, LEAT_F32);
  all.part<_Float16>(LEAT_PART_map, {2, 2}, {0, 1, 2, 3}, LEAT_F16);
  all.part<std::int64_t>(LEAT_PART_tensor, {5000}, std::vector<std::int64_t>(5000, 4), LEAT_I64);
  const auto lines = lines_of([&](StreamAnswers& answers) { answers.add(0, 17, all.answer); });
  ASSERT_EQ(lines.size(), 1U);
  const Json& line = lines[0];
  EXPECT_EQ(line["stream"], "gate");
  EXPECT_EQ(line["picture"], 17);
  EXPECT_EQ(line["latency_ms"], 12.35);
  EXPECT_EQ(line["size"], (Json{640, 360}));
  EXPECT_EQ(line["model_version"], "abcdef0123456789");
  EXPECT_EQ(line["detections"][0].dump(),
            R"({"class":3,"score":0.9,"box":[100.0,10.0,120.0,40.0],"labels":[{"class":4,"score":0.75,"head":1}]})");
  const Json& parts = line["parts"];
  ASSERT_EQ(parts.size(), 9U);
  EXPECT_EQ(parts[0]["boxes"][0]["box"], (Json{1, 2, 3, 4}));
  EXPECT_EQ(parts[1]["boxes"][0]["angle"], 0.5);
  EXPECT_EQ(parts[2]["points"], (Json{Json{1.3, 2, 0.5}, Json{3, 4, 1}}));
  EXPECT_EQ(parts[3]["masks"][0]["runs"], (Json{1, 2, 1, 1, 3})) << ".##./#...";
  EXPECT_EQ(parts[4]["lines"][0]["text"], "Gr\xc3\xbc\xef\xbf\xbd") << "five bytes end within a letter";
  EXPECT_EQ(parts[5]["classes"].size(), 3U);
  EXPECT_EQ(parts[5]["classes"][2]["head"], 1);
  EXPECT_EQ(parts[6]["values"], (Json{0.5, -1, 2}));
  EXPECT_EQ(parts[7]["max"], 3);
  EXPECT_EQ(parts[8]["mean"], 4);
  EXPECT_FALSE(parts[8].contains("values")) << "too many";
}

TEST(AnswerLines, OfFramesWithoutAResultSayWhy) {
  leat_answer dropped{};
  dropped.outcome = static_cast<std::uint8_t>(Outcome::dropped);
  dropped.reason = static_cast<std::uint8_t>(Reason::overload);
  const auto lines = lines_of([&](StreamAnswers& answers) { answers.add(0, 0, dropped); });
  EXPECT_EQ(lines.at(0)["outcome"], "dropped");
  EXPECT_EQ(lines.at(0)["reason"], "overload");
  EXPECT_FALSE(lines.at(0).contains("detections"));
  EXPECT_FALSE(lines.at(0).contains("damaged"));
}

TEST(AnswerLines, OfNumbersThatAreNotFiniteSaySo) {
  Made made;
  made.detect(100);
  made.result().flags = LEAT_RESULT_NOT_FINITE;
  const auto lines = lines_of([&](StreamAnswers& answers) { answers.add(0, 0, made.answer); });
  EXPECT_EQ(lines.at(0)["not_finite"], true);
  EXPECT_FALSE(lines.at(0).contains("damaged"));
}

TEST(AnswerLines, OfDamagedFramesSaySo) {
  Made made;
  made.detect(100);
  made.answer.flags = LEAT_ANSWER_DAMAGED;
  const auto lines = lines_of([&](StreamAnswers& answers) { answers.add(0, 0, made.answer); });
  EXPECT_EQ(lines.at(0)["damaged"], true);
  EXPECT_EQ(lines.at(0)["outcome"], "completed");
}

TEST(AnswerLines, AreInTheOrderOfTheFramesAndHaveIdentities) {
  const auto lines = lines_of(
      [&](StreamAnswers& answers) {
        leat_answer dropped{};
        dropped.outcome = static_cast<std::uint8_t>(Outcome::dropped);
        for (const std::uint64_t number : {1u, 0u, 3u, 4u, 2u, 5u}) {
          Made made;
          made.answer.capture_ns = static_cast<std::int64_t>(number) * 33'000'000;
          made.detect(10 * static_cast<float>(number));
          made.detect(300);
          answers.add(number, number, number == 3 ? dropped : made.answer);
        }
      },
      {.tracks = true});
  ASSERT_EQ(lines.size(), 6U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["picture"], i);
    if (i == 3) continue;
    EXPECT_EQ(lines[i]["detections"][0]["track"], 1) << i;
    EXPECT_EQ(lines[i]["detections"][1]["track"], 2) << i;
  }
}

TEST(AnswerLines, LeaveOutWhatIsNotWanted) {
  const auto lines = lines_of(
      [&](StreamAnswers& answers) {
        Made made;
        made.detect(100, 0.9f, 3);
        made.detect(200, 0.8f, 4);
        made.detect(300, 0.3f, 3);
        made.detect(400, 0.9f, 3);
        answers.add(0, 0, made.answer);
      },
      {.tracks = true, .min_score = 0.5f, .classes = {3}});
  const Json& found = lines.at(0)["detections"];
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["index"], 0);
  EXPECT_EQ(found[1]["index"], 3) << "rows of parts are those of all detections";
  EXPECT_EQ(found[1]["track"], 2);
}

// ---- readers ----

TEST(LineWriter, AReaderWhoDoesNotReadCostsLinesAndSaysSo) {
  Pipe pipe;
  auto writer = pipe.open(10'000);
  const std::string text(99, 'x');
  constexpr std::uint64_t kLines = 5000;
  for (std::uint64_t i = 0; i < kLines; ++i) writer->push(text);  // half a megabyte, and nobody reads
  const auto before = writer->figures();
  EXPECT_GT(before.lost, kLines / 2);
  std::vector<std::string> got;
  std::thread reader([&] { got = pipe.lines(); });
  writer->finish(kLong);
  const auto after = writer->figures();
  writer.reset();
  reader.join();
  EXPECT_EQ(after.written + after.lost, kLines);
  EXPECT_EQ(after.lost, before.lost);
  std::uint64_t said = 0;
  std::erase_if(got, [&](const std::string& line) {
    if (line == text) return false;
    said += Json::parse(line)["lost"].get<std::uint64_t>();
    return true;
  });
  EXPECT_EQ(got.size(), after.written);
  EXPECT_EQ(said, after.lost);
}

TEST(LineWriter, AReaderWhoGoesCostsLinesAndNothingElse) {
  Pipe pipe;
  auto writer = pipe.open();
  pipe.read.reset();
  for (int i = 0; i < 100; ++i) writer->push("line");
  writer->finish(kLong);
  EXPECT_EQ(writer->figures().lost, 100U);
  EXPECT_EQ(writer->figures().trouble, "its reader is gone");
  EXPECT_TRUE(writer->reader_gone());
}

TEST(LineWriter, NobodyWaitsForASlowReaderAtTheEnd) {
  Pipe pipe;
  auto writer = pipe.open();
  for (int i = 0; i < 5000; ++i) writer->push(std::string(99, 'x'));
  writer->finish(0);
  const auto figures = writer->figures();
  EXPECT_EQ(figures.written + figures.lost, 5000U);
  EXPECT_GT(figures.lost, 0U);
}

// Who takes something each time that the patience is over gets everything, be it ever so short.
TEST(LineWriter, AReaderWhoReadsIsWaitedForWhereThatIsWanted) {
  Pipe pipe;
  auto writer = pipe.open();
  constexpr std::uint64_t kLines = 5000;
  for (std::uint64_t i = 0; i < kLines; ++i) writer->push(std::string(99, 'x'));
  std::vector<char> some(1 << 16);
  // finish() asks with its lock held, which the writing thread needs for its next line: a read must not block there.
  ASSERT_EQ(::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK), 0);
  writer->finish(50'000'000, [&] { return ::read(pipe.read.get(), some.data(), some.size()) > 0; });
  EXPECT_EQ(writer->figures().written, kLines) << writer->figures().trouble;
}

TEST(LineWriter, WhatIsLostAtTheEndIsSaidToAReaderWhoReadsOn) {
  Pipe pipe;
  auto writer = pipe.open();
  constexpr std::uint64_t kLines = 5000;
  for (std::uint64_t i = 0; i < kLines; ++i) writer->push(std::string(99, 'x'));
  std::thread end([&] {
    writer->finish(1, [] { return true; });  // he takes nothing
  });
  while (writer->figures().lost == 0) std::this_thread::yield();
  std::thread closes([&] {
    end.join();
    writer.reset();
  });
  const auto lines = pipe.lines();
  closes.join();
  ASSERT_FALSE(lines.empty());
  const auto lost = Json::parse(lines.back())["lost"].get<std::uint64_t>();
  EXPECT_GT(lost, 0U);
  std::uint64_t whole = 0;
  for (const std::string& line : lines) whole += line == std::string(99, 'x') ? 1 : 0;
  EXPECT_EQ(whole + lost, kLines);
}

// More than a pipe holds, and a reader who begins to read when its writer is about to end.
TEST(LineWriter, ALineThatHasBegunIsEndedForAReaderWhoReads) {
  Pipe pipe;
  auto writer = pipe.open();
  writer->push(std::string(500'000, 'x'));
  pollfd begun{pipe.read.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&begun, 1, -1), 1);
  std::thread end([&] {
    writer->finish(0);
    EXPECT_EQ(writer->figures().written, 1U) << writer->figures().trouble;
    writer.reset();
  });
  const auto lines = pipe.lines();
  end.join();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].size(), 500'000U);
}

TEST(LineWriter, AFileIsAppendedTo) {
  const std::string path = ::testing::TempDir() + "lines-" + std::to_string(getpid());
  for (int round = 0; round < 2; ++round) {
    auto writer = LineWriter::open(path, {.notice = lost_line});
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 1000; ++i) (*writer)->push("line " + std::to_string(i));
    (*writer)->finish(kLong);
    EXPECT_EQ((*writer)->figures().written, 1000U);
  }
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) EXPECT_EQ(line, "line " + std::to_string(lines % 1000));
  EXPECT_EQ(lines, 2000);
  unlink(path.c_str());
  const auto wrong = LineWriter::open("/nowhere/at/all", {.notice = lost_line});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error(), "answers cannot be written to '/nowhere/at/all': No such file or directory");
}

// A file that may not grow for a while, as on a full disk: what was cut short stands in a line of its own.
TEST(LineWriter, ALineThatWasCutShortIsNotGluedToAnother) {
  const std::string path = ::testing::TempDir() + "torn-" + std::to_string(getpid());
  auto writer = LineWriter::open(path, {.notice = lost_line});
  ASSERT_TRUE(writer.ok());
  const auto until = [&](std::uint64_t lines) {
    while ((*writer)->figures().written + (*writer)->figures().lost < lines) std::this_thread::yield();
  };
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 15, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 3; ++i) (*writer)->push("0123456789");
  until(3);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  (*writer)->push("whole");
  (*writer)->finish(kLong);
  EXPECT_EQ((*writer)->figures().lost, 2U);
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_EQ(lines, (std::vector<std::string>{"0123456789", "0123", lost_line(2), "whole"}));
  unlink(path.c_str());
}

TEST(InOrder, HoldsWhatComesEarly) {
  InOrder<int> order;
  std::vector<int> out;
  const auto next = [&](int v) { out.push_back(v); };
  for (const int n : {2, 0, 1, 4, 3, 8, 7}) order.add(static_cast<std::uint64_t>(n), n, next);
  EXPECT_EQ(out, (std::vector<int>{0, 1, 2, 3, 4}));
  order.finish(0, next);
  EXPECT_EQ(out, (std::vector<int>{0, 1, 2, 3, 4, 7, 8})) << "5 and 6 never came";
}

}  // namespace
}  // namespace leat::tools
