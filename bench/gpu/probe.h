// The probe as a whole: keeper, one process per group, the report. Makes no CUDA call itself. One thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/gpu/processes.h"
#include "bench/gpu/report.h"

namespace leat::probe {

struct ProbeOptions {
  bool quick = false;
  std::vector<std::string> groups;  // names; empty: all
  std::string device;               // for CUDA_VISIBLE_DEVICES; empty: as the environment says
  std::string mps_control;          // program; empty: looked for on PATH and beside the driver
  // Called as the groups go by: which of how many, and its name.
  std::function<void(std::size_t, std::size_t, std::string_view)> progress;
  // Called after each group with what there is: whoever ends the probe in the middle keeps that.
  std::function<void(const Report&)> partial;
};

// Never fails as a whole: what broke is in the report. report.problem says why nothing could be asked at all.
Report run_probe(const ProbeOptions& options);

// Exit status of the program: 0 everything was answered, 1 some answers are "failed", 3 no driver or no device.
[[nodiscard]] int exit_status(const Report& report) noexcept;

// Role that names the devices CUDA shows: "devices" with lines "UUID name", after "versions".
int run_enumerate(Channel& channel, std::span<const std::string> arguments);
inline constexpr std::string_view kEnumerateRole = "enumerate";

}  // namespace leat::probe
