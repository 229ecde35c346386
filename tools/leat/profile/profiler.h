// Measures a model's profile: chooses the cuts, checks them, runs every (class, share, batch), and keeps the file up to
// date after each, so that an interrupted run goes on where it stopped. Control plane; one thread (it pins itself).
// Errors: one line, what and what to do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/profile.h"
#include "tools/leat/profile/chain.h"
#include "tools/leat/profile/grouping.h"

namespace leat::tools {

struct ProfileJob {
  std::string model_path, model;            // ONNX file; the name applications use
  std::string output;                       // the profile; "" : not kept
  std::vector<std::uint32_t> cores;         // class cpu:N for each N
  std::vector<std::uint32_t> shares = {1};  // v: v - 1 busy neighbours on the same cores
  std::vector<std::uint32_t> batches;       // ascending, 1 first; empty: 1, 2, 4, 8, or 1 where the model fixes it
  std::uint32_t neighbours = 0;             // busy on the other cores
  std::uint32_t blocks = 1;
  GroupBy by = GroupBy::time;
  double balance = 1.2;
  bool half_boundaries = false;  // blocks hand over float16
  std::uint32_t samples = 200;
  double seconds = 5;  // at most for one (class, share, batch)
  bool fresh = false;  // measure anew what the file has already
  bool verify = false;
  double tolerance = 1e-4;
  std::uint64_t seed = 1;
  std::string blocks_folder;           // sub-models are written there; empty: nowhere
  std::optional<ModuleAround> around;  // pre- and post-processing to be measured with the model
  // Instead of cores: a device that this process sees already, and what its class is called. cores is {1} then.
  exec::Device* device = nullptr;
  std::string device_class;  // "gpu", "mig", "mps:25"
};

// Chained blocks against the whole model: the largest difference relative to the largest value of the answer.
struct Verified {
  double own_weights = 0;
  std::optional<double> random_weights;  // none where the weights are not in the model's file
  double largest() const { return std::max(own_weights, random_weights.value_or(0)); }
  std::uint32_t runs = 0;
};

struct ProfileRun {
  planner::Profile profile;
  std::size_t cut_points = 0;  // of the model, in all
  std::vector<std::int64_t>
      segment_ns;  // between neighbouring candidates for a cut, largest batch; empty: nothing was grouped
  std::size_t measured = 0, kept = 0;  // rows of this run, and of the file it went on from
  std::optional<Verified> verified;
  double seconds = 0;
  std::string note;  // what was done otherwise than asked, and why; empty: nothing was
};

Result<ProfileRun> run_profile(ProfileJob job);

// "cpu:4", or "4": 4. Error: no class that this host has (`usable`: its cores).
Result<std::uint32_t> parse_class(const std::string& text, std::size_t usable);
// Ascending, without doubles, each low..high. what: "--batches", for messages.
Result<std::vector<std::uint32_t>> parse_numbers(const std::string& what, const std::string& text, std::uint32_t low,
                                                 std::uint32_t high);
std::vector<std::string> split_list(const std::string& text);

// Median, 99th percentile, quartiles' distance and count of `ns` (at least one entry).
planner::Latency summary(std::vector<std::int64_t> ns);

// The same where neighbours take turns on the same cores: a batch shorter than a turn mostly runs undisturbed, so that
// its median promises a throughput that a share does not have. The mean stands in where it is larger.
planner::Latency summary_of_share(std::vector<std::int64_t> ns);

// Largest difference, relative to the largest expected value; infinite where sizes differ or a value is no number.
double relative_difference(std::span<const double> expected, std::span<const double> found);

}  // namespace leat::tools
