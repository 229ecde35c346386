// `leat gateway --grpc` before a real leatd, asked by KServe's stubs.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine/exec/checksum.h"
#include "kserve.grpc.pb.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/subprocess/process.h"

namespace leat::test {
namespace {

using grpc::ClientContext;
using grpc::Status;
using grpc::StatusCode;

constexpr const char* kEchoes = R"(
[[partition]]
name = "p"
kind = "emulated"
count = 2
[[application]]
name = "echo"
slo_ms = 20000
  [[application.module]]
  name = "sum"
  latency_ms = [0.2]
[[application]]
name = "slow"
slo_ms = 20000
  [[application.module]]
  name = "sum"
  latency_ms = [300.0]
)";

// The gateway with its child, for as long as this lives.
class Gateway {
 public:
  Gateway(const std::string& socket, std::vector<std::string> more) {
    auto pipe = subprocess::make_pipe();
    std::vector<std::string> words = {LEAT_BINARY,   "gateway", "--socket", socket,       "--listen",
                                      "127.0.0.1:0", "--node",  "here",     "--ready-fd", "3"};
    words.insert(words.end(), more.begin(), more.end());
    auto process = subprocess::Process::start({.words = words,
                                               .environment = {{"LEAT_GRPC", LEAT_GRPC_BINARY}},
                                               .fds = {{pipe->write.get(), 3}},
                                               .death_signal = SIGKILL});
    EXPECT_TRUE(process.ok()) << process.error();
    process_ = std::move(*process);
    pipe->write = Fd();
    FILE* const ready = ::fdopen(pipe->read.release(), "r");
    EXPECT_EQ(std::fscanf(ready, "ready %d %d", &port, &grpc_port), 2);
    std::fclose(ready);
    stub = inference::GRPCInferenceService::NewStub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(grpc_port), grpc::InsecureChannelCredentials()));
  }
  bool becomes_ready() {
    return eventually(
        [&] {
          ClientContext context;
          inference::ServerReadyResponse to;
          return stub->ServerReady(&context, {}, &to).ok() && to.ready();
        },
        std::chrono::seconds(60));
  }
  // The gateway's only child.
  pid_t child() const {
    std::ifstream file("/proc/" + std::to_string(process_.pid()) + "/task/" + std::to_string(process_.pid()) +
                       "/children");
    pid_t out = 0;
    file >> out;
    return out;
  }
  Status infer(const inference::ModelInferRequest& asked, inference::ModelInferResponse* to,
               std::chrono::milliseconds limit = std::chrono::seconds(60), ClientContext* context = nullptr) {
    ClientContext own;
    ClientContext& used = context != nullptr ? *context : own;
    used.set_deadline(std::chrono::system_clock::now() + limit);
    return stub->ModelInfer(&used, asked, to);
  }

  int port = 0, grpc_port = 0;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub;

 private:
  subprocess::Process process_;
};

constexpr std::size_t kBytes = 8 * 8 * 3;  // whole lines of a slot, which is what is summed
std::string pixels_of(std::size_t bytes, unsigned seed) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>((i * 7 + seed) % 251);
  return out;
}
std::uint64_t sum_of(const std::string& pixels) { return exec::checksum(pixels.data(), pixels.size()); }

inference::ModelInferRequest picture(const std::string& model, std::int64_t height, std::int64_t width) {
  inference::ModelInferRequest out;
  out.set_model_name(model);
  auto& input = *out.add_inputs();
  input.set_name("image");
  input.set_datatype("UINT8");
  for (const std::int64_t side : {std::int64_t{1}, height, width, std::int64_t{3}}) input.add_shape(side);
  return out;
}
std::uint64_t number_in(const inference::ModelInferResponse& answer) {
  std::uint64_t out = 0;
  if (answer.raw_output_contents_size() == 1 && answer.raw_output_contents(0).size() == sizeof out)
    std::memcpy(&out, answer.raw_output_contents(0).data(), sizeof out);
  return out;
}

class Grpc : public ::testing::Test {
 protected:
  Leatd leatd_{kEchoes};
  Gateway gateway_{leatd_.socket(), {"--grpc", "127.0.0.1:0"}};
  void SetUp() override { ASSERT_TRUE(gateway_.becomes_ready()) << leatd_.log(); }
};

TEST_F(Grpc, SaysWhatIsServed) {
  const auto& stub = gateway_.stub;
  {
    ClientContext context;
    inference::ServerLiveResponse to;
    ASSERT_TRUE(stub->ServerLive(&context, {}, &to).ok());
    EXPECT_TRUE(to.live());
  }
  {
    ClientContext context;
    inference::ServerMetadataResponse to;
    ASSERT_TRUE(stub->ServerMetadata(&context, {}, &to).ok());
    EXPECT_EQ(to.name(), "leat");
    EXPECT_GT(to.extensions_size(), 3);
  }
  inference::ModelMetadataRequest named;
  named.set_name("echo");
  {
    ClientContext context;
    inference::ModelMetadataResponse to;
    ASSERT_TRUE(stub->ModelMetadata(&context, named, &to).ok());
    ASSERT_EQ(to.inputs_size(), 1);
    EXPECT_EQ(to.inputs(0).name(), "image");
    EXPECT_EQ(to.inputs(0).datatype(), "UINT8");
    EXPECT_EQ(to.inputs(0).shape_size(), 4);
  }
  {
    ClientContext context;
    inference::ModelConfigRequest asked;
    asked.set_name("echo");
    inference::ModelConfigResponse to;
    ASSERT_TRUE(stub->ModelConfig(&context, asked, &to).ok());
    EXPECT_EQ(to.config().max_batch_size(), 64);
    ASSERT_EQ(to.config().input_size(), 1);
    EXPECT_EQ(to.config().input(0).data_type(), inference::TYPE_UINT8);
    EXPECT_NE(to.config().parameters().at("metadata").string_value(), "");
  }
  {
    ClientContext context;
    inference::RepositoryIndexResponse to;
    ASSERT_TRUE(stub->RepositoryIndex(&context, {}, &to).ok());
    ASSERT_EQ(to.models_size(), 2);
    EXPECT_EQ(to.models(0).state(), "READY");
  }
  for (const auto& [name, ready] : {std::pair("echo", true), std::pair("nobody", false)}) {
    ClientContext context;
    inference::ModelReadyRequest asked;
    asked.set_name(name);
    inference::ModelReadyResponse to;
    ASSERT_TRUE(stub->ModelReady(&context, asked, &to).ok());
    EXPECT_EQ(to.ready(), ready) << name;
  }
  {
    ClientContext context;
    inference::RepositoryModelLoadRequest asked;
    asked.set_model_name("echo");
    inference::RepositoryModelLoadResponse to;
    const Status status = stub->RepositoryModelLoad(&context, asked, &to);
    EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
    EXPECT_NE(status.error_message(), "");
  }
}

TEST_F(Grpc, AnswersFramesRawAndNumberByNumber) {
  const std::string pixels = pixels_of(kBytes, 1);
  auto asked = picture("echo", 8, 8);
  asked.set_id("seven");
  asked.add_raw_input_contents(pixels);
  inference::ModelInferResponse to;
  ClientContext context;
  Status status = gateway_.infer(asked, &to, std::chrono::seconds(60), &context);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(to.id(), "seven");
  EXPECT_EQ(to.model_name(), "echo");
  ASSERT_EQ(to.outputs_size(), 1);
  EXPECT_EQ(to.outputs(0).datatype(), "UINT64");
  EXPECT_EQ(number_in(to), sum_of(pixels));
  const auto& told = context.GetServerTrailingMetadata();
  ASSERT_NE(told.find("x-leat-node"), told.end());
  EXPECT_EQ(told.find("x-leat-node")->second, "here");

  asked.clear_raw_input_contents();
  for (const char byte : pixels)
    asked.mutable_inputs(0)->mutable_contents()->add_uint_contents(static_cast<unsigned char>(byte));
  status = gateway_.infer(asked, &to);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(number_in(to), sum_of(pixels));

  asked.mutable_inputs(0)->mutable_contents()->set_uint_contents(0, 256);
  status = gateway_.infer(asked, &to);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("does not hold: 256"), std::string::npos) << status.error_message();
}

TEST_F(Grpc, AnswersAStreamInOrderAndGoesOnBehindAnError) {
  ClientContext context;
  const auto stream = gateway_.stub->ModelStreamInfer(&context);
  for (unsigned i = 0; i < 8; ++i) {
    auto asked = picture(i == 3 ? "nobody" : "echo", 8, 8);
    asked.set_id(std::to_string(i));
    asked.add_raw_input_contents(pixels_of(kBytes, i));
    ASSERT_TRUE(stream->Write(asked));
  }
  stream->WritesDone();
  inference::ModelStreamInferResponse to;
  for (unsigned i = 0; i < 8; ++i) {
    ASSERT_TRUE(stream->Read(&to)) << i;
    EXPECT_EQ(to.infer_response().id(), std::to_string(i));
    EXPECT_EQ(to.error_message().empty(), i != 3) << to.error_message();
    EXPECT_EQ(number_in(to.infer_response()), i == 3 ? 0 : sum_of(pixels_of(kBytes, i)));
  }
  EXPECT_FALSE(stream->Read(&to));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(Grpc, WhatIsWrongIsSaidInTheClientsWords) {
  const auto code = [&](const inference::ModelInferRequest& asked) {
    inference::ModelInferResponse to;
    const Status status = gateway_.infer(asked, &to);
    EXPECT_NE(status.error_message(), "");
    EXPECT_EQ(status.error_message().find('\n'), std::string::npos);
    return status.error_code();
  };
  auto asked = picture("nobody", 8, 8);
  asked.add_raw_input_contents(pixels_of(kBytes, 0));
  EXPECT_EQ(code(asked), StatusCode::NOT_FOUND);
  asked.set_model_name("");
  EXPECT_EQ(code(asked), StatusCode::INVALID_ARGUMENT);
  asked.set_model_name("echo");
  asked.set_raw_input_contents(0, pixels_of(kBytes - 1, 0));
  EXPECT_EQ(code(asked), StatusCode::INVALID_ARGUMENT);
  asked.set_raw_input_contents(0, pixels_of(kBytes, 0));
  asked.add_raw_input_contents("left over");
  EXPECT_EQ(code(asked), StatusCode::INVALID_ARGUMENT);
  asked.mutable_raw_input_contents()->RemoveLast();
  asked.mutable_inputs(0)->set_datatype("FP32");
  EXPECT_EQ(code(asked), StatusCode::INVALID_ARGUMENT);
  asked.mutable_inputs(0)->set_datatype("UINT8");
  asked.mutable_inputs(0)->mutable_contents()->add_uint_contents(1);
  EXPECT_EQ(code(asked), StatusCode::INVALID_ARGUMENT);
  asked.mutable_inputs(0)->clear_contents();
  (*asked.mutable_parameters())["sequence_id"].set_int64_param(4);
  EXPECT_EQ(code(asked), StatusCode::INVALID_ARGUMENT);
  asked.clear_parameters();
  asked.set_model_name("../../metrics?");  // one word of a path, whatever stands in it
  EXPECT_EQ(code(asked), StatusCode::INVALID_ARGUMENT);
}

// A call's deadline is what leatd keeps; what cannot be done in it is refused before it is over.
TEST_F(Grpc, ADeadlineIsABudget) {
  auto asked = picture("slow", 8, 8);
  asked.add_raw_input_contents(pixels_of(kBytes, 0));
  inference::ModelInferResponse to;
  EXPECT_TRUE(gateway_.infer(asked, &to).ok());
  const auto before = leatd_.total();
  ClientContext context;
  const Status status = gateway_.infer(asked, &to, std::chrono::milliseconds(250), &context);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(eventually([&] {
    const auto now = leatd_.total();
    return value(*now, shm::StreamCounter::in_flight) == 0 &&
           value(*now, shm::StreamCounter::completed) == value(*before, shm::StreamCounter::completed);
  })) << "it was computed, which takes longer than the call waited";
}

TEST_F(Grpc, IsStartedAnewWhereItEnded) {
  const pid_t first = gateway_.child();
  ASSERT_GT(first, 0);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return gateway_.child() > 0 && gateway_.child() != first; }, std::chrono::seconds(60)));
  auto asked = picture("echo", 8, 8);
  asked.add_raw_input_contents(pixels_of(kBytes, 5));
  inference::ModelInferResponse to;
  EXPECT_TRUE(eventually([&] { return gateway_.infer(asked, &to).ok(); }, std::chrono::seconds(60)));
  EXPECT_EQ(number_in(to), sum_of(pixels_of(kBytes, 5)));
}

TEST(GrpcAlone, TokensAreTheGateways) {
  Leatd leatd{kEchoes};
  const ScratchFolder folder;
  const std::string tokens = folder.write("tokens", "a-token-of-some-length\n");
  ASSERT_EQ(::chmod(tokens.c_str(), 0600), 0);
  Gateway gateway{leatd.socket(), {"--grpc", "0.0.0.0:0", "--token-file", tokens}};
  ASSERT_TRUE(gateway.becomes_ready());
  auto asked = picture("echo", 8, 8);
  asked.add_raw_input_contents(pixels_of(kBytes, 0));
  inference::ModelInferResponse to;
  EXPECT_EQ(gateway.infer(asked, &to).error_code(), StatusCode::UNAUTHENTICATED);
  ClientContext context;
  context.AddMetadata("authorization", "Bearer a-token-of-some-length");
  const Status status = gateway.infer(asked, &to, std::chrono::seconds(60), &context);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(GrpcAlone, WhereItCannotListenIsSaidInOneLine) {
  const auto said = [](std::vector<std::string> more) {
    std::vector<std::string> words = {LEAT_BINARY, "gateway", "--listen", "127.0.0.1:0"};
    words.insert(words.end(), more.begin(), more.end());
    return run_to_end(words, std::chrono::seconds(60));
  };
  EXPECT_EQ(said({"--grpc", "0.0.0.0:0"}).status, 2);
  EXPECT_NE(said({"--grpc", "nowhere"}).err.find("is no address"), std::string::npos);
  ::setenv("LEAT_GRPC", "/no/such/leat-grpc", 1);
  const Exit without = said({"--grpc", "127.0.0.1:0"});
  ::unsetenv("LEAT_GRPC");
  EXPECT_EQ(without.status, 2);
  EXPECT_NE(without.err.find("leave out --grpc"), std::string::npos) << without.err;
}

}  // namespace
}  // namespace leat::test
