#include "engine/sim/workload/workload.h"

#include <algorithm>
#include <charconv>

#include "engine/sim/workload/random.h"

namespace leat::sim {
namespace {

constexpr double kSecondNs = 1e9;

bool number(std::string_view text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

Result<ArrivalProcess> read_mmpp(const std::string& word) {
  ArrivalProcess p{.kind = ProcessKind::mmpp};
  std::string_view rest = std::string_view(word).substr(word.find(':') + 1);
  double sum = 0;
  while (!rest.empty()) {
    const std::string_view state = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), state.size() + 1));
    const std::size_t slash = state.find('/');
    double rate = 0, seconds = 0;
    if (slash == std::string_view::npos || !number(state.substr(0, slash), rate) ||
        !number(state.substr(slash + 1), seconds) || !(rate >= 0) || rate > 1e9 || !(seconds > 1e-6) || seconds > 1e6) {
      return Error{"arrivals '" + word + "': '" + std::string(state) +
                   "' is no RATE/SECONDS; write for example mmpp:1/10,4/2"};
    }
    p.relative_rates.push_back(rate);
    p.dwell_ns.push_back(static_cast<TimeNs>(seconds * kSecondNs));
    sum += rate;
  }
  if (p.relative_rates.size() < 2 || sum <= 0)
    return Error{"arrivals '" + word +
                 "': needs two states or more, one with a rate above 0; write for example mmpp:1/10,4/2"};
  return p;
}

}  // namespace

Result<ArrivalProcess> read_process(const std::string& word) {
  if (word == "poisson") return ArrivalProcess{};
  if (word.starts_with("gamma:")) {
    ArrivalProcess p{.kind = ProcessKind::gamma};
    if (!number(std::string_view(word).substr(6), p.cv) || !(p.cv >= 0.05 && p.cv <= 20)) {
      return Error{"arrivals '" + word +
                   "': the coefficient of variation must be a number from 0.05 to 20; write for example gamma:1.4"};
    }
    return p;
  }
  if (word.starts_with("mmpp:")) return read_mmpp(word);
  auto trace = read_trace(word);
  if (!trace) return Error{trace.error() + " (or give poisson, gamma:CV or mmpp:RATE/SECONDS,...)"};
  return ArrivalProcess{.kind = ProcessKind::trace, .trace = std::move(*trace)};
}

TimeNs own_length(const ArrivalProcess& process, double rate_rps, TimeNs bin_ns) {
  if (process.kind != ProcessKind::trace) return 0;
  if (process.trace.per_request)
    return static_cast<TimeNs>(static_cast<double>(process.trace.values.size()) / rate_rps * kSecondNs) + 1;
  return static_cast<TimeNs>(process.trace.values.size()) * (bin_ns > 0 ? bin_ns : process.trace.bin_ns);
}

std::vector<TimeNs> times(const ArrivalProcess& process, double rate_rps, TimeNs length_ns, TimeNs bin_ns,
                          std::uint64_t seed) {
  switch (process.kind) {
    case ProcessKind::poisson:
      return poisson(rate_rps, length_ns, seed);
    case ProcessKind::gamma:
      return gamma(rate_rps, process.cv, length_ns, seed);
    case ProcessKind::mmpp: {
      double requests = 0, seconds = 0;
      for (std::size_t i = 0; i < process.dwell_ns.size(); ++i) {
        requests += process.relative_rates[i] * static_cast<double>(process.dwell_ns[i]);
        seconds += static_cast<double>(process.dwell_ns[i]);
      }
      std::vector<double> rates;
      for (const double r : process.relative_rates) rates.push_back(r * rate_rps * seconds / requests);
      return mmpp(rates, process.dwell_ns, length_ns, seed);
    }
    case ProcessKind::trace:
      return replay(process.trace, rate_rps, bin_ns, length_ns, seed);
  }
  return {};
}

std::vector<TimeNs> with_burst(std::vector<TimeNs> times, const Burst& burst, double rate_rps, std::uint64_t seed) {
  if (burst.factor < 1) {
    Random random(seed);
    std::erase_if(
        times, [&](TimeNs t) { return t >= burst.from_ns && t < burst.until_ns && random.uniform() > burst.factor; });
    return times;
  }
  const auto middle = static_cast<std::ptrdiff_t>(times.size());
  for (const TimeNs t : poisson(rate_rps * (burst.factor - 1), burst.until_ns - burst.from_ns, seed))
    times.push_back(burst.from_ns + t);
  std::inplace_merge(times.begin(), times.begin() + middle, times.end());
  return times;
}

}  // namespace leat::sim
