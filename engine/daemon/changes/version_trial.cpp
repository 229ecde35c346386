#include "engine/daemon/changes/version_trial.h"

#include <algorithm>

#include "tools/base/text/units.h"

namespace leat::daemon {
namespace {

using shm::ModuleCounter;
using shm::RecordKind;

constexpr std::uint64_t kFailed = 3;    // frames, that are no accident any more
constexpr std::uint64_t kBatches = 8;   // whose mean says something; at the end whatever there is
constexpr std::uint64_t kArrived = 20;  // frames whose misses say something
constexpr std::uint64_t kMissedPercent = 50, kMissedBeforePercent = 25;

std::string new_version_of(const planner::Application& app) { return "the new version of '" + app.name + "' "; }

}  // namespace

void VersionTrial::note_before(const Deployment& old, const std::vector<Arrangement::Heir>& heirs) {
  before_.clear();
  for (const Arrangement::Heir& h : heirs) before_.push_back({.at_first = served(old, h.old), .in_all = {}});
}

void VersionTrial::begin(const Deployment& old, const std::vector<Arrangement::Heir>& heirs, std::int64_t length_ns) {
  length_ns_ = length_ns;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    Before& b = before_[i];
    const Served then = served(old, heirs[i].old);
    b.in_all = {then.arrived - b.at_first.arrived, then.missed - b.at_first.missed};
    b.late_of_new = metrics_.late(heirs[i].now);
  }
}

std::string VersionTrial::refused(const Deployment& old, const Deployment& now,
                                  const std::vector<Arrangement::Heir>& heirs) const {
  for (const Arrangement::Heir& h : heirs)
    if (std::string line = no_numbers(old, now, h); !line.empty()) return line;
  return {};
}

std::string VersionTrial::trouble(const Deployment& old, const Deployment& now,
                                  const std::vector<Arrangement::Heir>& heirs, bool at_end) const {
  for (std::size_t i = 0; i < heirs.size(); ++i) {
    const planner::Application& app = now.applications[heirs[i].now];
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      const auto failed =
          metrics_.of(RecordKind::module, now.first_module[heirs[i].now] + m).value(ModuleCounter::failed);
      if (failed >= kFailed) return "of " + new_version_of(app) + std::to_string(failed) + " frames have failed";
    }
    if (std::string line = no_numbers(old, now, heirs[i]); !line.empty()) return line;
    if (std::string line = too_slow(now, heirs[i].now, at_end); !line.empty()) return line;
    if (std::string line = at_end ? misses(now, i, heirs[i].now) : std::string(); !line.empty()) return line;
  }
  return {};
}

// Late answers are the application's, since its last module alone knows of them.
VersionTrial::Served VersionTrial::served(const Deployment& d, std::uint32_t application) const {
  Served out{.arrived = 0, .missed = metrics_.late(application)};
  const planner::Application& app = d.applications[application];
  for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
    const shm::Record record = metrics_.of(RecordKind::module, d.first_module[application] + m);
    out.missed += record.value(ModuleCounter::dropped) + record.value(ModuleCounter::failed);
    if (app.modules[m].after.empty()) out.arrived = std::max(out.arrived, record.value(ModuleCounter::arrived));
  }
  return out;
}

bool VersionTrial::says_no_numbers(const Deployment& d, std::uint32_t application, std::uint32_t module) const {
  for (std::size_t p = 0; p < d.partitions.size(); ++p) {
    const std::uint32_t session = d.session_of[p][d.first_module[application] + module];
    if (session != UINT32_MAX && supervisor_.not_finite(d.slots[p], session)) return true;
  }
  return false;
}

std::string VersionTrial::no_numbers(const Deployment& old, const Deployment& now,
                                     const Arrangement::Heir& heir) const {
  const planner::Application& app = now.applications[heir.now];
  const std::size_t both = std::min(app.modules.size(), old.applications[heir.old].modules.size());
  for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
    const bool before = m < both && says_no_numbers(old, heir.old, m);
    if (!before && says_no_numbers(now, heir.now, m))
      return new_version_of(app) + "answers values that are infinite or no numbers in module '" + app.modules[m].name +
             "', which the one before does not";
  }
  return {};
}

std::string VersionTrial::too_slow(const Deployment& now, std::uint32_t application, bool at_end) const {
  const planner::Application& app = now.applications[application];
  std::int64_t takes_ns = 0;
  bool none_done = false;
  for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
    const shm::Record record = metrics_.of(RecordKind::module, now.first_module[application] + m);
    const std::uint64_t batches = record.value(ModuleCounter::batches);
    if (batches >= (at_end ? 1 : kBatches))
      takes_ns += static_cast<std::int64_t>(record.value(ModuleCounter::busy_ns) / batches);
    none_done = none_done || (batches == 0 && record.value(ModuleCounter::running) > 0);
  }
  if (takes_ns > app.slo_ns)
    return new_version_of(app) + "takes " + text::time_text(takes_ns) + " a batch, more than its objective of " +
           text::time_text(app.slo_ns);
  if (at_end && none_done && length_ns_ > app.slo_ns)
    return new_version_of(app) + "has not ended one batch in " + text::time_text(length_ns_) +
           ", more than its objective of " + text::time_text(app.slo_ns);
  return {};
}

std::string VersionTrial::misses(const Deployment& now, std::size_t heir, std::uint32_t application) const {
  const Served is = served(now, application);
  const Before& before = before_[heir];
  const std::uint64_t missed = is.missed - before.late_of_new;
  const bool most = is.arrived >= kArrived && missed * 100 > is.arrived * kMissedPercent;
  const bool before_too = before.in_all.missed * 100 > before.in_all.arrived * kMissedBeforePercent;
  if (!most || before_too) return {};
  return "of " + new_version_of(now.applications[application]) + std::to_string(missed) + " of " +
         std::to_string(is.arrived) + " frames have missed their objective, and of the one before " +
         std::to_string(before.in_all.missed) + " of " + std::to_string(before.in_all.arrived);
}

}  // namespace leat::daemon
