// `leat bridge zmq` between a real leatd and detectors that speak Frigate's protocol: what they see is what leatd
// finds, whatever the crop's layout; and every question is answered whatever happens to leatd.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <thread>
#include <zmq.hpp>

#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"
#include "tools/leat/bridge/detector_messages.h"
#include "tools/scene/scene.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using tools::DetectionTable;
using tools::kColumns;
using tools::kRows;

constexpr std::uint32_t kSide = 192;
constexpr int kPatienceMs = 60'000;  // the machine may have other work

std::string config_of(const std::vector<std::string>& applications) {
  std::string text = "[[partition]]\nname = \"p\"\ncores = \"0\"\n";
  for (const std::string& name : applications)
    text += "[[application]]\nname = \"" + name +
            "\"\nslo_ms = 60000\n[[application.module]]\nname = \"detect\"\nmodel = \"" LEAT_MODELS
            "/detect.onnx\"\npreprocess = \"letterbox mean=0.5 std=0.5\"\npostprocess = \"boxes stride=8 score=0.2 "
            "iou=0.6\"\nlabels = [\"object\"]\nbatch = 1\n";
  return text;
}

// A street as a camera of `camera` sees it, three bytes a pixel.
std::vector<std::uint8_t> street(std::uint32_t camera) {
  scene::Scene scene({.seed = 3, .camera = camera, .width = kSide, .height = kSide});
  std::vector<std::uint8_t> rgb(scene.rgb_bytes());
  scene.render(40, rgb.data(), std::size_t{3} * kSide);
  return rgb;
}

enum class Crop : std::uint8_t { bytes, byte_planes, floats, float_planes, denormalised_planes };

std::vector<std::byte> tensor_of(const std::vector<std::uint8_t>& rgb, Crop crop) {
  const bool planes = crop == Crop::byte_planes || crop == Crop::float_planes || crop == Crop::denormalised_planes;
  const bool floats = crop != Crop::bytes && crop != Crop::byte_planes;
  const float scale = crop == Crop::denormalised_planes ? 1.F : 1 / 255.F;
  std::vector<std::byte> out(rgb.size() * (floats ? sizeof(float) : 1));
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    const std::size_t to = planes ? i % 3 * (rgb.size() / 3) + i / 3 : i;
    const float value = static_cast<float>(rgb[i]) * scale;
    if (floats)
      std::memcpy(&out[to * sizeof value], &value, sizeof value);
    else
      out[to] = std::byte{rgb[i]};
  }
  return out;
}

// Frigate's detector: a REQ socket, one question at a time.
class Detector {
 public:
  explicit Detector(const std::string& endpoint) : socket_(context_, zmq::socket_type::req) {
    socket_.set(zmq::sockopt::rcvtimeo, kPatienceMs);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(endpoint);
  }
  std::optional<std::string> ask(const std::string& header, const std::vector<std::byte>& body = {}) {
    socket_.send(zmq::buffer(header), body.empty() ? zmq::send_flags::none : zmq::send_flags::sndmore);
    if (!body.empty()) socket_.send(zmq::buffer(body), zmq::send_flags::none);
    return answer();
  }
  std::optional<std::string> answer() {
    zmq::message_t message;
    if (!socket_.recv(message)) return std::nullopt;
    return message.to_string();
  }
  Json ask_for_model(const std::string& name) {
    const auto answer = ask(Json{{"model_request", true}, {"model_name", name}}.dump());
    return answer ? Json::parse(*answer) : Json();
  }
  bool model_served(const std::string& name) {
    return ask_for_model(name) == Json{{"model_available", true}, {"model_loaded", true}};
  }
  void send(const std::vector<std::uint8_t>& rgb, Crop crop) {
    const bool planes = crop == Crop::byte_planes || crop == Crop::float_planes || crop == Crop::denormalised_planes;
    const auto body = tensor_of(rgb, crop);
    const std::string shape = planes ? "[1, 3, 192, 192]" : "[1, 192, 192, 3]";
    const std::string header = R"({"shape": )" + shape + R"(, "dtype": ")" +
                               (body.size() > rgb.size() ? "float32" : "uint8") + R"(", "model_type": "yologeneric"})";
    socket_.send(zmq::buffer(header), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(body), zmq::send_flags::none);
  }
  std::optional<DetectionTable> detect(const std::vector<std::uint8_t>& rgb, Crop crop = Crop::bytes) {
    send(rgb, crop);
    return table();
  }
  std::optional<DetectionTable> table() {
    const auto text = answer();
    DetectionTable out;
    if (!text || text->size() != sizeof out) return std::nullopt;
    std::memcpy(out.data(), text->data(), sizeof out);
    return out;
  }
  void patience(int ms) { socket_.set(zmq::sockopt::rcvtimeo, ms); }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

// The program itself, at a socket of its own.
class Bridge {
 public:
  Bridge(const std::string& leatd_socket, std::vector<std::string> options = {})
      : endpoint_("ipc://" + folder_.path() + "/detector"), leatd_socket_(leatd_socket), options_(std::move(options)) {
    start();
  }
  ~Bridge() {
    if (pid_ != 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  const std::string& endpoint() const { return endpoint_; }
  void start() {
    std::vector<std::string> words = {LEAT_BINARY, "bridge",      "zmq",     "--endpoint", endpoint_,
                                      "--socket",  leatd_socket_, "--every", "0",          "--json"};
    words.insert(words.end(), options_.begin(), options_.end());
    pid_ = ::fork();
    if (pid_ == 0) {
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::dup2(::open((folder_.path() + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      ::dup2(::open((folder_.path() + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
      ::execv(LEAT_BINARY, argv.data());
      ::_exit(127);
    }
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Ends it; what it counted.
  Json stop() {
    ::kill(pid_, SIGTERM);
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    EXPECT_EQ(status, 0) << text("log");
    const std::string out = text("out");
    return Json::parse(out.substr(0, out.find('\n')));
  }
  std::string text(const char* file) const {
    std::ifstream in(folder_.path() + "/" + file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  ScratchFolder folder_;
  std::string endpoint_, leatd_socket_;
  std::vector<std::string> options_;
  pid_t pid_ = 0;
};

std::uint64_t sum_of(const Json& object) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : object.items()) sum += count.get<std::uint64_t>();
  return sum;
}
bool balances(const Json& counts) {
  return counts.at("questions").get<std::uint64_t>() == sum_of(counts.at("answered")) + sum_of(counts.at("zeros")) +
                                                            counts.at("left_alone").get<std::uint64_t>() +
                                                            counts.at("waiting").get<std::uint64_t>();
}

// What leatd finds in the picture when it is asked without a bridge.
DetectionTable found_by(const Leatd& leatd, const std::string& application, const std::vector<std::uint8_t>& rgb) {
  auto client = Client::connect(leatd.socket(), "test");
  EXPECT_TRUE(client.ok()) << leatd.log();
  StreamOptions options;
  options.application = application.c_str();
  options.format = LEAT_FORMAT_rgb24;
  options.width = options.height = kSide;
  options.slo_ns = 60'000'000'000;
  auto stream = client->open_stream(options);
  EXPECT_TRUE(stream.ok()) << stream.error();
  auto frame = stream->acquire();
  for (std::size_t y = 0; y < kSide; ++y)
    std::memcpy(frame->plane(0) + y * frame->raw().strides[0], rgb.data() + y * kSide * 3, std::size_t{kSide} * 3);
  EXPECT_EQ(frame->submit(), LEAT_ERROR_ok);
  const auto answer = client->next_answer(60s);
  EXPECT_TRUE(answer && answer->result() != nullptr) << leatd.log();
  return tools::table_of(*answer->result());
}

bool sees_something(const DetectionTable& table) { return table[1] > 0; }

const std::vector<std::string> kPatient = {"--answer-ms", "60000"};

TEST(Bridge, EveryLayoutSeesWhatLeatdFinds) {
  Leatd leatd(config_of({"yard"}));
  const Bridge bridge(leatd.socket(), kPatient);
  Detector detector(bridge.endpoint());
  ASSERT_TRUE(detector.model_served("yolov9-t-320.onnx")) << bridge.text("log");
  const auto rgb = street(0);
  const DetectionTable expected = found_by(leatd, "yard", rgb);
  ASSERT_TRUE(sees_something(expected));
  for (std::size_t row = 1; row < kRows; ++row)
    ASSERT_GE(expected[(row - 1) * kColumns + 1], expected[row * kColumns + 1]);
  for (const Crop crop :
       {Crop::bytes, Crop::byte_planes, Crop::floats, Crop::float_planes, Crop::denormalised_planes}) {
    const auto table = detector.detect(rgb, crop);
    ASSERT_TRUE(table) << bridge.text("log");
    EXPECT_EQ(*table, expected) << static_cast<int>(crop) << bridge.text("log");
  }
}

TEST(Bridge, FourDetectorsAtOneEndpointEachGetTheirOwn) {
  Leatd leatd(config_of({"yard"}));
  Bridge bridge(leatd.socket(), kPatient);
  constexpr int kDetectors = 4, kRounds = 6;
  std::vector<std::future<int>> wrong;
  std::vector<DetectionTable> expected;
  for (std::uint32_t d = 0; d < kDetectors; ++d) expected.push_back(found_by(leatd, "yard", street(d)));
  for (std::uint32_t d = 0; d < kDetectors; ++d)
    wrong.push_back(std::async(std::launch::async, [&, d] {
      Detector detector(bridge.endpoint());
      int count = detector.model_served("m") ? 0 : 100;
      const auto rgb = street(d);
      for (int round = 0; round < kRounds; ++round)
        count += detector.detect(rgb, Crop::float_planes) == expected[d] ? 0 : 1;
      return count;
    }));
  for (auto& one : wrong) EXPECT_EQ(one.get(), 0) << bridge.text("log");
  const Json counts = bridge.stop();
  EXPECT_TRUE(balances(counts)) << counts;
  EXPECT_EQ(counts.at("answered").at("completed"), kDetectors * kRounds) << counts;
  EXPECT_EQ(counts.at("models_served"), kDetectors);
  EXPECT_EQ(sum_of(counts.at("zeros")), 0U) << counts;
}

// A detector that asks for its model in vain never asks again, so it is told yes while leatd is away, and sees
// something as soon as leatd is there. What leatd has when it ends is answered, too.
TEST(Bridge, LeatdComesGoesAndComesBackUnderTheSameDetector) {
  Leatd leatd(config_of({"yard"}));
  leatd.kill();
  Bridge bridge(leatd.socket(), kPatient);
  Detector detector(bridge.endpoint());
  ASSERT_TRUE(detector.model_served("yard.onnx")) << bridge.text("log");
  const auto rgb = street(0);
  EXPECT_EQ(detector.detect(rgb), DetectionTable{});
  for (int round = 0; round < 2; ++round) {
    leatd.start();
    EXPECT_TRUE(eventually([&] { return sees_something(detector.detect(rgb).value_or(DetectionTable{})); }, 60s))
        << bridge.text("log");
    leatd.kill();
    EXPECT_TRUE(eventually([&] { return detector.detect(rgb) == DetectionTable{}; }, 60s)) << bridge.text("log");
  }
  const Json counts = bridge.stop();
  EXPECT_TRUE(balances(counts)) << counts;
  EXPECT_GE(counts.at("zeros").at("no_daemon").get<int>(), 3) << counts;
  EXPECT_GE(sum_of(counts.at("answered")), 2U) << counts;
  EXPECT_EQ(counts.at("models_served"), 1);
}

// leatd stands still: the answer is zeros, by the time that was promised, and a question for a model is answered at
// once.
TEST(Bridge, AnswersInTimeAlthoughLeatdStandsStill) {
  Leatd leatd(config_of({"yard"}));
  Bridge bridge(leatd.socket(), {"--answer-ms", "190"});
  Detector detector(bridge.endpoint()), other(bridge.endpoint());
  ASSERT_TRUE(detector.model_served("yard"));
  const auto rgb = street(0);
  ASSERT_TRUE(eventually([&] { return sees_something(detector.detect(rgb).value_or(DetectionTable{})); }, 60s));
  ASSERT_EQ(::kill(leatd.pid(), SIGSTOP), 0);
  const auto begun = std::chrono::steady_clock::now();
  detector.send(rgb, Crop::bytes);
  EXPECT_TRUE(other.model_served("yard"));
  EXPECT_EQ(detector.table(), DetectionTable{});
  std::printf("answered after %.1f ms\n",
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count());
  ASSERT_EQ(::kill(leatd.pid(), SIGCONT), 0);
  EXPECT_TRUE(eventually([&] { return sees_something(detector.detect(rgb).value_or(DetectionTable{})); }, 60s))
      << bridge.text("log");
  const Json counts = bridge.stop();
  EXPECT_TRUE(balances(counts)) << counts;
  EXPECT_GE(counts.at("zeros").at("not_in_time").get<int>(), 1) << counts;
}

TEST(Bridge, ModelsByNameAndThoseNobodyServes) {
  Leatd leatd(config_of({"yard", "faces"}));
  Bridge bridge(leatd.socket(), {"--answer-ms", "60000", "--model", "yolov9.onnx=yard"});
  Detector yard(bridge.endpoint()), faces(bridge.endpoint()), other(bridge.endpoint());
  const auto rgb = street(0);
  ASSERT_TRUE(yard.model_served("yolov9.onnx"));
  EXPECT_TRUE(eventually([&] { return sees_something(yard.detect(rgb).value_or(DetectionTable{})); }, 60s));
  ASSERT_TRUE(faces.model_served("faces.onnx"));
  EXPECT_TRUE(sees_something(faces.detect(rgb).value_or(DetectionTable{})));
  EXPECT_EQ(other.ask_for_model("plates.onnx"), (Json{{"model_available", false}, {"model_loaded", false}}));
  const auto saved = other.ask(R"({"model_data": true, "model_name": "plates.onnx"})", std::vector<std::byte>(100));
  ASSERT_TRUE(saved);
  EXPECT_EQ(Json::parse(*saved), (Json{{"model_saved", false}, {"model_loaded", false}}));
  EXPECT_EQ(other.detect(rgb), DetectionTable{}) << "asked all the same";
  // A bridge that began anew does not know which model is meant: left alone, the detector gives up and asks anew.
  bridge.kill();
  bridge.start();
  Detector unknown(bridge.endpoint());
  ASSERT_TRUE(eventually([&] { return !unknown.model_served("plates"); }, 60s)) << "leatd was asked what it serves";
  yard.patience(300);
  EXPECT_EQ(yard.detect(rgb), std::nullopt);
  Detector again(bridge.endpoint());
  ASSERT_TRUE(again.model_served("yolov9.onnx"));
  EXPECT_TRUE(sees_something(again.detect(rgb).value_or(DetectionTable{})));
  const Json counts = bridge.stop();
  EXPECT_TRUE(balances(counts)) << counts;
  EXPECT_EQ(counts.at("left_alone"), 1) << counts;
}

TEST(Bridge, WhatIsNoCropIsAnsweredAndCounted) {
  Leatd leatd(config_of({"yard"}));
  Bridge bridge(leatd.socket(), kPatient);
  Detector detector(bridge.endpoint());
  ASSERT_TRUE(detector.model_served("yard"));
  const std::string zeros(sizeof(DetectionTable), '\0');
  EXPECT_EQ(detector.ask("nonsense"), zeros);
  EXPECT_EQ(detector.ask("{}", std::vector<std::byte>(5)), zeros);
  EXPECT_EQ(detector.ask(R"({"shape": [1, 8, 8, 3], "dtype": "uint8"})", std::vector<std::byte>(191)), zeros);
  // No REQ socket, and none that waits for an answer.
  zmq::context_t context;
  zmq::socket_t dealer(context, zmq::socket_type::dealer);
  dealer.set(zmq::sockopt::linger, 1000);
  dealer.connect(bridge.endpoint());
  for (int i = 0; i < 100; ++i) dealer.send(zmq::str_buffer("x"), zmq::send_flags::none);
  EXPECT_TRUE(detector.model_served("yard")) << "others are answered";
  const Json counts = bridge.stop();
  EXPECT_TRUE(balances(counts)) << counts;
  EXPECT_EQ(counts.at("zeros").at("bad_message"), 3) << counts;
}

TEST(Bridge, SaysWhatIsWrongWithItsOptions) {
  const auto run = [](std::vector<std::string> words) {
    words.insert(words.begin(), {LEAT_BINARY, "bridge"});
    return run_to_end(words);
  };
  const Exit protocol = run({"http"}), model = run({"zmq", "--model", "x"}), endpoint = run({"zmq", "-e", "nowhere"});
  EXPECT_EQ(protocol.status, 2);
  EXPECT_NE(protocol.err.find("there is 'zmq'"), std::string::npos) << protocol.err;
  EXPECT_EQ(model.status, 2);
  EXPECT_NE(model.err.find("NAME=APPLICATION"), std::string::npos) << model.err;
  EXPECT_EQ(endpoint.status, 2);
  EXPECT_NE(endpoint.err.find("tcp://ADDRESS:PORT"), std::string::npos) << endpoint.err;
}

}  // namespace
}  // namespace leat::test
