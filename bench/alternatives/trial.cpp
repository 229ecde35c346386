#include "bench/alternatives/trial.h"

#include <cmath>

#include "bench/alternatives/usage.h"
#include "shm/src/rings/clock.h"

namespace leat::bench::alternatives {

namespace {

constexpr double kWarmSeconds = .7, kCoolSeconds = .3;  // before and behind what is measured, at the same load
constexpr double kDisturbedShare = .05;                 // of the cores, taken by others
constexpr int kAgain = 2;
constexpr std::int64_t kSoonNs = 50'000'000;  // from the signal to the first picture
constexpr std::chrono::seconds kToStart{120}, kToEnd{30};

std::int64_t ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

Timetable timetable(const TrialOptions& options) {
  Timetable times{.cameras = options.cameras, .period_ns = ns(1 / options.rate)};
  times.pictures =
      static_cast<std::uint64_t>(std::ceil((kWarmSeconds + options.seconds + kCoolSeconds) * options.rate));
  times.start_ns = shm::monotonic_ns() + kSoonNs;
  times.from_ns = times.start_ns + ns(kWarmSeconds), times.until_ns = times.from_ns + ns(options.seconds);
  return times;
}

// Until as many processes as there are have said it.
bool wait_for(Running& running, const std::function<std::uint32_t()>& said, std::chrono::seconds limit) {
  const auto until = subprocess::after(limit);
  while (said() < running.ready_at()) {
    if (!running.alive() || subprocess::Clock::now() > until) return false;
    sleep_until(shm::monotonic_ns() + kSoonNs);
  }
  return true;
}

}  // namespace

namespace {

Result<Measured> run_once(const Contender& contender, const Pictures& pictures, const TrialOptions& options) {
  const auto failed = [&](const std::string& why) { return Error{std::string(contender.name) + ": " + why}; };
  Record record(options.cameras, timetable(options).pictures);
  const Run run{.pictures = &pictures,
                .record = &record,
                .cameras = options.cameras,
                .parties = options.parties,
                .deadline_ns = options.deadline_ns,
                .cores = options.cores,
                .leatd = options.leatd};
  auto running = contender.start(run);
  if (!running.ok()) return failed(running.error());
  if (!wait_for(
          **running, [&] { return record.ready(); }, kToStart))
    return failed("it did not start");
  const Timetable times = timetable(options);
  record.begin(times);
  sleep_until(times.from_ns);
  const std::vector<Member> members = (*running)->members();
  const std::int64_t host_before = host_busy_ns();
  const UsageByGroup before = usage_of(members);
  sleep_until(times.until_ns);
  const UsageByGroup after = usage_of(members);
  const std::int64_t host_after = host_busy_ns();
  if (!wait_for(
          **running, [&] { return record.done(); }, kToEnd))
    return failed("it did not come to its end");
  const auto memory = memory_of(members);
  record.end();
  if (const Status ended = (*running)->end(subprocess::after(kToEnd)); !ended) return failed(ended.error());
  Measured out = read_record(record, times, options.parties);
  out.others_cores = static_cast<double>(host_after - host_before) / 1e9 / out.seconds;
  for (const auto& [group, usage] : after) {
    const auto at = before.find(group);
    const Usage was = at == before.end() ? Usage{} : at->second;
    out.cores[group] = static_cast<double>(usage.cpu_ns - was.cpu_ns) / 1e9 / out.seconds;
    out.others_cores -= out.cores[group];
    out.switches[group] = static_cast<double>(usage.switches - was.switches) / out.seconds;
  }
  if (memory) {
    out.memory_mb.emplace();
    for (const auto& [group, bytes] : *memory) (*out.memory_mb)[group] = static_cast<double>(bytes) / 1e6;
  }
  return out;
}

}  // namespace

Result<Measured> run_trial(const Contender& contender, const Pictures& pictures, const TrialOptions& options) {
  auto best = run_once(contender, pictures, options);
  const double undisturbed = kDisturbedShare * static_cast<double>(options.cores.size());
  for (int again = 0; again < kAgain && !options.once && best.ok() && best->others_cores > undisturbed; ++again) {
    auto next = run_once(contender, pictures, options);
    if (!next.ok() || next->others_cores < best->others_cores) best = std::move(next);
  }
  return best;
}

}  // namespace leat::bench::alternatives
