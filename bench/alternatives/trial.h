// One run of one contender: started, warmed, measured, ended. One thread, the process's only one.
#pragma once

#include "bench/alternatives/contenders/contender.h"
#include "bench/alternatives/figures.h"

namespace leat::bench::alternatives {

struct TrialOptions {
  std::uint32_t cameras = 1;
  Parties parties = Parties::alike;
  double rate = 30;  // of each camera, pictures a second
  double seconds = 3;
  bool once = false;  // also where others disturbed it
  std::int64_t deadline_ns = 0;
  std::string leatd;
  std::vector<std::uint32_t> cores;
};
// Where others took a twentieth of the cores it is run again, twice at most; what was disturbed least is told.
// Errors: what did not start or did not end, with the contender's name.
Result<Measured> run_trial(const Contender& contender, const Pictures& pictures, const TrialOptions& options);

}  // namespace leat::bench::alternatives
