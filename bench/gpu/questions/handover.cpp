// Group 2: feature maps from one process to another on one device. Every case is run without MPS and, where the probe
// can start a daemon, with both processes as MPS clients; between two MIG devices where there are two.
#include <optional>

#include "bench/gpu/processes.h"
#include "bench/gpu/questions/groups.h"
#include "bench/gpu/questions/handover_pair.h"

namespace leat::probe {
namespace {

constexpr std::size_t kSizes[] = {64 * kKiB, kMiB, 16 * kMiB, 256 * kMiB};
constexpr std::size_t kQuickSizes[] = {kMiB};

constexpr const char* kHow =
    "two processes; the producer's kernel writes a fresh pattern, the consumer's kernel checks every word; latency by "
    "the "
    "device's timer from the producer's last block to the consumer's first";

// One setting of the two processes: with or without MPS, one device or two MIG devices.
class Setting {
 public:
  Setting(Asker& asker, std::string mps, Environment exporter, Environment importer)
      : asker_(asker), mps_(std::move(mps)), exporter_(std::move(exporter)), importer_(std::move(importer)) {}

  // All sizes of one mechanism and signal: a latency per size, then one verdict. True: it works.
  bool ask(Mechanism mechanism, Signal signal, std::span<const std::size_t> sizes) {
    const Question works{"handover.works", "Does the hand-over work, with every word right and in order?", kHow,
                         conditions_of(mechanism, signal)};
    try {
      start_pair();
    } catch (const std::exception& problem) {
      asker_.failed(works, problem.what());
      return false;
    }
    std::string trouble;
    for (std::size_t bytes : sizes) {
      Conditions conditions = conditions_of(mechanism, signal);
      conditions["size_bytes"] = std::to_string(bytes);
      std::optional<HandoverResult> result;
      try {
        result = run({.mechanism = mechanism,
                      .signal = signal,
                      .bytes = bytes,
                      .rounds = asker_.repeats(bytes > 16 * kMiB ? 50 : 200),
                      .limit_ms = asker_.quick() ? 500 : 2000});
        if (result->mismatches != 0)
          trouble = std::to_string(result->mismatches) + " wrong words at " + std::to_string(bytes) + " bytes";
        if (result->early != 0) trouble = std::to_string(result->early) + " rounds began before their data was there";
      } catch (const std::exception& problem) {
        trouble = "at " + std::to_string(bytes) + " bytes: " + problem.what();
      }
      if (!result) break;
      asker_.number(
          {"handover.latency", "How long from the producer's last kernel to the consumer's first?", kHow, conditions},
          "us", [&] { return Samples{result->latency_us}; });
    }
    asker_.yes_no(works, [&] { return YesNo{trouble.empty(), trouble}; });
    return trouble.empty();
  }

  void ask_outlive(Mechanism mechanism) {
    asker_.yes_no({"handover.outlives_exporter",
                   "Can the importer go on when the exporter is killed?",
                   "SIGKILL while mapped; then read, write, let go, allocate",
                   {{"mechanism", std::string(name_of(mechanism))}, {"mps", mps_}}},
                  [&] {
                    HandoverPair pair(exporter_, importer_);
                    const std::string lost = pair.outlive(mechanism, kMiB);
                    return YesNo{lost.empty(), lost};
                  });
  }

  void ask_read_only() {
    asker_.yes_no({"handover.read_only_mapping",
                   "Can the importer map VMM memory without write access?",
                   "cuMemSetAccess with PROT_READ, then a kernel that writes",
                   {{"mps", mps_}}},
                  [&] {
                    HandoverPair pair(exporter_, importer_);
                    std::string written;
                    try {
                      written = pair.read_only();
                    } catch (const ProbeFailed& refused) {
                      return YesNo{false, refused.what()};
                    }
                    return YesNo{written != "cudaSuccess", "a write ended with " + written};
                  });
  }

 private:
  Conditions conditions_of(Mechanism mechanism, Signal signal) const {
    return {{"mechanism", std::string(name_of(mechanism))}, {"signal", std::string(name_of(signal))}, {"mps", mps_}};
  }

  // The pair is kept from case to case until one fails.
  void start_pair() {
    if (!pair_) pair_.emplace(exporter_, importer_);
  }
  HandoverResult run(const HandoverCase& what) {
    start_pair();
    try {
      return pair_->run(what);
    } catch (...) {
      pair_.reset();
      throw;
    }
  }

  Asker& asker_;
  std::string mps_;
  Environment exporter_, importer_;
  std::optional<HandoverPair> pair_;
};

void ask_setting(Asker& asker, const std::string& mps, const Environment& environment) {
  Setting setting(asker, mps, environment, environment);
  const std::span<const std::size_t> sizes =
      asker.quick() ? std::span<const std::size_t>(kQuickSizes) : std::span<const std::size_t>(kSizes);
  std::optional<Mechanism> best;  // vmm_fd if it works, else the first that does
  for (Mechanism mechanism : kMechanisms) {
    if (setting.ask(mechanism, Signal::message, sizes) && (!best || mechanism == Mechanism::vmm_fd)) best = mechanism;
  }
  for (Signal signal : {Signal::event, Signal::device_word, Signal::host_word}) {
    setting.ask(best.value_or(Mechanism::vmm_fd), signal, sizes);
  }
  if (best.value_or(Mechanism::legacy_ipc) != Mechanism::legacy_ipc) {
    setting.ask(Mechanism::legacy_ipc, Signal::device_word, kQuickSizes);  // the word in memory of the other kind
  }
  for (Mechanism mechanism : kMechanisms) setting.ask_outlive(mechanism);
  setting.ask_read_only();
}

// Two MIG devices of one GPU, if there are two: whether they are of one GPU instance is in the note.
void ask_between_mig_devices(Asker& asker) {
  auto facts = read_nvml();
  if (facts) {
    for (const NvmlDevice& device : facts->devices) {
      if (device.instances.size() < 2) continue;
      const NvmlMigInstance &a = device.instances[0], &b = device.instances[1];
      const bool same = a.gpu_instance == b.gpu_instance;
      Setting setting(asker, same ? "off, two compute instances" : "off, two GPU instances",
                      {{"CUDA_VISIBLE_DEVICES", a.uuid}}, {{"CUDA_VISIBLE_DEVICES", b.uuid}});
      for (Mechanism mechanism : kMechanisms) setting.ask(mechanism, Signal::message, kQuickSizes);
      return;
    }
  }
  asker.not_applicable({"handover.between_mig_devices", "Does a hand-over between two MIG devices work?", kHow},
                       "no GPU has two MIG devices");
}

}  // namespace

void ask_handover(Asker& asker) {
  ask_setting(asker, "off", {});
  ask_between_mig_devices(asker);
  auto environment = asker.start_mps();
  if (!environment) {
    asker.not_applicable({"handover.under_mps", "Does the hand-over work between MPS clients?", kHow},
                         environment.error());
    return;
  }
  ask_setting(asker, "on", *environment);
  if (auto stopped = asker.stop_mps(); !stopped) throw ProbeFailed(stopped.error());
}

}  // namespace leat::probe
