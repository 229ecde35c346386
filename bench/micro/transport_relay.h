// A request's way through three processes: the bare relay (client, scheduler, worker; rings, doorbells and waiting
// policy as in leatd, nothing decided, nothing checked) and the real path (this process through libleat, leatd,
// leat-worker with an emulated module of no time). Client and worker share one core, the scheduler has the other.
#pragma once

#include <string>

#include "bench/serving/peers.h"
#include "leat/result.hpp"

namespace leat::bench {

struct PathFigures {
  Figure relay_rtt_ns;  // of rounds of some hundred trips: the mean of the middle eighty percent
  Figure path_rtt_ns;
  Figure path_over_relay;   // each path round against the relay rounds before and after it
  std::size_t dropped = 0;  // rounds in which the relay itself moved by more than 25 %
};

// `leatd`: the program. Error: it could not be started, or did not serve; one line.
Result<PathFigures> measure_path(const Cores& cores, double seconds, const std::string& leatd);

}  // namespace leat::bench
