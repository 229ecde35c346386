// leat-gpu-check model: a model on the device against the same model on this host's processors, whole or a range of its
// blocks as a plan cuts it, and how long a batch takes.
#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

#include "engine/exec/registry.h"
#include "leat/executor.h"
#include "tests/gpu/check/check.h"

namespace leat::check {
namespace {

constexpr cli::Option kOptions[] = {
    kGpuOption,
    kRunsOption,
    {.name = "batches", .type = cli::Type::text, .value = "N,N,...", .fallback = "1,4,16", .help = "batch sizes"},
    {.name = "options", .type = cli::Type::text, .value = "K=V,...", .help = "of the executor: nhwc=1, tf32=1"},
    {.name = "tolerance",
     .type = cli::Type::real,
     .value = "X",
     .fallback = "1e-4",
     .min = 0,
     .max = 1,
     .help = "largest difference, as a part of the largest output"}};
constexpr cli::Positional kPositionals[] = {{.name = "MODEL", .help = "an ONNX file"}};
constexpr cli::Command kCommand = {.name = "leat-gpu-check model",
                                   .summary = "a model on the device against this host's processors",
                                   .options = kOptions,
                                   .positionals = kPositionals};

struct Session {
  const leat_executor* onnx = nullptr;
  leat_session* session = nullptr;
  exec::Device* device = nullptr;
  std::vector<std::byte> host_in;
  std::vector<std::vector<std::byte>> host_out;
  exec::DeviceBuffer in;
  std::vector<exec::DeviceBuffer> out;
  leat_tensor inputs[16] = {}, outputs[16] = {};
  std::uint32_t input_count = 16, output_count = 16;
  char error[512] = "";

  Session(const std::string& path, const std::string& extra, std::uint32_t batch, exec::Device* on) : device(on) {
    onnx = *exec::find_executor("onnx");
    const leat_session_options options{.model_path = path.c_str(),
                                       .first_block = 0,
                                       .end_block = UINT32_MAX,
                                       .batch_max = batch,
                                       .threads = 1,
                                       .extra = extra.c_str(),
                                       .device_api = on != nullptr ? on->api() : nullptr,
                                       .device = on != nullptr ? on->handle() : nullptr};
    need(onnx->open(&options, &session, error, sizeof error) == 0);
    need(onnx->describe(session, batch, inputs, &input_count, outputs, &output_count, error, sizeof error) == 0);
    if (input_count != 1) throw std::runtime_error(path + ": has more than one input");
    host_in.resize(inputs[0].bytes);
    inputs[0].data = host_in.data();
    if (on != nullptr) inputs[0].data = (in = take(on->allocate(inputs[0].bytes))).data();
    for (std::uint32_t o = 0; o < output_count; ++o) {
      outputs[o].data = host_out.emplace_back(outputs[o].bytes).data();
      if (on != nullptr) outputs[o].data = out.emplace_back(take(on->allocate(outputs[o].bytes))).data();
    }
  }
  ~Session() {
    if (session != nullptr) onnx->close(session);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static exec::DeviceBuffer take(Result<exec::DeviceBuffer> made) {
    if (!made.ok()) throw std::runtime_error(made.error());
    return std::move(*made);
  }
  void need(bool good) const {
    if (!good) throw std::runtime_error(error);
  }
  // On a device: without the copies to and from it.
  bool run(std::uint32_t batch) {
    leat_tensor now[16];
    std::copy_n(outputs, output_count, now);
    bool good = onnx->run(session, batch, inputs, input_count, now, output_count, error, sizeof error) == 0;
    if (device != nullptr) good = device->wait() && good;
    return (onnx->finish == nullptr || onnx->finish(session, error, sizeof error) == 0) && good;
  }
  void upload() {
    if (device != nullptr) need(device->copy(inputs[0].data, host_in.data(), host_in.size()) && device->wait());
  }
  void download() {
    for (std::uint32_t o = 0; device != nullptr && o < output_count; ++o)
      need(device->copy(host_out[o].data(), outputs[o].data, host_out[o].size()));
    if (device != nullptr) need(device->wait());
  }
};

int run(const cli::Arguments& arguments) {
  Answers answers("model");
  const std::string path = arguments.positionals()[0];
  std::string extra = arguments.text("options");
  std::replace(extra.begin(), extra.end(), ',', '\n');
  if (!extra.empty()) extra += '\n';
  answers.value("model", path.substr(path.rfind('/') + 1));
  answers.value("options", arguments.text("options"));
  auto device = open_device(arguments);
  if (!device.ok()) return cli::fail("leat-gpu-check", device.error());
  answers.value("stand_in", (*device)->info().has_provider == 0);
  std::istringstream words(arguments.text("batches"));
  for (std::string word; std::getline(words, word, ',');) {
    const auto batch = static_cast<std::uint32_t>(std::stoul(word));
    Session there(path, extra, batch, device->get()), here(path, {}, batch, nullptr);
    if (here.inputs[0].dtype != LEAT_F32) throw std::runtime_error(path + ": its input is not float32");
    std::mt19937 random(batch);
    std::normal_distribution<float> normal;
    for (std::uint64_t i = 0; i < here.host_in.size() / sizeof(float); ++i)
      reinterpret_cast<float*>(here.host_in.data())[i] = normal(random);
    there.host_in = here.host_in;
    there.upload();
    here.need(here.run(batch));
    there.need(there.run(batch));
    there.download();
    float largest = 0, worst = 0;
    for (std::uint32_t o = 0; o < here.output_count; ++o) {
      if (here.outputs[o].dtype != LEAT_F32) continue;
      const auto* const a = reinterpret_cast<const float*>(here.host_out[o].data());
      const auto* const b = reinterpret_cast<const float*>(there.host_out[o].data());
      for (std::uint64_t i = 0; i < here.host_out[o].size() / sizeof(float); ++i) {
        largest = std::max(largest, std::abs(a[i]));
        worst = std::max(worst, std::isfinite(b[i]) ? std::abs(a[i] - b[i]) : INFINITY);
      }
    }
    const float difference = largest > 0 ? worst / largest : worst;
    answers.value("difference_batch_" + word, difference);
    answers.verdict("equal_to_the_host_batch_" + word, difference <= arguments.real("tolerance"));
    answers.figure("device_batch_" + word, time_us(arguments.integer("runs"), [&] { return there.run(batch); }), "us");
  }
  return answers.print();
}

}  // namespace

extern const cli::Subcommand kCheckModel;
const cli::Subcommand kCheckModel = {&kCommand, run};

}  // namespace leat::check
