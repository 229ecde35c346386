#include "engine/papers/systems.h"

#include "engine/papers/elsa.h"
#include "engine/papers/harpagon.h"
#include "engine/papers/in_turn.h"
#include "engine/papers/ppipe.h"
#include "engine/papers/reactive.h"
#include "engine/papers/state_planner.h"

namespace leat::papers {
namespace {

Rules rules(Site& site, const WorkerQueues& s);
Rules rules(Site& site, const Elsa& s);
Rules rules(Site& site, const Fifs& s);
Rules rules(Site& site, const Harpagon& s);

// A scheduler of queues with these rules.
template <class Settings>
class QueuesOf : public SchedulerFactory {
 public:
  explicit QueuesOf(const Settings& settings) : settings_(settings) {}
  [[nodiscard]] std::unique_ptr<ComponentScheduler> make(const Making& from) const override {
    return std::make_unique<Queues>(from, [this](Site& site) { return rules(site, settings_); });
  }

 protected:
  const Settings settings_;
};

// ---- worker queues ----

using WQ = WorkerQueues;

std::unique_ptr<Order> order_of(Site& site, const WorkerQueues& s) {
  if (s.order == WQ::By::adaptive || s.order == WQ::By::instant)
    return std::make_unique<AdaptivePriority>(site, s.window_ns, s.order == WQ::By::instant);
  return std::make_unique<Order>(s.order == WQ::By::fcfs  ? Order::First::oldest
                                 : s.order == WQ::By::lbf ? Order::First::least_budget
                                                          : Order::First::largest_budget);
}

std::unique_ptr<DropRule> drop_of(Site& site, const WorkerQueues& s) {
  switch (s.drop) {
    case WQ::Drop::none:
      return std::make_unique<KeepAll>();
    case WQ::Drop::expired:
      return std::make_unique<DropExpired>();
    case WQ::Drop::clipper:
      return std::make_unique<ClipperSplit>(site, s.reading);
    case WQ::Drop::worst_case:
      return std::make_unique<WorstCaseSplit>(site);
    case WQ::Drop::nexus:
    case WQ::Drop::nexus_local:
      return std::make_unique<NexusWindow>(site, s.drop == WQ::Drop::nexus_local);
    case WQ::Drop::overload_control:
      return std::make_unique<OverloadControl>(site, s.overload, s.window_ns);
    case WQ::Drop::proactive:
      break;
  }
  return std::make_unique<ProactiveDrop>(site, s.pard);
}

Rules rules(Site& site, const WorkerQueues& s) {
  std::unique_ptr<Dispatch> dispatch;
  if (s.per_worker)
    dispatch = std::make_unique<InTurn>(site);
  else
    dispatch = std::make_unique<FirstIdle>(site);
  return {.order = order_of(site, s),
          .drop = drop_of(site, s),
          .dispatch = std::move(dispatch),
          .early = s.per_worker,
          .form_ahead = s.per_worker && s.form_ahead};
}

bool looks_back(const WorkerQueues& s) {  // at averages
  return s.drop == WorkerQueues::Drop::proactive && s.pard.downstream == ProactiveDrop::Downstream::all;
}
bool quantile(const WorkerQueues& s) { return looks_back(s) && s.pard.wait == ProactiveDrop::Wait::quantile; }

class WorkerQueuesFactory final : public QueuesOf<WorkerQueues> {
 public:
  using QueuesOf::QueuesOf;
  [[nodiscard]] const WorkerQueues& settings() const noexcept { return settings_; }
  [[nodiscard]] bool estimates() const noexcept override {
    return looks_back(settings_) || settings_.drop == WorkerQueues::Drop::worst_case;
  }
  [[nodiscard]] std::unique_ptr<Estimator> estimator(const Topology& t, std::uint32_t draws,
                                                     std::uint64_t seed) const override {
    const StatePlanner::Settings settings{.window_ns = settings_.window_ns,
                                          .quantile = quantile(settings_),
                                          .lambda_permille = settings_.pard.lambda_permille};
    return std::make_unique<StatePlanner>(t, settings, draws, seed);
  }
};

constexpr Key<WQ> kWorkerTable[] = {
    {"order",
     [](const std::string& v, WQ& s) {
       return read_word(v, s.order, {"fcfs", "lbf", "hbf", "adaptive", "instant"});
     }},
    {"form_ahead", [](const std::string& v, WQ& s) { return read_flag(v, s.form_ahead); }},
    {"window_ms", [](const std::string& v, WQ& s) { return read_milliseconds(v, s.window_ns); },
     [](const WQ& s) {
       return looks_back(s) || s.order >= WQ::By::adaptive || s.drop == WQ::Drop::overload_control ||
              s.drop == WQ::Drop::worst_case;
     }},
    {"downstream",
     [](const std::string& v, WQ& s) {
       return read_word(v, s.pard.downstream, {"none", "execution", "all"});
     },
     [](const WQ& s) { return s.drop == WQ::Drop::proactive; }},
    {"wait",
     [](const std::string& v, WQ& s) {
       return read_word(v, s.pard.wait, {"quantile", "lower", "upper"});
     },
     looks_back},
    {"lambda_permille", [](const std::string& v, WQ& s) { return read_whole(v, s.pard.lambda_permille); }, quantile},
    {"split_reading",
     [](const std::string& v, WQ& s) {
       return read_word(v, s.reading, {"elapsed", "elapsed_and_execution"});
     },
     [](const WQ& s) { return s.drop == WQ::Drop::clipper; }},
    {"oc_threshold_ms", [](const std::string& v, WQ& s) { return read_milliseconds(v, s.overload.threshold_ns); },
     [](const WQ& s) { return s.drop == WQ::Drop::overload_control; }},
    {"oc_alpha_permille", [](const std::string& v, WQ& s) { return read_whole(v, s.overload.alpha_permille); },
     [](const WQ& s) { return s.drop == WQ::Drop::overload_control; }},
};

// ---- ELSA, FIFS ----

std::unique_ptr<DropRule> expired_or_none(bool expired) {
  if (expired) return std::make_unique<DropExpired>();
  return std::make_unique<KeepAll>();
}

std::string read_drop(const std::string& v, bool& expired) { return read_word(v, expired, {"none", "expired"}); }

std::unique_ptr<Dispatch> place_of(Site& site, const Elsa& s) {
  switch (s.place) {
    case Elsa::Place::least_wait:
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

Rules rules(Site& site, const Elsa& s) {
  return {.order = std::make_unique<Order>(Order::First::oldest),
          .drop = expired_or_none(s.expired),
          .dispatch = place_of(site, s),
          .batching = Batching::single};
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

constexpr Key<Fifs> kFifsTable[] = {
    {"place",
     [](const std::string& v, Fifs& s) {
       return read_word(v, s.random, {"fifs", "random"});
     }},
    {"drop", [](const std::string& v, Fifs& s) { return read_drop(v, s.expired); }},
};

// ---- Harpagon ----

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

constexpr Key<Harpagon> kHarpagonTable[] = {
    {.name = "dispatch",
     .read =
         [](const std::string& v, Harpagon& s) {
           return read_word(v, s.dispatch, {"tc", "tc_rates", "rr"});
         },
     .old_name = "place"},
};

// ---- reservations ----

template <class Scheduler, class Settings>
class Booked final : public SchedulerFactory {
 public:
  explicit Booked(const Settings& settings) : settings_(settings) {}
  [[nodiscard]] std::unique_ptr<ComponentScheduler> make(const Making& from) const override {
    return std::make_unique<Scheduler>(from, settings_);
  }

 private:
  const Settings settings_;
};

constexpr Key<PPipe> kPPipeTable[] = {
    {"append_only", [](const std::string& v, PPipe& s) { return read_flag(v, s.append_only); }},
    {"as_simulated", [](const std::string& v, PPipe& s) { return read_flag(v, s.as_simulated); }},
};
constexpr Key<Reactive> kReactiveTable[] = {
    {"append_only", [](const std::string& v, Reactive& s) { return read_flag(v, s.append_only); }},
};

}  // namespace

const std::span<const Key<WorkerQueues>> kWorkerQueueKeys = kWorkerTable;
const std::span<const Key<Elsa>> kElsaKeys = kElsaTable;
const std::span<const Key<Fifs>> kFifsKeys = kFifsTable;
const std::span<const Key<Harpagon>> kHarpagonKeys = kHarpagonTable;
const std::span<const Key<PPipe>> kPPipeKeys = kPPipeTable;
const std::span<const Key<Reactive>> kReactiveKeys = kReactiveTable;

void use(const WorkerQueues& s, Policy& out) { out.scheduler = std::make_shared<WorkerQueuesFactory>(s); }
void shorten_windows(Policy& policy, std::int64_t times) {
  const auto* workers = dynamic_cast<const WorkerQueuesFactory*>(policy.scheduler.get());
  if (workers == nullptr) return;
  WorkerQueues settings = workers->settings();
  settings.window_ns /= times;
  use(settings, policy);
}
void use(const Elsa& s, Policy& out) { out.scheduler = std::make_shared<QueuesOf<Elsa>>(s); }
void use(const Fifs& s, Policy& out) { out.scheduler = std::make_shared<QueuesOf<Fifs>>(s); }
void use(const Harpagon& s, Policy& out) { out.scheduler = std::make_shared<QueuesOf<Harpagon>>(s); }
void use(const PPipe& s, Policy& out) { out.scheduler = std::make_shared<Booked<PPipePlane, PPipe>>(s); }
void use(const Reactive& s, Policy& out) { out.scheduler = std::make_shared<Booked<ReactivePools, Reactive>>(s); }

}  // namespace leat::papers
