// Batch caps, from the plan; one pass at start.
#include <algorithm>

#include "engine/core/policy/queues/queue_scheduler.h"

namespace leat::core {

// Sum of what partitions give at batch b each, in items per ns; a partition shared by n modules counts 1/n.
double QueueScheduler::throughput(ModuleId m, std::uint32_t b) const {
  double sum = 0;
  each_consumer(m, [&](ConsumerId v) {
    const RouteSpec& route = view_.route(consumer(v).route);
    const std::uint32_t n = std::min(b, route.batch);
    // The busiest stage bounds a pipelined route; its pool is shared by all consumers of the route.
    double slowest = 0;
    for (const StageSpec& stage : route.stages) {
      slowest =
          std::max(slowest, static_cast<double>(stage.latency.p50_ns[n - 1]) / static_cast<double>(stage.pool.size()));
    }
    sum += n / (slowest * static_cast<double>(route.stages.front().pool.size())) /
           static_cast<double>(view_.queues.of_partition(consumer(v).partition).size());
  });
  return sum;
}

// What the plan allows for a batch of b: the slowest consumer's time; where each takes only what fits there, the
// fastest's.
TimeNs QueueScheduler::planned_run(ModuleId m, std::uint32_t b) const {
  const TaskQueue& l = queue_of(m);
  if (modules_[m].mixed) {
    const QueueConsumer& fastest = consumer(l.first_consumer + l.consumers - 1);
    return fastest.run_ns[std::min(b, room(fastest))];
  }
  TimeNs worst = 0;
  each_consumer(m, [&](ConsumerId v) { worst = std::max(worst, consumer(v).run_ns[std::min(b, room(consumer(v)))]); });
  return worst;
}

// Whether a partition of this module serves another module too.
bool QueueScheduler::shares_partitions(ModuleId m) const {
  bool shares = false;
  each_consumer(m, [&](ConsumerId v) {
    for (ConsumerId other : view_.queues.of_partition(consumer(v).partition))
      shares = shares || queue(consumer(other).queue).module != m;
  });
  return shares;
}

// The caps that maximise the application's rate X subject to sum of d_k(b_k) <= the latency share of the SLO over its
// longest path; each module takes the smallest batch that carries X. On the way every plan is noted for burst_caps.cpp.
void QueueScheduler::search_caps(std::uint32_t application, const Caps& largest, Caps& best) {
  const Topology& t = view_.topology();
  const ApplicationSpec& app = t.applications[application];
  const ModuleId first = app.modules.front();
  Caps cap{};
  Weights d{};
  const TimeNs limit = app.slo_ns / 1000 * latency_share_permille_;
  double best_rate = 0;
  std::vector<CapLevel>& levels = rules_of(application).levels;
  // X is bounded by some module at some batch: those are the candidates.
  for (ModuleId candidate : app.modules) {
    for (std::uint32_t b = 1; b <= largest[candidate - first]; ++b) {
      const double rate = throughput(candidate, b) / t.modules[candidate].units_per_request();
      bool fits = true;
      for (ModuleId m : app.modules) {
        const double need = rate * t.modules[m].units_per_request() * (1 - 1e-12);
        std::uint32_t n = 1;
        while (n <= largest[m - first] && throughput(m, n) < need) ++n;
        fits = fits && n <= largest[m - first];
        if (!fits) break;
        cap[m - first] = n;
        const TimeNs run = planned_run(m, n);
        d[m - first] = run + run / modules_[m].consumer_count;  // the second: until a partition is free
      }
      const TimeNs latency = fits ? longest_path(t, app, d) : kNever;
      if (latency > limit) continue;
      CapLevel& level = levels.emplace_back();
      level.cap = cap;
      level.rate = rate;
      level.latency_ns = latency;
      for (ModuleId m : app.modules)
        level.ns_per_item[m - first] =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(1 / throughput(m, cap[m - first])));
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = cap;
    }
  }
  const bool shares = std::ranges::any_of(app.modules, [&](ModuleId m) { return shares_partitions(m); });
  const bool mixed = std::ranges::any_of(app.modules, [&](ModuleId m) { return modules_[m].mixed; });
  if (shares || mixed || !variant_.ages) levels.clear();
  if (shares) search_caps_in_step(application, largest, best);
}

// Modules that share partitions (only where windows are switched off) take time from each other: what bounds X there is
// the sum of their work, and a module that grows alone takes the others' slack. So theirs grow in step, and of the
// common batches that keep the limit the one counts that brings the most through an overload of T = 6 SLO:
// X (T + SLO - L), as in burst_caps.cpp.
void QueueScheduler::search_caps_in_step(std::uint32_t application, const Caps& largest, Caps& best) const {
  const Topology& t = view_.topology();
  const ApplicationSpec& app = t.applications[application];
  const ModuleId first = app.modules.front();
  const TimeNs limit = app.slo_ns / 1000 * latency_share_permille_;
  Caps cap{};
  Weights d{};
  double max = 0;
  for (std::uint32_t b = 1; b <= *std::max_element(largest.begin(), largest.end()); ++b) {
    double work = 0;  // of one request: its part of the partitions' time
    for (ModuleId m : app.modules) {
      cap[m - first] = std::min(b, largest[m - first]);
      d[m - first] = planned_run(m, cap[m - first]);
      work += t.modules[m].units_per_request() * static_cast<double>(d[m - first]) / cap[m - first] /
              static_cast<double>(modules_[m].consumer_count);
    }
    const TimeNs latency = longest_path(t, app, d);
    const double through = static_cast<double>(7 * app.slo_ns - latency) / work;
    if (b > 1 && (latency > limit || through <= max)) continue;
    max = through;
    best = cap;
  }
}

// Without a latency share: the plan's batches.
void QueueScheduler::plan_caps(std::uint32_t application) {
  const Topology& t = view_.topology();
  const ApplicationSpec& app = t.applications[application];
  const ModuleId first = app.modules.front();
  Caps best{}, largest{};
  for (ModuleId m : app.modules) {
    for (RouteId r : t.modules[m].routes) largest[m - first] = std::max(largest[m - first], t.routes[r].batch);
    best[m - first] = latency_share_permille_ == 0 ? largest[m - first] : 1;
  }
  if (latency_share_permille_ > 0) search_caps(application, largest, best);
  set_caps(app, best);
  plan_ramp(application);
}

void QueueScheduler::set_caps(const ApplicationSpec& app, const Caps& best) {
  const ModuleId first = app.modules.front();
  Weights d{};
  for (ModuleId m : app.modules) {
    each_consumer(m, [&](ConsumerId v) { own_cap(v) = std::min(best[m - first], room(consumer(v))); });
    d[m - first] = planned_run(m, best[m - first]);
  }
  const TimeNs longest_run = std::max<TimeNs>(1, longest_path(view_.topology(), app, d));
  for (ModuleId m : app.modules) {  // what the plan leaves of the limit is shared out in proportion
    if (!modules_[m].mixed || latency_share_permille_ == 0) continue;
    cap_by_time(m, static_cast<TimeNs>(static_cast<double>(app.slo_ns / 1000 * latency_share_permille_) *
                                       static_cast<double>(d[m - first]) / static_cast<double>(longest_run)));
  }
  for (ModuleId m : app.modules) {
    double mixed_rate = 0;
    each_consumer(m, [&](ConsumerId v) {
      mixed_rate += own_cap(v) / static_cast<double>(consumer(v).run_ns[own_cap(v)]) /
                    static_cast<double>(view_.queues.of_partition(consumer(v).partition).size());
    });
    const double rate = modules_[m].mixed ? mixed_rate : throughput(m, best[m - first]);
    modules_[m].ns_per_item = std::max<std::int64_t>(1, static_cast<std::int64_t>(1 / rate));
  }
}

}  // namespace leat::core
