#include "engine/exec/decode/text/ctc_steps.h"

#include <algorithm>

namespace leat::exec {
namespace {

// Step of the overlap from which on the second piece is read.
std::size_t change_of(std::span<const CtcStep> first, std::span<const CtcStep> second) noexcept {
  const std::size_t steps = std::min(first.size(), second.size());
  const auto off_middle = [&](std::size_t step) { return 2 * step < steps ? steps - 2 * step : 2 * step - steps; };
  std::size_t change = steps / 2, longest = 0, run = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    run = first[i].best == second[i].best ? run + 1 : 0;
    const std::size_t middle = i + 1 - run / 2;
    if (run == 0 || run < longest || (run == longest && off_middle(middle) >= off_middle(change))) continue;
    longest = run, change = middle;
  }
  return change;
}

}  // namespace

std::size_t join_steps(std::span<CtcStep> line, std::size_t count, std::span<const CtcStep> piece,
                       std::size_t at) noexcept {
  if (piece.empty()) return count;
  at = std::min(at, count);
  const std::size_t change = change_of(line.subspan(at, count - at), piece);
  const auto rest = piece.subspan(change);
  const std::size_t fits = std::min(rest.size(), line.size() - (at + change));
  std::copy_n(rest.begin(), fits, line.begin() + static_cast<std::ptrdiff_t>(at + change));
  return at + change + fits;
}

}  // namespace leat::exec
