#include "engine/sim/workload/arrivals.h"

#include <algorithm>
#include <fstream>

#include "engine/sim/workload/random.h"

namespace leat::sim {
namespace {

constexpr double kSecond = 1e9;

}  // namespace

std::vector<TimeNs> poisson(double rate_rps, TimeNs length_ns, std::uint64_t seed) {
  Random random(seed);
  std::vector<TimeNs> times;
  if (rate_rps <= 0) return times;
  const auto end = static_cast<double>(length_ns);
  for (double t = random.exponential() / rate_rps * kSecond; t < end; t += random.exponential() / rate_rps * kSecond) {
    times.push_back(static_cast<TimeNs>(t));
  }
  return times;
}

std::vector<TimeNs> gamma(double rate_rps, double cv, TimeNs length_ns, std::uint64_t seed) {
  Random random(seed);
  std::vector<TimeNs> times;
  if (rate_rps <= 0) return times;
  const double shape = 1 / (cv * cv), scale = kSecond / rate_rps / shape;
  const auto end = static_cast<double>(length_ns);
  for (double t = random.gamma(shape) * scale; t < end; t += random.gamma(shape) * scale)
    times.push_back(static_cast<TimeNs>(t));
  return times;
}

std::vector<TimeNs> mmpp(std::span<const double> rate_rps, std::span<const TimeNs> dwell_ns, TimeNs length_ns,
                         std::uint64_t seed) {
  Random random(seed);
  std::vector<TimeNs> times;
  double from = 0;
  for (std::size_t i = 0; from < static_cast<double>(length_ns); i = (i + 1) % rate_rps.size()) {
    const double to =
        std::min(from + random.exponential() * static_cast<double>(dwell_ns[i]), static_cast<double>(length_ns));
    for (double t = from; rate_rps[i] > 0;) {
      t += random.exponential() / rate_rps[i] * kSecond;
      if (t >= to) break;
      times.push_back(static_cast<TimeNs>(t));
    }
    from = to;
  }
  return times;
}

std::vector<TimeNs> from_series(std::span<const double> counts, TimeNs bin_ns, double scale, std::uint64_t seed) {
  Random random(seed);
  std::vector<TimeNs> times;
  // One unit-rate Poisson process, its time stretched bin by bin: exact for a piecewise constant rate.
  double due = random.exponential(), passed = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double mean = counts[i] * scale;
    while (mean > 0 && due < passed + mean) {
      times.push_back(
          static_cast<TimeNs>((static_cast<double>(i) + (due - passed) / mean) * static_cast<double>(bin_ns)));
      due += random.exponential();
    }
    passed += mean;
  }
  return times;
}

std::uint32_t lognormal_items(std::uint64_t key, double median, double sigma, std::uint32_t largest) {
  Random random(key);
  const double x = median * exp(sigma * random.normal());
  return x >= largest ? largest : std::max(1u, static_cast<std::uint32_t>(x + 0.5));
}

Result<Trace> read_trace(const std::string& path) {
  Trace trace;
  const std::string name = path.substr(path.find_last_of('/') + 1);
  if (name.find("_arrivals_") != std::string::npos) {
    trace.per_request = true;
  } else if (name.find("_1s_") != std::string::npos) {
    trace.bin_ns = 1'000'000'000;
  } else if (name.find("_1min_") != std::string::npos) {
    trace.bin_ns = 60'000'000'000;
  } else if (name.find("_1h_") != std::string::npos) {
    trace.bin_ns = 3'600'000'000'000;
  } else {
    return Error{path + ": the name does not say what its lines are; it must contain _arrivals_, _1s_, _1min_ or _1h_"};
  }
  std::ifstream in(path);
  if (!in) return Error{path + ": cannot be opened; check the path"};
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    char* end = nullptr;
    const double value = std::strtod(line.c_str(), &end);
    while (*end == '\r' || *end == ' ') ++end;
    if (end == line.c_str() || *end != 0 || !(value >= 0)) {
      return Error{path + ":" + std::to_string(number) + ": expected one number that is not negative"};
    }
    if (trace.per_request && !trace.values.empty() && value < trace.values.back()) {
      return Error{path + ":" + std::to_string(number) + ": arrival times must not fall"};
    }
    trace.values.push_back(value);
  }
  if (trace.values.empty()) return Error{path + ": it is empty"};
  return trace;
}

std::vector<TimeNs> replay(const Trace& trace, double rate_rps, TimeNs bin_ns, TimeNs longest_ns, std::uint64_t seed) {
  std::vector<TimeNs> times;
  if (trace.per_request) {
    const double mean = static_cast<double>(trace.values.size()) / std::max(trace.values.back(), 1e-3);
    const double stretch = mean / rate_rps * kSecond;
    for (double t : trace.values) times.push_back(static_cast<TimeNs>(t * stretch));
  } else {
    const TimeNs bin = bin_ns > 0 ? bin_ns : trace.bin_ns;
    const auto bins = std::min<std::size_t>(trace.values.size(), static_cast<std::size_t>(longest_ns / bin));
    const std::span<const double> counts(trace.values.data(), bins);
    double sum = 0;
    for (double c : counts) sum += c;
    if (sum > 0)
      times = from_series(counts, bin, rate_rps * static_cast<double>(bin) / kSecond * static_cast<double>(bins) / sum,
                          seed);
  }
  while (!times.empty() && times.back() >= longest_ns) times.pop_back();
  return times;
}

std::vector<Arrival> to_stream(std::span<const TimeNs> times, std::uint32_t stream) {
  std::vector<Arrival> list;
  list.reserve(times.size());
  for (TimeNs t : times) list.push_back({.at_ns = t, .stream = stream});
  return list;
}

std::vector<Arrival> merged(std::span<const std::vector<Arrival>> lists) {
  std::vector<Arrival> all;
  for (const std::vector<Arrival>& list : lists) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(), [](const Arrival& a, const Arrival& b) { return a.at_ns < b.at_ns; });
  return all;
}

}  // namespace leat::sim
