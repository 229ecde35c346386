// A rule of what a tracker expects to have lost (certainty.hpp) from a file that `leat certainty` has made of one's own
// videos, in place of the one that the tracker comes with:
//
//   auto rule = leat::read_certainty("gate.certainty", "blocks");
//   leat::TrackedStream<leat::BlockTracker> tracked(64, leat::BlockTracker(*rule));
//
// Where the file says that the rule told nothing, the tracker says nothing (below 0), and its stream goes by the clock.
// Needs the client library. Thread rule: none, no state.
#pragma once

#include <algorithm>
#include <string>

#include "leat/certainty.h"
#include "leat/certainty.hpp"
#include "leat/result.hpp"

namespace leat {

static_assert(kCertaintyTerms == LEAT_CERTAINTY_TERMS);

// Errors: one line; no such file, no such rule, or that of another tracker.
inline Result<CertaintyRule> read_certainty(const std::string& path, const std::string& tracker) {
  leat_certainty from;
  if (leat_read_certainty(path.c_str(), &from) != LEAT_ERROR_ok) return Error{leat_last_error()};
  if (tracker != from.tracker)
    return Error{path + ": is a rule of the tracker '" + from.tracker + "', not of '" + tracker +
                 "'; make one by 'leat certainty --tracker " + tracker + "'"};
  CertaintyRule rule;
  std::copy_n(from.weight, LEAT_CERTAINTY_TERMS, rule.weight.begin());
  rule.asks = from.asks != 0;
  return rule;
}

}  // namespace leat
