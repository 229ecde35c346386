#include "engine/core/policy/windows/window_scheduler.h"

#include <algorithm>
#include <cmath>

#include "engine/core/policy/path.h"

namespace leat::core {
namespace {

constexpr double kGain = 1.0 / 32;     // of a batch on its module's latency scale
constexpr double kAsProfiled = .005;   // a latency scale and a deviation this near to the profile are the profile
constexpr std::size_t kChoices = 32;   // modules on one partition that are told apart in one decision
constexpr std::uint32_t kOverdue = 4;  // of a batch, one in so many may be late already, where late is worth running
constexpr std::uint32_t kSkips = 16;   // tasks too large for what is left of a batch that smaller ones may go past

// Items of later modules that b items here become.
std::uint32_t items_of(std::uint32_t b, double ratio) noexcept {
  return std::max(1u, static_cast<std::uint32_t>(b * ratio + .5));
}

}  // namespace

TimeNs WindowScheduler::Step::run(std::uint32_t b) const noexcept {
  const std::uint32_t items = items_of(b, ratio);
  const TimeNs rest = items % batch == 0 ? 0 : run_ns[items % batch];
  return static_cast<TimeNs>(items / batch) * run_ns[batch] + rest;
}

bool WindowScheduler::Choice::better(const Choice& o) const noexcept {
  if (o.consumer == kNone || rank != o.rank) return o.consumer == kNone || rank > o.rank;
  if (within_share() && deadline_ns != o.deadline_ns) return deadline_ns < o.deadline_ns;
  return worth != o.worth               ? worth > o.worth
         : deadline_ns != o.deadline_ns ? deadline_ns < o.deadline_ns
                                        : consumer < o.consumer;
}

WindowScheduler::WindowScheduler(const Making& from)
    : ComponentScheduler(from.view, from.core, from.component),
      risk_(from.policy.risk_permille / 1000.0),
      periodic_(view_, core_, component_, from.policy),
      canaries_(view_, component_, from.policy),
      first_consumer_(static_cast<ConsumerId>(from.queues.consumers())),
      fastest_(view_.model, component_),
      scale_(view_.model, component_),
      rarity_(view_.model, component_) {
  for (ModuleId m : component_.modules) {  // fast partitions first
    std::vector<QueueConsumer> consumers;
    for (RouteId r : view_.topology().modules[m].routes) {
      for (PartitionId p : view_.route(r).stages.front().pool) consumers.push_back({.partition = p, .route = r});
    }
    std::ranges::stable_sort(consumers, {}, [&](const QueueConsumer& s) { return view_.model.run_ns(s.route)[1]; });
    std::vector<PartitionId> holders;
    for (const QueueConsumer& s : consumers) holders.push_back(s.partition);
    std::ranges::sort(holders);
    const auto twice = std::ranges::unique(holders);
    holders.erase(twice.begin(), twice.end());
    rarity_[m] = static_cast<double>(component_.partitions.size()) / static_cast<double>(holders.size());
    from.queues.add(view_.model, m, consumers);
  }
  make_ways();
}

// The way from each consumer to the end: later modules run on the same partition where it serves them, else on their
// fastest one. Consumers with the same way share it.
void WindowScheduler::make_ways() {
  const Topology& t = view_.topology();
  for (ModuleId k : component_.modules) {
    const ApplicationSpec& app = t.applications[view_.model.module(k).application];
    std::array<bool, kMaxModulesPerApplication> after{};
    after[k - app.modules.front()] = true;
    for (ModuleId j : app.modules) {
      for (ModuleId before : t.modules[j].before)
        after[j - app.modules.front()] = after[j - app.modules.front()] || after[before - app.modules.front()];
    }
    const auto begin = static_cast<std::uint32_t>(ways_.size());
    const TaskQueue& l = queue(view_.queues.first(k));
    std::vector<std::uint32_t> count;
    for (ConsumerId s = l.first_consumer; s < l.first_consumer + l.consumers; ++s) {
      Way w;
      for (ModuleId j : app.modules) {
        if (!after[j - app.modules.front()]) continue;
        RouteId route = j == k ? consumer(s).route : consumer(queue(view_.queues.first(j)).first_consumer).route;
        for (ConsumerId mine : view_.queues.of_partition(consumer(s).partition)) {
          if (j != k && queue(consumer(mine).queue).module == j) route = consumer(mine).route;
        }
        w.steps.push_back({j, view_.model.run_ns(route), t.routes[route].batch,
                           t.modules[j].units_per_request() / t.modules[k].units_per_request()});
      }
      w.ns.push_back(0);
      for (std::uint32_t b = 1; b <= max_items(s); ++b) {
        w.ns.push_back(0);
        for (const Step& step : w.steps) w.ns[b] += step.run(b);
      }
      std::uint32_t id = begin;
      while (id < ways_.size() && ways_[id].ns != w.ns) ++id;
      if (id == ways_.size()) {
        ways_.push_back(std::move(w));
        count.push_back(0);
      }
      ++count[id - begin];
      way_of_.push_back(id);
    }
    fastest_[k] = begin;
    for (std::uint32_t id = begin; id < ways_.size(); ++id) {
      if (ways_[id].ns[1] < ways_[fastest_[k]].ns[1]) fastest_[k] = id;
      double speeds = 0;
      for (std::uint32_t other = begin; other < ways_.size(); ++other)
        speeds += count[other - begin] * static_cast<double>(ways_[id].ns[1]) / static_cast<double>(ways_[other].ns[1]);
      ways_[id].speeds = speeds;
    }
  }
}

// T_k(b, p), with so many standard deviations on top.
TimeNs WindowScheduler::to_end(const Way& w, std::uint32_t b, double deviations) const noexcept {
  if (as_profiled_) return w.ns[b];
  double mean = 0, variance = 0;
  for (const Step& step : w.steps) {
    const auto run = static_cast<double>(step.run(b));
    const Scale& scale = scale_[step.module];
    mean += scale.mean * run;
    variance += scale.variance * run * run;
  }
  return static_cast<TimeNs>(mean + deviations * std::sqrt(variance));
}

// The largest batch that is carried to the end within `room`.
std::uint32_t WindowScheduler::fit(ConsumerId s, TimeNs room) const noexcept {
  std::uint32_t low = 0, high = cap(s);
  while (low < high) {
    const std::uint32_t b = (low + high + 1) / 2;
    if (to_end(way(s), b, risk_) <= room) {
      low = b;
    } else {
      high = b - 1;
    }
  }
  return low;
}

// What could not be carried to the end alone by the fastest partition. (A large one is asked when it is the first.)
void WindowScheduler::drop_hopeless(const TaskQueue& l, TimeNs start) noexcept {
  const Way& fastest = ways_[fastest_[l.module]];
  const TimeNs of_one = to_end(fastest, 1, 0);
  const auto needs = [&](TaskId t) {
    return task(t).items == 1 ? of_one : to_end(fastest, std::min(task(t).items, fastest.max_items()), 0);
  };
  for (std::uint32_t left = l.classes; left != 0; left &= left - 1) {
    const DeadlineQueue& waiting = l.by_deadline[static_cast<std::size_t>(std::countr_zero(left))];
    for (TaskId t = waiting.front(); t != kNone;) {
      const TimeNs min = needs(t);
      if (task(t).deadline_ns >= start + min) break;
      if (task(t).give_up_ns >= start + min) {
        t = task(t).after;
        continue;
      }
      core_.drop(t, task(t).give_up_ns > task(t).deadline_ns ? Reason::stale : Reason::unreachable);
      t = waiting.front();
    }
  }
}

// How many items at the queue's late end ride in a batch of `base` others, `most` together, each in time.
std::uint32_t WindowScheduler::window(const DeadlineQueue& waiting, const Way& w, TimeNs start, std::uint32_t base,
                                      std::uint32_t max) const noexcept {
  std::uint32_t items = 0, skips = 0;
  for (TaskId t = waiting.back(); t != kNone && base + items < max; t = task(t).before) {
    const std::uint32_t with = base + items + task(t).items;
    if (with <= max && task(t).deadline_ns >= start + to_end(w, with, risk_)) {
      items += task(t).items;
    } else if (task(t).items == 1 || ++skips > kSkips) {
      break;
    }
  }
  return items;
}

// The first that a batch of this consumer can hold.
TaskId WindowScheduler::head(const DeadlineQueue& waiting, ConsumerId s) const noexcept {
  TaskId t = waiting.front();
  for (std::uint32_t skips = 0; t != kNone && task(t).items > max_items(s); t = task(t).after)
    if (++skips > kSkips) return kNone;
  return t;
}

// A batch may grow by lower levels as long as it would reach the end in three quarters of what its oldest has left: the
// rest is for waiting on the way. (Classes alone need none of it; users' shares do.)
std::uint32_t WindowScheduler::room_below(ConsumerId s, TimeNs left) const noexcept { return fit(s, left * 3 / 4); }

Pace WindowScheduler::pace(ConsumerId s, TimeNs start, std::uint32_t items) const noexcept {
  const Way& w = way(s);
  const std::uint32_t most = cap(s);
  return {.start_ns = start,
          .run_ns = to_end(w, items, risk_),
          .each_ns = static_cast<TimeNs>(static_cast<double>(to_end(w, most, 0)) / (most * w.speeds))};
}

// Where a newer picture will replace what waits, as many as a batch holds and all of them in time.
void WindowScheduler::look_fresh(const TaskQueue& l, std::uint8_t level, TimeNs start, Choice& choice) const noexcept {
  std::uint32_t items = std::min(cap(choice.consumer), l.replaced[level]);
  for (; items > 0 && choice.first == kNone; items /= 2) {
    choice.first = freshest(view_, l, level, pace(choice.consumer, start, items));
    choice.items = items;
  }
  if (choice.first == kNone) return;
  const std::uint32_t own = task(choice.first).items;
  if (own > max_items(choice.consumer)) {
    choice.first = kNone;
    return;
  }
  choice.items = std::max(choice.items, own);
  choice.fresh = true;
  const TimeNs earliest = task(l.by_deadline[level].front()).deadline_ns;
  choice.all = earliest >= start + to_end(way(choice.consumer), choice.items, risk_);
  choice.deadline_ns = choice.all ? earliest : task(choice.first).deadline_ns;
}

void WindowScheduler::look_by_deadline(const TaskQueue& l, std::uint8_t top, TimeNs start,
                                       Choice& choice) const noexcept {
  const ConsumerId s = choice.consumer;
  const DeadlineQueue& waiting = l.by_deadline[top];
  const Way& w = way(s);
  const bool alone = (l.classes & (l.classes - 1)) == 0;
  if (alone && l.items <= cap(s) && task(waiting.front()).deadline_ns >= start + to_end(w, l.items, risk_)) {
    choice.items = l.items;  // light load: all fit
    choice.first = waiting.front();
  } else {
    choice.items = window(waiting, w, start, 0, cap(s));
    if (choice.items > 0) {
      choice.first = waiting.first_at_least(view_.tasks.data(), start + to_end(w, choice.items, risk_));
    } else {
      // Nobody is safe here. On the fastest kind of partition the head is tried alone, if it is in time as things
      // usually go; and what is worth running although it is late, in any case.
      const TaskId first = head(waiting, s);
      if (first == kNone) return;
      const Task& head = task(first);
      const bool in_time = head.deadline_ns >= start + to_end(w, head.items, 0);
      const bool late_is_worth = head.give_up_ns > head.deadline_ns && !in_time;
      if (!late_is_worth && !(in_time && way_of_[s - first_consumer_] == fastest_[l.module])) return;
      choice.first = first;
      choice.items = head.items;
    }
  }
  choice.all = choice.first == waiting.front();
  choice.deadline_ns = task(choice.first).deadline_ns;
}

// The best window of the queue's highest level, and what lower ones add to it.
WindowScheduler::Choice WindowScheduler::look(ConsumerId s, TimeNs start) noexcept {
  const TaskQueue& l = queue(consumer(s).queue);
  if (l.classes == 0) return {};
  const std::uint8_t top = view_.top_class(l);
  const Way& w = way(s);
  Choice choice{.rank = periodic_.rank_of(top), .consumer = s};
  look_fresh(l, top, start, choice);
  if (choice.first == kNone) look_by_deadline(l, top, start, choice);
  if (choice.first == kNone) return {};
  choice.total = choice.items;
  const bool alone = (l.classes & (l.classes - 1)) == 0;
  const std::uint32_t room = alone ? 0 : room_below(s, choice.deadline_ns - start);
  for (std::uint32_t c = top; c-- > 0 && choice.total < room;) {
    if ((l.classes >> c & 1) != 0) choice.total += window(l.by_deadline[c], w, start, choice.total, room);
  }
  const auto wait = static_cast<TimeNs>(static_cast<double>(to_end(w, choice.total, risk_)) / w.speeds);
  const std::uint32_t full = std::max(choice.total, fit(s, choice.deadline_ns - start - wait));
  choice.worth = rarity_[l.module] * choice.total / view_.topology().modules[l.module].units_per_request() /
                 static_cast<double>(to_end(w, full, 0));
  return choice;
}

// Classes come before worth; what lies within users' shares is never too much, and goes by deadline. But what loses
// nothing by waiting lets a fuller batch go first: of a lower class, if after it all that wait now are still in time;
// and what lies within its user's share keeps room for as many again, so that others' overload costs it nothing.
WindowScheduler::Choice WindowScheduler::choose(std::span<const Choice> choices, TimeNs start) const noexcept {
  Choice best;
  for (const Choice& c : choices) best = c.better(best) ? c : best;
  Choice fuller = best;
  const auto goes_before = [](const Choice& h, const Choice& c) {
    return h.rank > c.rank || (h.rank == c.rank && h.within_share());
  };
  for (const Choice& c : choices) {
    if (!goes_before(best, c) || c.worth <= fuller.worth) continue;
    const TimeNs end = start + way(c.consumer).steps.front().run(c.total);
    const bool harmless = std::ranges::all_of(choices, [&](const Choice& h) {
      return h.consumer == c.consumer || !goes_before(h, c) ||
             (h.all && fit(h.consumer, h.deadline_ns - end) >=
                           std::min(max_items(h.consumer), h.within_share() ? 2 * h.items : h.items));
    });
    if (harmless) fuller = c;
  }
  return fuller;
}

bool WindowScheduler::next(PartitionId id) noexcept {
  if (!view_.idle(id) || view_.machine.batches_left() == 0) return false;
  if (periodic_.active()) {
    const Turn turn = periodic_.serve(id, *this);
    if (turn == Turn::idle && view_.machine.partition(id).deferred_until_ns == 0) return try_canary(id);
    if (turn != Turn::not_shared) return turn == Turn::started;
  }
  const TimeNs start = view_.start_ns(id);
  if (try_canary(id)) return true;
  // First of all queues, because a request goes with all its tasks, also those of a window already chosen.
  for (ConsumerId s : view_.queues.of_partition(id)) drop_hopeless(queue(consumer(s).queue), start);
  std::array<Choice, kChoices> choices;
  std::size_t n = 0;
  for (ConsumerId s : view_.queues.of_partition(id)) {
    if (queue(consumer(s).queue).tasks == 0) continue;
    const Choice choice = look(s, start);
    if (choice.consumer == kNone) continue;
    // With more than can be told apart, the least good of them is not looked at.
    if (n == kChoices &&
        !choice.better(*std::ranges::min_element(choices, [](auto& a, auto& b) { return b.better(a); })))
      continue;
    (n < kChoices ? choices[n++] : *std::ranges::min_element(choices, [](auto& a, auto& b) { return b.better(a); })) =
        choice;
  }
  if (n == 0) return false;
  const Choice best = choose({choices.data(), n}, start);
  fill(best, start);
  launch(best.consumer, start);
  return true;
}

// By the estimates the task, alone on the fastest kind of partition, would not be in time.
bool WindowScheduler::late(TaskId t) const noexcept {
  const Way& fastest = ways_[fastest_[task(t).module]];
  return task(t).give_up_ns != kNever &&
         view_.now + to_end(fastest, std::min(task(t).items, fastest.max_items()), 0) > task(t).give_up_ns;
}

bool WindowScheduler::try_canary(PartitionId p) noexcept {
  const Canaries::Found found = canaries_.on(p, [this](ConsumerId, TaskId t) { return late(t); });
  if (found.task == kNone) return false;
  core_.take(found.task);
  launch(found.consumer, view_.now, true);
  return true;
}

// The window itself; with it, where late is worth running, some that are; and others of lower classes that fit.
void WindowScheduler::fill(const Choice& choice, TimeNs start) noexcept {
  const ConsumerId s = choice.consumer;
  const TaskQueue& l = queue(consumer(s).queue);
  const DeadlineQueue& waiting = l.by_deadline[view_.top_class(l)];
  const std::uint8_t top = view_.top_class(l);
  std::uint32_t skips = 0;
  TaskId next = choice.first;
  for (TaskId t = next; choice.fresh && t != kNone && l.forming.items < choice.items;) {
    if (l.forming.items + task(t).items > choice.items || view_.apart(l, t)) break;
    core_.take(t);
    t = freshest(view_, l, top, pace(s, start, choice.items));
  }
  for (TaskId t = next; !choice.fresh && t != kNone && l.forming.items < choice.items; t = next) {
    next = task(t).after;
    if (l.forming.items + task(t).items > choice.items) {
      if (++skips > kSkips) break;
      continue;
    }
    if (view_.apart(l, t)) break;
    core_.take(t);
  }
  const std::uint32_t room = room_below(s, choice.deadline_ns - start);
  for (std::uint32_t n = choice.items / kOverdue + 1; n > 0 && (l.classes >> top & 1) != 0; --n) {
    const TaskId t = waiting.front();
    if (task(t).deadline_ns >= start + to_end(way(s), 1, 0) || l.forming.items + task(t).items > room) break;
    if (view_.apart(l, t)) break;
    core_.take(t);
  }
  for (std::uint32_t c = top; c-- > 0 && l.forming.items < room;) {
    if ((l.classes >> c & 1) == 0) continue;
    const std::uint32_t base = l.forming.items, more = window(l.by_deadline[c], way(s), start, base, room);
    if (more == 0) continue;
    const TimeNs at = start + to_end(way(s), base + more, risk_);
    for (TaskId t = l.by_deadline[c].first_at_least(view_.tasks.data(), at); t != kNone; t = next) {
      next = task(t).after;
      if (l.forming.items + task(t).items > base + more || view_.apart(l, t)) break;
      core_.take(t);
    }
  }
}

// Look-ahead has chosen: a batch that `lead` begins, and those behind it that come in time.
void WindowScheduler::start_chosen(ConsumerId s, TaskId lead, std::uint32_t requests) noexcept {
  const TaskQueue& l = queue(consumer(s).queue);
  const std::uint32_t target = std::min(max_items(s), std::max(requests, task(lead).items));
  const TimeNs alone = to_end(way(s), std::min(task(lead).items, max_items(s)), 0);
  if (task(lead).give_up_ns != kNever && view_.now + alone > task(lead).give_up_ns) {
    const Reason reason = task(lead).give_up_ns > task(lead).deadline_ns ? Reason::stale : Reason::unreachable;
    if (!canaries_.tries(lead, consumer(s).partition)) return core_.drop(lead, reason);
    core_.take(lead);
    return launch(s, view_.now, true);
  }
  core_.take(lead);
  const TimeNs end = view_.now + to_end(way(s), target, 0);
  for (std::uint32_t left = l.classes; left != 0 && l.forming.items < target;) {
    const auto c = static_cast<std::size_t>(std::bit_width(left) - 1);
    left &= ~(1u << c);
    TaskId next = kNone;
    for (TaskId t = l.by_deadline[c].front(); t != kNone && l.forming.items < target; t = next) {
      next = task(t).after;
      if (l.forming.items + task(t).items > target || view_.apart(l, t)) break;
      if (task(t).give_up_ns == kNever || task(t).give_up_ns >= end) core_.take(t);
    }
  }
  launch(s, view_.now);
}

void WindowScheduler::launch(ConsumerId id, TimeNs start, bool canary) noexcept {
  const QueueConsumer& s = consumer(id);
  const std::uint32_t items = queue(s.queue).forming.items;
  const std::uint32_t batch = core_.start(s.queue, id, start, choose_path(view_, s.route, s.partition, items, start));
  if (canary) {
    core_.canary(batch);
    canaries_.sent(batch);
  }
  periodic_.promised(id, items, start);
}

// What one partition leaves alone, another may take: a faster one, or one that look-ahead does not keep.
void WindowScheduler::leftover(QueueId id, ConsumerId refused) noexcept {
  const TaskQueue& l = queue(id);
  for (ConsumerId s = l.first_consumer; refused != kNone && s < l.first_consumer + l.consumers && l.tasks > 0; ++s) {
    const bool other = periodic_.active() || way_of_[s - first_consumer_] != way_of_[refused - first_consumer_];
    if (s != refused && other && view_.idle(consumer(s).partition)) (void)next(consumer(s).partition);
  }
}

void WindowScheduler::started(std::uint32_t batch) noexcept {
  const Batch& b = view_.machine.batch(batch);
  if (class_of(b.level) == 0)
    periodic_.spend_background(view_.model.run_ns(b.route)[std::min(b.list.items, view_.route(b.route).batch)]);
}

void WindowScheduler::forget_scale() noexcept {
  for (ModuleId m : component_.modules) scale_[m] = {};
  as_profiled_ = true;
}

void WindowScheduler::ended(std::uint32_t batch, TimeNs ran, bool usual) noexcept {
  const Batch& b = view_.machine.batch(batch);
  periodic_.learn(b, ran, usual);
  canaries_.ended(batch, ran, usual);
  if (!usual) return;
  Scale& scale = scale_[b.module];
  const TimeNs profiled = view_.route(b.route).stages[b.stage].latency.p50_ns[b.list.items - 1];
  const auto mean_ppm = static_cast<std::int64_t>(scale.mean * kProfilePpm);
  const std::int64_t seen = b.canary ? believed_ppm(profiled, ran) : scale.far_off.seen(profiled, ran, mean_ppm);
  if (seen > 0) {
    scale = {.mean = static_cast<double>(corrected_ppm(mean_ppm, seen)) / kProfilePpm};
  } else {
    const double took = static_cast<double>(ran) / static_cast<double>(profiled);
    const double off = std::clamp(took, 1.0 / kMinPart, 1.0 * kMaxTimes) - scale.mean;
    scale.mean += kGain * off;
    scale.variance += kGain * (off * off - scale.variance);
  }
  as_profiled_ = std::ranges::all_of(component_.modules, [&](ModuleId m) {
    return std::abs(scale_[m].mean - 1) < kAsProfiled && scale_[m].variance < kAsProfiled * kAsProfiled;
  });
}

}  // namespace leat::core
