#include "engine/papers/pard/worker_queues.h"

#include "engine/papers/elsa.h"
#include "engine/papers/in_turn.h"
#include "engine/papers/pard/nexus.h"
#include "engine/papers/pard/state_planner.h"

namespace leat::papers {
namespace {

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

bool looks_back(const WorkerQueues& s) {  // at averages
  return s.drop == WorkerQueues::Drop::proactive && s.pard.downstream == ProactiveDrop::Downstream::all;
}
bool quantile(const WorkerQueues& s) { return looks_back(s) && s.pard.wait == ProactiveDrop::Wait::quantile; }

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

}  // namespace

const std::span<const Key<WorkerQueues>> kWorkerQueueKeys = kWorkerTable;

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

void use(const WorkerQueues& s, Policy& out) { out.scheduler = std::make_shared<WorkerQueuesFactory>(s); }

void shorten_windows(Policy& policy, std::int64_t times) {
  const auto* workers = dynamic_cast<const WorkerQueuesFactory*>(policy.scheduler.get());
  if (workers == nullptr) return;
  WorkerQueues settings = workers->settings();
  settings.window_ns /= times;
  use(settings, policy);
}

}  // namespace leat::papers
