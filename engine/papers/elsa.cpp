#include "engine/papers/elsa.h"

#include "engine/core/policy/path.h"
#include "engine/papers/in_turn.h"

namespace leat::papers {

QueueId SlackPlacement::place(ModuleId m, const Task& t) noexcept {
  const QueueId first = site_.view.queues.first(m), end = first + site_.view.queues.count(m);
  const TimeNs left = t.deadline_ns - site_.view.now;
  QueueId best = kNone;
  TimeNs min = kNever;
  for (QueueId l = first; l < end; ++l) {  // ascending size
    if (!site_.up(l) || t.items > site_.cap(site_.consumer_of(l))) continue;
    const TimeNs wait = waits_.of(site_, l), run = site_.run_ns(l, t);
    if (left > alpha_permille_ * (wait + beta_permille_ * run / 1000) / 1000) return l;
    if (wait + run < min) {
      min = wait + run;
      best = l;
    }
  }
  return best != kNone ? best : first;  // nobody is up: it waits there until somebody is, or expires
}

QueueId LeastWait::place(ModuleId m, const Task&) noexcept {
  const QueueId first = site_.view.queues.first(m), end = first + site_.view.queues.count(m);
  QueueId best = first;
  TimeNs min = kNever;
  for (QueueId l = first; l < end; ++l) {
    if (!site_.up(l) || waits_.of(site_, l) >= min) continue;
    min = waits_.of(site_, l);
    best = l;
  }
  return best;
}

QueueId AnyPartition::place(ModuleId m, const Task&) noexcept {
  const QueueId first = site_.view.queues.first(m), end = first + site_.view.queues.count(m);
  QueueId chosen = first;
  std::uint32_t n = 0;
  for (QueueId l = first; l < end; ++l) {
    if (site_.up(l) && next_random(site_.random) % ++n == 0) chosen = l;
  }
  return chosen;
}

ConsumerId AnyPartition::offer(QueueId id) noexcept {
  const TaskQueue& l = site_.queue(id);
  ConsumerId chosen = kNone;
  std::uint32_t n = 0;
  for (ConsumerId s = l.first_consumer; s < l.first_consumer + l.consumers; ++s) {
    if (site_.view.idle(site_.consumer(s).partition) && next_random(site_.random) % ++n == 0) chosen = s;
  }
  return chosen;
}

// ---- the policies ----

namespace {

std::unique_ptr<DropRule> expired_or_none(bool expired) {
  if (expired) return std::make_unique<DropExpired>();
  return std::make_unique<KeepAll>();
}

std::string read_drop(const std::string& v, bool& expired) { return read_word(v, expired, {"none", "expired"}); }

std::unique_ptr<Dispatch> place_of(Site& site, const Elsa& s) {
  switch (s.place) {
    case Elsa::Place::min_wait:
      return std::make_unique<LeastWait>(site);
    case Elsa::Place::rr:
      return std::make_unique<InTurn>(site);
    case Elsa::Place::random:
      return std::make_unique<AnyPartition>(site);
    case Elsa::Place::elsa:
      break;
  }
  return std::make_unique<SlackPlacement>(site, s.alpha_permille, s.beta_permille);
}

bool places(const Elsa& s) { return s.place == Elsa::Place::elsa; }
constexpr Key<Elsa> kElsaTable[] = {
    {"place",
     [](const std::string& v, Elsa& s) {
       return read_word(v, s.place, {"elsa", "least_wait", "rr", "random"});
     }},
    {"drop", [](const std::string& v, Elsa& s) { return read_drop(v, s.expired); }},
    {"alpha_permille", [](const std::string& v, Elsa& s) { return read_whole(v, s.alpha_permille); }, places},
    {"beta_permille", [](const std::string& v, Elsa& s) { return read_whole(v, s.beta_permille); }, places},
};

constexpr Key<Fifs> kFifsTable[] = {
    {"place",
     [](const std::string& v, Fifs& s) {
       return read_word(v, s.random, {"fifs", "random"});
     }},
    {"drop", [](const std::string& v, Fifs& s) { return read_drop(v, s.expired); }},
};

}  // namespace

Rules rules(Site& site, const Elsa& s) {
  return {.order = std::make_unique<Order>(Order::First::oldest),
          .drop = expired_or_none(s.expired),
          .dispatch = place_of(site, s),
          .batching = Batching::single};
}

Rules rules(Site& site, const Fifs& s) {
  std::unique_ptr<Dispatch> dispatch;
  if (s.random)
    dispatch = std::make_unique<AnyPartition>(site);
  else
    dispatch = std::make_unique<FirstIdle>(site);
  return {.order = std::make_unique<Order>(Order::First::oldest),
          .drop = expired_or_none(s.expired),
          .dispatch = std::move(dispatch),
          .batching = Batching::single,
          .early = false};
}

const std::span<const Key<Elsa>> kElsaKeys = kElsaTable;
const std::span<const Key<Fifs>> kFifsKeys = kFifsTable;

void use(const Elsa& s, Policy& out) { out.scheduler = std::make_shared<QueuesOf<Elsa>>(s); }
void use(const Fifs& s, Policy& out) { out.scheduler = std::make_shared<QueuesOf<Fifs>>(s); }

}  // namespace leat::papers
