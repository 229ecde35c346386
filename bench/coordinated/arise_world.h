// The world that policies for coordinated streams are tried in: clients with recorded drops (drop_table.h) at 60 frames
// a second, a server of partitions whose batches take what a profile says, give or take 2 %, and no network.
//
// A second of a client is within its SLA when the mean drop of its 60 frames there, above what they would have had with
// a partition of its own, is at most the SLA; a client, when the mean over its whole stay is.
//
// Coordinated policies decide themselves whom they let in, out of more clients than they can hold; a stay begins with
// an admission's first answer and ends with the eviction. The others serve all clients of a run, and their run is
// repeated with other numbers of clients (and other fixed settings) until the most is found with which at least 95 % of
// all seconds are within.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/streams/coordinator/coordinator.h"
#include "tools/scene/tracking/drop_table.h"

namespace leat::bench {

using scene::DropTable;
using scene::record_drops;

struct AriseCase {
  const DropTable* table = nullptr;
  std::vector<core::TimeNs> batch_ns;
  std::uint32_t partitions = 1;
  double sla_min = 0.06, sla_max = 0.06;  // drawn between them, for each client
  std::uint64_t seed = 1;
  double seconds = 30, warm_up_s = 10;
};

struct AriseResult {
  double clients = 0;                        // at a time
  double within = 1;                         // share of clients, or of stays, within their SLA
  double windows_within = 1;                 // share of all their seconds
  double batch = 0, idle = 0, interval = 0;  // mean size; share of partitions' time; mean frames between offloadings
  double start_error_ms = 0;                 // mean, of planned batches
  double evictions = 0;                      // a second
  std::vector<double> drops_over_sla;        // of every client's or stay's whole time
};

struct Fixed {
  std::uint32_t interval = 0, batch = 0;  // frames, requests; 0: by the estimate
};

enum class Reactive : std::uint8_t { static_, clipper, chameleon, arise_a };

// Clients on offer: half as many again as the server would hold at best, by the closed form.
[[nodiscard]] AriseResult run_coordinated(const AriseCase& c, const core::streams::CoordinatorSettings& settings);
// The same of clients that say what they expect to have lost (the table's `expects`), and may ask.
[[nodiscard]] AriseResult run_asking(const AriseCase& c, const core::streams::CoordinatorSettings& settings);
// With the number of clients found by search, and for static_ and clipper the interval (and batch) too, if `fixed` does
// not say them; afterwards it does.
[[nodiscard]] AriseResult run_reactive(const AriseCase& c, Reactive policy, core::streams::Estimation estimation,
                                       Fixed& fixed);

// Mean over intervals of 4 to 24 frames of how far the mean drop that an estimator gives a schedule is from the one
// that it has, on one video.
[[nodiscard]] double estimator_error(const DropTable& table, core::streams::Estimation estimation);

// The thesis's coordinator: its estimator or ours, no margin, no bound on how early a frame may be asked for.
[[nodiscard]] core::streams::CoordinatorSettings arise_settings(core::streams::Estimation estimation);

}  // namespace leat::bench
