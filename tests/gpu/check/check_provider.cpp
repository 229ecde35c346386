// leat-gpu-check provider: what ONNX Runtime's CUDA provider does that no test without a device can know: what a change
// of the batch costs, whether a graph's replay returns before it has run, what the order of warming does to memory.
#include <numeric>

#include "engine/exec/onnx/onnx_graphs.h"
#include "leat/leat.h"
#include "tests/gpu/check/session.h"

namespace leat::check {
namespace {

constexpr cli::Option kOptions[] = {kGpuOption, kRunsOption,
                                    cli::integer_option("largest", "16", 2, 64, "batch that memory is measured up to")};
constexpr cli::Positional kPositionals[] = {{.name = "MODEL", .help = "an ONNX file with convolutions"}};
constexpr cli::Command kCommand = {.name = "leat-gpu-check provider",
                                   .summary = "what a change of batch, a replay and the order of warming cost",
                                   .options = kOptions,
                                   .positionals = kPositionals};

double now_us() { return static_cast<double>(leat_now_ns()) / 1e3; }

std::uint64_t free_bytes(exec::Device& device) {
  leat_device_usage usage{};
  if (device.api()->usage(device.handle(), &usage, nullptr, 0) != LEAT_DEVICE_OK) throw std::runtime_error("no usage");
  return usage.free_bytes;
}

// Runs of these batches one after the other, without graphs; the times of all but the first few.
std::vector<double> times_of(Session& session, const std::vector<std::uint32_t>& batches) {
  std::vector<double> out;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double start = now_us();
    session.need(session.run(batches[i]));
    if (i >= 2) out.push_back(now_us() - start);
  }
  return out;
}

void ask_changes(const std::string& path, std::int64_t runs, exec::Device* device, Answers& answers) {
  Session session(path, "graphs=0\n", 2, device);
  std::vector<std::uint32_t> alternating, ones(static_cast<std::size_t>(runs), 1), twos(ones.size(), 2);
  for (std::size_t i = 0; i < ones.size(); ++i) alternating.push_back(1 + i % 2);
  answers.figure("batch_1", times_of(session, ones), "us");
  answers.figure("batch_2", times_of(session, twos), "us");
  answers.figure("batches_1_and_2_in_turns", times_of(session, alternating), "us");
}

// Of one replay: until the call returns, and until it has run.
void ask_replays(const std::string& path, std::int64_t runs, exec::Device* device, Answers& answers) {
  constexpr std::uint32_t kBatch = 4;
  Session session(path, "fixed_buffers=1\n", kBatch, device);
  std::vector<double> returns, ends;
  for (std::int64_t i = -2; i < runs; ++i) {
    leat_tensor outputs[16];
    std::copy_n(session.outputs, session.output_count, outputs);
    const double start = now_us();
    session.need(session.onnx->run(session.session, kBatch, session.inputs, session.input_count, outputs,
                                   session.output_count, session.error, sizeof session.error) == 0);
    const double returned = now_us();
    session.need(device->wait());
    if (i >= 0) returns.push_back(returned - start), ends.push_back(now_us() - start);
  }
  const exec::GraphReport& graphs = exec::onnx_graph_report(session.session);
  answers.value("graphs", exec::text_of(graphs));
  const bool replayed = !graphs.batches.empty() && graphs.batches[0].graph();
  answers.figure(replayed ? "replay_returns" : "run_returns", returns, "us");
  answers.figure(replayed ? "replay_ends" : "run_ends", ends, "us");
}

// How much memory all sizes take, run from the largest down and from the smallest up.
void ask_memory(const std::string& path, std::uint32_t largest, exec::Device* device, Answers& answers) {
  const auto taken = [&](std::vector<std::uint32_t> sizes) {
    const std::uint64_t before = free_bytes(*device);
    Session session(path, "graphs=0\n", largest, device);
    for (const std::uint32_t size : sizes) session.need(session.run(size));
    const std::uint64_t after = free_bytes(*device);
    return static_cast<double>(before - std::min(before, after)) / (1 << 20);
  };
  std::vector<std::uint32_t> up(largest);
  std::iota(up.begin(), up.end(), 1);
  const std::vector<std::uint32_t> down(up.rbegin(), up.rend());
  answers.figure("memory_of_the_largest", {taken({largest})}, "MiB");
  answers.figure("memory_warmed_down", {taken(down)}, "MiB");
  answers.figure("memory_warmed_up", {taken(up)}, "MiB");
}

int run(const cli::Arguments& arguments) {
  Answers answers("provider");
  const std::string path = arguments.positionals()[0];
  auto device = open_device(arguments);
  if (!device.ok()) return cli::fail("leat-gpu-check", device.error());
  const std::int64_t runs = arguments.integer("runs");
  ask_changes(path, runs, device->get(), answers);
  ask_replays(path, runs, device->get(), answers);
  ask_memory(path, static_cast<std::uint32_t>(arguments.integer("largest")), device->get(), answers);
  return answers.print();
}

}  // namespace

extern const cli::Subcommand kCheckProvider;
const cli::Subcommand kCheckProvider = {&kCommand, run};

}  // namespace leat::check
