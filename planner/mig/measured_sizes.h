// A profile's partition classes as PARIS's partition sizes: latency of a whole model by request size. Pure; any thread.
// Errors: one line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "planner/mig/geometry.h"
#include "planner/mig/paris.h"
#include "planner/profile.h"

namespace leat::planner {

// [batch - 1] seconds, p99, on one class; straight lines between measured batches.
Result<std::vector<double>> class_latency_s(const Profile& profile, const std::string& partition_class,
                                            std::size_t batches);

// The class that stands for a MIG profile: its own, "mig:1g.10gb"; where that was not measured, the share of the
// multiprocessors that it has of the whole, "mps:14".
std::string class_for(const Profile& profile, const MigGeometry& geometry, const MigProfile& size);

// Utilisation is not in a profile: its place is taken by throughput in items over the most that the partition reaches.
ParisSize measured_size(double compute, const std::vector<double>& latency_s);

}  // namespace leat::planner
