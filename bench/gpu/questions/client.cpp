#include "bench/gpu/questions/client.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kBatch = 64;  // several waves of blocks on the largest device there is
constexpr std::size_t kCopyBytes = 128 * kMiB, kUploadBytes = 32 * kMiB;

Child started(const Environment& environment) {
  auto child = Child::start({.role = std::string(kClientRole), .arguments = {}, .environment = environment});
  if (!child) throw ProbeFailed(child.error());
  return std::move(*child);
}

// ---- the client itself ----

std::vector<double> run_work(const std::string& work, int repeats) {
  const Stream stream;
  if (work == "convolution") {
    const FixedConvolution convolution(kBatch);
    return time_us(stream, repeats, [&] { convolution.launch(stream); });
  }
  if (work == "wake_by_stream" || work == "wake_by_event") return wake_after_word(work == "wake_by_event", repeats);
  if (work == "copy") {
    const Buffer from(kCopyBytes), to(kCopyBytes);
    return time_us(stream, repeats, [&] { LEAT_CUDA(kernels::copy(to.as(), from.as(), kCopyBytes, stream)); });
  }
  const Buffer from(kUploadBytes, Buffer::Where::host), to(kUploadBytes);
  return time_us(stream, repeats,
                 [&] { LEAT_CUDA(cudaMemcpyAsync(to.as(), from.as(), kUploadBytes, cudaMemcpyHostToDevice, stream)); });
}

// Keeps the device busy until the next message; that message is returned.
Received run_load(Channel& channel) {
  const FixedConvolution convolution(kBatch);
  const Stream stream;
  bool told = false;
  // Two batches are queued, so that the device never runs dry while this thread waits and looks for a message.
  const Event ended[2];
  const auto launch = [&](int batch) {
    for (int i = 0; i < 4; ++i) convolution.launch(stream);
    LEAT_CUDA(cudaEventRecord(ended[batch], stream));
  };
  launch(0);
  for (int now = 0;; now = 1 - now) {
    launch(1 - now);
    LEAT_CUDA(cudaEventSynchronize(ended[now]));
    if (!told && !channel.send("busy")) return {};
    told = true;
    Received received = channel.receive(Clock::now());
    if (received.receipt == Receipt::timed_out) continue;
    stream.wait();
    return received;
  }
}

std::string fault_here() {
  const Stream stream;
  cudaError_t result = kernels::fault(stream);
  if (result == cudaSuccess) result = cudaStreamSynchronize(stream);
  return cudaGetErrorName(result);
}

// A small pattern written and checked by kernels.
void check_here() {
  constexpr std::size_t bytes = kMiB;
  const Buffer data(bytes), stamps(2 * sizeof(kernels::Stamp) + sizeof(unsigned long long));
  const Stream stream;
  auto* stamp = stamps.as<kernels::Stamp>();
  LEAT_CUDA(cudaMemsetAsync(stamp, 0, stamps.bytes(), stream));
  LEAT_CUDA(kernels::fill(data.as(), bytes, 17, &stamp[0], stream));
  LEAT_CUDA(kernels::verify(data.as(), bytes, 17, &stamp[1], &stamp[2], stream));
  stream.wait();
  if (stamps.read<unsigned long long>(2 * sizeof(kernels::Stamp)) != 0) throw ProbeFailed("a kernel read wrong data");
}

std::string answer_to(const Message& message) {
  if (message.kind == "count") {
    int count = 0;
    LEAT_DRIVER(cuDeviceGetCount, &count);
    return std::to_string(count);
  }
  if (message.kind == "census") return std::to_string(count_sms(Stream()));
  if (message.kind == "fault") return fault_here();
  if (message.kind == "check") {
    check_here();
    return {};
  }
  if (message.kind == "register") {
    const std::size_t comma = message.body.find(' ');
    register_and_read(message.body.substr(comma + 1), std::stoull(message.body.substr(0, comma)));
    return {};
  }
  if (message.kind == "idle") return {};  // a load that had ended already
  std::istringstream words(message.body);
  int repeats = 0;
  words >> repeats;
  std::ostringstream text;
  for (double sample : run_work(message.kind, repeats)) text << sample << ' ';
  return text.str();
}

}  // namespace

int run_gpu_client(Channel& channel, std::span<const std::string>) {
  LEAT_DRIVER(cuInit, 0);
  // How its threads wait is settled before there is a context.
  if (const char* flags = std::getenv(kScheduleVariable))
    LEAT_CUDA(cudaSetDeviceFlags(static_cast<unsigned>(std::atoi(flags))));
  const auto begin = Clock::now();
  open_device();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  Status sent = channel.send("hello", std::to_string(sm_count()) + " " + std::to_string(ms));
  while (sent) {
    Received received = channel.receive(after(std::chrono::minutes(10)));
    if (received.receipt == Receipt::message && received.message.kind == "busy") {
      received = run_load(channel);
    }
    if (received.receipt != Receipt::message || received.message.kind == "leave") break;
    try {
      sent = channel.send(received.message.kind, answer_to(received.message));
    } catch (const std::exception& problem) {
      sent = channel.send("failed", problem.what());
    }
  }
  return 0;
}

Client::Client(const Environment& environment) : child_(started(environment)) {
  auto hello = child_.channel().expect("hello", after(seconds(30)));
  if (!hello) throw ProbeFailed(hello.error());
  std::istringstream(hello->body) >> sms_ >> start_ms_;
}

std::string Client::ask(const std::string& kind, const std::string& body, seconds limit) {
  if (auto sent = child_.channel().send(kind, body); !sent) throw ProbeFailed(sent.error());
  auto answer = child_.channel().expect(kind, after(limit));
  if (!answer) throw ProbeFailed(answer.error());
  return answer->body;
}

int Client::devices() { return std::stoi(ask("count", "", seconds(10))); }

int Client::census() { return std::stoi(ask("census", "", seconds(10))); }

std::vector<double> Client::measure(const std::string& work, int repeats) {
  std::istringstream words(ask(work, std::to_string(repeats), seconds(30)));
  std::vector<double> samples;
  for (double sample = 0; words >> sample;) samples.push_back(sample);
  return samples;
}

void Client::begin_load() { ask("busy", "", seconds(15)); }

void Client::end_load() { ask("idle", "", seconds(15)); }

std::string Client::fault() { return ask("fault", "", seconds(20)); }

std::string Client::register_host(const std::string& way, std::size_t bytes) {
  try {
    ask("register", std::to_string(bytes) + " " + way, seconds(30));
    return {};
  } catch (const ProbeFailed& problem) {
    return problem.what();
  }
}

std::string Client::check() {
  try {
    ask("check", "", seconds(20));
    return {};
  } catch (const ProbeFailed& problem) {
    return problem.what();
  }
}

Client::~Client() {
  if (ended_) return;
  if (auto sent = child_.channel().send("leave"); sent) (void)child_.wait(after(seconds(10)));
}

}  // namespace leat::probe
