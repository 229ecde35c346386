#include "engine/core/load/load_statistics.h"

namespace leat::core {
namespace {

constexpr std::size_t kSamples = 16384;
constexpr std::int64_t kScaleBatches = 64;      // a module's latency scale forgets in so many batches
constexpr std::int64_t kScaleIgnored = 20'000;  // ppm: so near to its profile it is taken at its word

}  // namespace

LoadStatistics::LoadStatistics(const Model& model, bool samples)
    : modules_(model.topology().modules.size()), applications_(model.topology().applications.size()) {
  for (ModuleId m = 0; m < modules_.size(); ++m) {
    ApplicationLoad& a = applications_[model.module(m).application];
    a.gap_ns = std::max(a.gap_ns, model.module(m).min_ns);
    application_of_.push_back(model.module(m).application);
  }
  if (samples) ring_.resize(kSamples);
}

void LoadStatistics::queued(const Model& model, ModuleId module, std::uint32_t items, TimeNs now) noexcept {
  modules_[module].queued_items += items;
  ApplicationLoad& a = applications_[model.module(module).application];
  if (a.queued_items == 0 && now - a.emptied_ns >= a.gap_ns) a.backlog_ns = now;
  a.queued_items += items;
}

void LoadStatistics::unqueued(const Model& model, ModuleId module, std::uint32_t items, TimeNs now) noexcept {
  modules_[module].queued_items -= items;
  ApplicationLoad& a = applications_[model.module(module).application];
  a.queued_items -= items;
  if (a.queued_items == 0) a.emptied_ns = now;
}

void LoadStatistics::ended(const Batch& b) noexcept {
  ModuleLoad& m = modules_[b.module];
  --m.running;
  m.running_items -= b.list.items;
  m.running_end_sum -= b.expected_end_ns;
}

void LoadStatistics::learn(ModuleId module, TimeNs planned, TimeNs ran) noexcept {
  ModuleLoad& m = modules_[module];
  const std::int64_t seen = m.far_off.seen(planned, ran, m.scale_ppm);
  set_scale(m, seen > 0 ? corrected_ppm(m.scale_ppm, seen)
                        : m.scale_ppm + (believed_ppm(planned, ran) - m.scale_ppm) / kScaleBatches);
}

// All its stages speak together: where only one was estimated wrongly, its alone would mislead about the others.
void LoadStatistics::learn_canary(const Batch& b, TimeNs planned, TimeNs ran) noexcept {
  ModuleLoad& m = modules_[b.module];
  if (b.stage == 0) m.tried_planned_ns = m.tried_ran_ns = 0;
  m.tried_planned_ns += planned;
  m.tried_ran_ns += ran;
  if (b.stage + 1 < b.stages) return;
  m.far_off = {};
  set_scale(m, corrected_ppm(m.scale_ppm, believed_ppm(m.tried_planned_ns, m.tried_ran_ns)));
}

void LoadStatistics::set_scale(ModuleLoad& m, std::int64_t ppm) noexcept {
  m.scale_ppm = ppm;
  m.scale_permille = std::abs(ppm - kProfilePpm) < kScaleIgnored ? 1000 : ppm / 1000;
}

void LoadStatistics::forget_scale(ModuleId module) noexcept {
  modules_[module].far_off = {};
  set_scale(modules_[module], kProfilePpm);
}

void LoadStatistics::take_over(const LoadStatistics& from) noexcept {
  for (ModuleId m = 0; m < std::min(modules_.size(), from.modules_.size()); ++m) {
    const std::int64_t queued = modules_[m].queued_items;
    modules_[m] = from.modules_[m];
    modules_[m].queued_items = queued;
  }
}

void LoadStatistics::leave(const Sample& sample) noexcept {
  ring_[(first_ + count_) % ring_.size()] = sample;
  if (count_ < ring_.size()) {
    ++count_;
  } else {
    first_ = (first_ + 1) % ring_.size();
  }
}

std::size_t LoadStatistics::take_samples(std::span<Sample> out) noexcept {
  const std::size_t n = std::min(out.size(), count_);
  if (n == 0) return 0;
  for (std::size_t i = 0; i < n; ++i) out[i] = ring_[(first_ + i) % ring_.size()];
  first_ = (first_ + n) % ring_.size();
  count_ -= n;
  return n;
}

void LoadStatistics::audit() const {
  std::vector<std::int64_t> waiting(applications_.size(), 0);
  for (ModuleId m = 0; m < modules_.size(); ++m) waiting[application_of_[m]] += modules_[m].queued_items;
  for (std::size_t a = 0; a < waiting.size(); ++a)
    check(waiting[a] == applications_[a].queued_items, "an application's queued items");
}

}  // namespace leat::core
