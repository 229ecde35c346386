// leat-gpu-check model: a model on the device against the same model on this host's processors, whole or a range of its
// blocks as a plan cuts it, and how long a batch takes.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <sstream>

#include "engine/exec/onnx/onnx_graphs.h"
#include "tests/gpu/check/session.h"

namespace leat::check {
namespace {

constexpr cli::Option kOptions[] = {
    kGpuOption,
    kRunsOption,
    {.name = "batches", .type = cli::Type::text, .value = "N,N,...", .fallback = "1,4,16", .help = "batch sizes"},
    {.name = "options", .type = cli::Type::text, .value = "K=V,...", .help = "of the executor: nhwc=1, tf32=1"},
    {.name = "cut",
     .type = cli::Type::text,
     .value = "TENSOR",
     .help = "runs it in two parts that meet at this tensor"},
    {.name = "reference",
     .type = cli::Type::path,
     .value = "MODEL",
     .help = "what the host runs instead: the same model in float32"},
    cli::integer_option("threads", "1", 1, 256, "of the host's processors"),
    cli::real_option("tolerance", "1e-4", 0, 1, "largest difference, as a part of the largest output", "X")};
constexpr cli::Positional kPositionals[] = {{.name = "MODEL", .help = "an ONNX file"}};
constexpr cli::Command kCommand = {.name = "leat-gpu-check model",
                                   .summary = "a model on the device against this host's processors",
                                   .options = kOptions,
                                   .positionals = kPositionals};

// The model on the device: whole, or in two parts, the second reading where the first has written.
struct OnDevice {
  std::unique_ptr<Session> first, second;
  OnDevice(const std::string& path, const std::string& extra, const std::string& cut, std::uint32_t batch,
           exec::Device* device) {
    if (cut.empty()) {
      first = std::make_unique<Session>(path, extra, batch, device);
      return;
    }
    const std::string cuts = extra + "cuts=" + cut + "\n";
    first = std::make_unique<Session>(path, cuts, batch, device, 1, 0, 1);
    second = std::make_unique<Session>(path, cuts, batch, device, 1, 1, 2);
    if (first->outputs[0].bytes != second->inputs[0].bytes) throw std::runtime_error("its parts do not meet");
    second->inputs[0].data = first->outputs[0].data;
  }
  [[nodiscard]] Session& last() const { return second ? *second : *first; }
  bool run(std::uint32_t batch) const { return first->run(batch) && (!second || second->run(batch)); }
  bool put(std::uint32_t batch) const { return first->put(batch) && (!second || second->put(batch)); }
};

// By the device's own stamps, so that no wait of the host's is in it: what another program's events say beside.
std::vector<double> stamped_us(std::int64_t runs, const OnDevice& model, std::uint32_t batch, exec::Device& device) {
  std::vector<double> out;
  const leat_device_api& api = *device.api();
  for (std::int64_t r = 0; r < runs; ++r) {
    char error[512] = "";
    std::uint64_t ns = 0;
    const bool good = api.stamp(device.handle(), 0, error, sizeof error) == LEAT_DEVICE_OK && model.put(batch) &&
                      api.stamp(device.handle(), 1, error, sizeof error) == LEAT_DEVICE_OK && model.run(batch) &&
                      api.elapsed(device.handle(), &ns, error, sizeof error) == LEAT_DEVICE_OK;
    if (!good) throw std::runtime_error(std::string(model.first->error) + " " + error);
    out.push_back(static_cast<double>(ns) / 1e3);
  }
  return out;
}

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
    const OnDevice device_side(path, extra, arguments.text("cut"), batch, device->get());
    Session &into = *device_side.first, &there = device_side.last();
    const std::string reference = arguments.text("reference").empty() ? path : arguments.text("reference");
    Session here(reference, {}, batch, nullptr, static_cast<std::uint32_t>(arguments.integer("threads")));
    if (here.host_in.size() != into.host_in.size() || here.output_count != there.output_count)
      throw std::runtime_error(reference + ": has other inputs or outputs");
    if (here.inputs[0].dtype != LEAT_F32) throw std::runtime_error(path + ": its input is not float32");
    std::mt19937 random(batch);
    std::normal_distribution<float> normal;
    for (std::uint64_t i = 0; i < here.host_in.size() / sizeof(float); ++i)
      reinterpret_cast<float*>(here.host_in.data())[i] = normal(random);
    into.host_in = here.host_in;
    into.upload();
    here.need(here.run(batch));
    if (!device_side.run(batch)) throw std::runtime_error(std::string(into.error) + " " + there.error);
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
    answers.figure("device_batch_" + word, time_us(arguments.integer("runs"), [&] { return device_side.run(batch); }),
                   "us");
    answers.figure("stamped_batch_" + word, stamped_us(arguments.integer("runs"), device_side, batch, **device), "us");
    for (const auto& [part, name] :
         {std::pair{&device_side.first, " first"}, std::pair{&device_side.second, " second"}})
      if (device_side.second)
        answers.figure("device_batch_" + word + name,
                       time_us(arguments.integer("runs"), [&] { return (*part)->run(batch); }), "us");
    if (const exec::GraphReport& graphs = exec::onnx_graph_report(into.session); !exec::text_of(graphs).empty())
      answers.value("graph_batch_" + word, exec::text_of(graphs));  // of the first part; by the device's own time
  }
  return answers.print();
}

}  // namespace

extern const cli::Subcommand kCheckModel;
const cli::Subcommand kCheckModel = {&kCommand, run};

}  // namespace leat::check
