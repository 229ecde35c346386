#include "engine/papers/harpagon.h"

#include "engine/papers/budgets.h"
#include "engine/papers/in_turn.h"

namespace leat::papers {
namespace {

constexpr std::int64_t kNano = 1'000'000'000;

// Items a ns that the plan gives a consumer; a plan may leave the rate out: then all it can do.
double planned_per_ns(const Site& site, const QueueConsumer& s) noexcept {
  const RouteSpec& route = site.view.route(s.route);
  const double max = route.batch / static_cast<double>(s.run_ns[route.batch]),
               pool = static_cast<double>(route.stages.front().pool.size());
  return route.rate_rps > 0 ? std::min(max, route.rate_rps * 1e-9 / pool) : max;
}

// A batch that was sent short of its size, with nothing left behind it: the next task begins another one.
bool sent_short(const Site& site, QueueId l, std::uint32_t items) noexcept {
  return site.queue(l).items == 0 && items < site.cap(site.consumer_of(l));
}

}  // namespace

// ---- ByWindow ----

// What is left of the module's budget beside the run itself: no request may wait longer for its batch to start.
TimeNs ByWindow::collects_ns(QueueId l) const noexcept {
  const QueueConsumer& s = site_.consumer_of(l);
  return std::max<TimeNs>(0, turns_[l].budget_ns - s.run_ns[site_.cap(s)]);
}

void ByWindow::plan() {
  site_.size_by_queue(turns_);
  for (std::uint32_t a : site_.component.applications) {
    const Budgets budgets = budgets_of(site_, a, planned_runs(site_, a), true);
    const ModuleId first = site_.view.topology().applications[a].modules.front();
    for (ModuleId m : site_.view.topology().applications[a].modules)
      site_.each_consumer(m, [&](ConsumerId v) { turns_[site_.consumer(v).queue].budget_ns = budgets[m - first]; });
  }
  for (ModuleId m : site_.component.modules) plan_module(m);
}

// How far apart a route's consumers begin. Filled in a row, they take every request for a while, now and each time they
// come round again. A consumer of another route that may not collect for as long would then find nothing, so these are
// spread evenly.
//
// Which consumers are padded: theirs is a plan with dummies, and no batch of real requests fills within the window.
void ByWindow::plan_module(ModuleId m) {
  const ModuleSpec& spec = site_.view.topology().modules[m];
  const double real_per_ns = site_.application(m).rate_rps * spec.units_per_request() * 1e-9;
  site_.each_consumer(m, [&](ConsumerId v) {
    const QueueConsumer& s = site_.consumer(v);
    double consumers_of_route = 0, remaining_per_ns = 0;  // Theorem 1's w: what this route and all after it take
    TimeNs min_collects_ns = kNever;
    site_.each_consumer(m, [&](ConsumerId other) {
      const QueueConsumer& o = site_.consumer(other);
      if (site_.ratio(o) <= site_.ratio(s)) remaining_per_ns += planned_per_ns(site_, o);
      if (o.route == s.route)
        ++consumers_of_route;
      else
        min_collects_ns = std::min(min_collects_ns, collects_ns(o.queue));
    });
    const std::uint32_t cap = site_.cap(s);
    const auto row_ns = static_cast<TimeNs>(consumers_of_route * cap / remaining_per_ns);
    Collecting& turn = turns_[s.queue];
    turn.padded = real_per_ns > 0 && real_per_ns * static_cast<double>(collects_ns(s.queue)) < cap - 0.5;
    turn.spacing_ns =
        row_ns > min_collects_ns ? static_cast<TimeNs>(cap / (consumers_of_route * planned_per_ns(site_, s))) : 0;
  });
}

// A padded consumer's turn ends before one more request would make its first one late.
void ByWindow::end_padded_turns(QueueId first, QueueId end) noexcept {
  for (QueueId l = first; l < end; ++l) {
    Collecting& turn = turns_[l];
    const QueueConsumer& s = site_.consumer_of(l);
    const std::uint32_t cap = site_.cap(s);
    if (!turn.padded || turn.block_left == 0 || turn.block_left == cap) continue;
    const std::uint32_t items = cap - turn.block_left;
    const TimeNs start = std::max(turn.next_start_ns, site_.view.now), latest = turn.block_from_ns + turn.budget_ns;
    if (start + s.run_ns[items] > latest || start + s.run_ns[items + 1] <= latest) continue;
    turn.block_left = 0;
    turn.next_start_ns = start + s.run_ns[items];
  }
}

QueueId ByWindow::place(ModuleId m, const Task& task) noexcept {
  const TimeNs now = site_.view.now;
  const QueueId first = site_.view.queues.first(m), end = first + site_.view.queues.count(m);
  end_padded_turns(first, end);
  QueueId best = kNone, soonest = kNone;
  TimeNs best_free = kNever, soonest_open = kNever;
  for (QueueId l = first; l < end; ++l) {
    if (!site_.up(l)) continue;
    const bool begun = turns_[l].block_left > 0;
    const TimeNs free = std::max(turns_[l].next_start_ns, now), open = turns_[l].next_start_ns - collects_ns(l);
    if ((begun || open <= now) && (free < best_free || (free == best_free && begun && turns_[best].block_left == 0))) {
      best = l;
      best_free = free;
    }
    if (open < soonest_open) {
      soonest = l;
      soonest_open = open;
    }
  }
  if (best == kNone) best = soonest;
  if (best == kNone) return first;
  Collecting& chosen = turns_[best];
  if (chosen.block_left == 0) {
    chosen.block_left = site_.cap(site_.consumer_of(best));
    chosen.block_from_ns = now;
  }
  chosen.block_left -= std::min(chosen.block_left, task.items);
  if (chosen.block_left == 0) end_turn(best, first, end);
  return best;
}

// A whole batch has been dealt.
void ByWindow::end_turn(QueueId chosen, QueueId first, QueueId end) noexcept {
  const QueueConsumer& s = site_.consumer_of(chosen);
  const TimeNs start = std::max(turns_[chosen].next_start_ns, site_.view.now), spacing = turns_[chosen].spacing_ns;
  turns_[chosen].next_start_ns = start + s.run_ns[site_.cap(s)];
  for (QueueId l = first; spacing > 0 && l < end; ++l) {
    Collecting& other = turns_[l];
    const bool idle = l != chosen && other.block_left == 0 && other.next_start_ns <= start;
    if (idle && site_.consumer_of(l).route == s.route) other.next_start_ns = start + spacing;
  }
}

void ByWindow::launched(QueueId l, ConsumerId, std::uint32_t items) noexcept {
  if (!sent_short(site_, l, items)) return;
  turns_[l].block_left = 0;
  turns_[l].next_start_ns = site_.view.machine.partition(site_.consumer_of(l).partition).free_ns;
}

// ---- ByRate ----

// Every consumer begins with a whole batch due: the first turns go round in ratio order.
void ByRate::plan() {
  site_.size_by_queue(turns_);
  for (ModuleId m : site_.component.modules) {
    double all_per_ns = 0;
    site_.each_consumer(m, [&](ConsumerId v) { all_per_ns += planned_per_ns(site_, site_.consumer(v)); });
    site_.each_consumer(m, [&](ConsumerId v) {
      const QueueConsumer& s = site_.consumer(v);
      turns_[s.queue] = {.earns_nano = static_cast<std::int64_t>(kNano * planned_per_ns(site_, s) / all_per_ns),
                         .due_nano = kNano * static_cast<std::int64_t>(site_.cap(s))};
    });
  }
}

QueueId ByRate::place(ModuleId m, const Task& task) noexcept {
  const QueueId first = site_.view.queues.first(m), end = first + site_.view.queues.count(m);
  QueueId best = kNone;
  std::int64_t best_due = INT64_MIN;  // of a whole batch, permille
  for (QueueId l = first; l < end; ++l) {
    Turn& turn = turns_[l];
    const std::int64_t cap = site_.cap(site_.consumer_of(l));
    turn.due_nano = std::min<std::int64_t>(turn.due_nano + task.items * turn.earns_nano, 2 * kNano * cap);
    if (!site_.up(l)) continue;
    const std::int64_t due =
        turn.block_left > 0 ? INT64_MAX : std::min<std::int64_t>(1000, turn.due_nano / (kNano / 1000) / cap);
    if (due > best_due) {
      best = l;
      best_due = due;
    }
  }
  if (best == kNone) return first;
  Turn& chosen = turns_[best];
  if (chosen.block_left == 0) {
    chosen.block_left = site_.cap(site_.consumer_of(best));
    chosen.due_nano -= kNano * static_cast<std::int64_t>(chosen.block_left);
  }
  chosen.block_left -= std::min(chosen.block_left, task.items);
  return best;
}

void ByRate::launched(QueueId l, ConsumerId, std::uint32_t items) noexcept {
  if (sent_short(site_, l, items)) turns_[l].block_left = 0;
}

// ---- the policy ----

namespace {

constexpr Key<Harpagon> kHarpagonTable[] = {
    {.name = "dispatch",
     .read =
         [](const std::string& v, Harpagon& s) {
           return read_word(v, s.dispatch, {"tc", "tc_rates", "rr"});
         },
     .old_name = "place"},
};

}  // namespace

Rules rules(Site& site, const Harpagon& s) {
  std::unique_ptr<Dispatch> dispatch;
  if (s.dispatch == Harpagon::Dispatch::tc)
    dispatch = std::make_unique<ByWindow>(site);
  else if (s.dispatch == Harpagon::Dispatch::tc_rates)
    dispatch = std::make_unique<ByRate>(site);
  else
    dispatch = std::make_unique<InTurn>(site);
  return {.order = std::make_unique<Order>(Order::First::oldest),
          .drop = std::make_unique<KeepAll>(),
          .dispatch = std::move(dispatch),
          .batching = Batching::fill};
}

const std::span<const Key<Harpagon>> kHarpagonKeys = kHarpagonTable;

void use(const Harpagon& s, Policy& out) { out.scheduler = std::make_shared<QueuesOf<Harpagon>>(s); }

}  // namespace leat::papers
