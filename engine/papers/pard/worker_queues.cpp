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

std::unique_ptr<DropRule> clipper(Site& site, const WQ& s) { return std::make_unique<ClipperSplit>(site, s.reading); }
std::unique_ptr<DropRule> overload_control(Site& site, const WQ& s) {
  return std::make_unique<OverloadControl>(site, s.overload, s.window_ns);
}
std::unique_ptr<DropRule> proactive(Site& site, const WQ& s) { return std::make_unique<ProactiveDrop>(site, s.pard); }
template <bool local>
std::unique_ptr<DropRule> nexus(Site& site, const WQ&) {
  return std::make_unique<NexusWindow>(site, local);
}

bool always(const WQ&) { return true; }
bool averages(const WQ& s) { return s.pard.downstream == ProactiveDrop::Downstream::all; }
bool estimates(const WQ& s) { return s.drop->estimates != nullptr && s.drop->estimates(s); }
bool is_proactive(const WQ& s) { return s.drop == &kProactiveDrop; }
bool looks_back(const WQ& s) { return is_proactive(s) && averages(s); }
bool quantile(const WQ& s) { return looks_back(s) && s.pard.wait == ProactiveDrop::Wait::quantile; }
bool controls_overload(const WQ& s) { return s.drop == &kOverloadControl; }

constexpr Key<WQ> kWorkerTable[] = {
    {"order",
     [](const std::string& v, WQ& s) {
       return read_word(v, s.order, {"fcfs", "lbf", "hbf", "adaptive", "instant"});
     }},
    {"form_ahead", [](const std::string& v, WQ& s) { return read_flag(v, s.form_ahead); }},
    {"window_ms", [](const std::string& v, WQ& s) { return read_milliseconds(v, s.window_ns); },
     [](const WQ& s) { return estimates(s) || s.drop->window || s.order >= WQ::By::adaptive; }},
    {"downstream",
     [](const std::string& v, WQ& s) {
       return read_word(v, s.pard.downstream, {"none", "execution", "all"});
     },
     is_proactive},
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
     [](const WQ& s) { return s.drop == &kClipperSplit; }},
    {"oc_threshold_ms", [](const std::string& v, WQ& s) { return read_milliseconds(v, s.overload.threshold_ns); },
     controls_overload},
    {"oc_alpha_permille", [](const std::string& v, WQ& s) { return read_whole(v, s.overload.alpha_permille); },
     controls_overload},
};

class WorkerQueuesFactory final : public QueuesOf<WorkerQueues> {
 public:
  using QueuesOf::QueuesOf;
  [[nodiscard]] const WorkerQueues& settings() const noexcept { return settings_; }
  [[nodiscard]] bool estimates() const noexcept override { return papers::estimates(settings_); }
  [[nodiscard]] std::unique_ptr<Estimator> estimator(const Topology& t, std::uint32_t draws,
                                                     std::uint64_t seed) const override {
    const StatePlanner::Settings settings{.window_ns = settings_.window_ns,
                                          .quantile = quantile(settings_),
                                          .lambda_permille = settings_.pard.lambda_permille};
    return std::make_unique<StatePlanner>(t, settings, draws, seed);
  }
};

}  // namespace

const DropKind kClipperSplit{.make = clipper}, kWorstCaseSplit{.make = placed<WorstCaseSplit>, .estimates = always},
    kNexusWindow{.make = nexus<false>}, kNexusLocalWindow{.make = nexus<true>},
    kOverloadControl{.make = overload_control, .window = true},
    kProactiveDrop{.make = proactive, .estimates = averages};

const std::span<const Key<WorkerQueues>> kWorkerQueueKeys = kWorkerTable;

Rules rules(Site& site, const WorkerQueues& s) {
  std::unique_ptr<Dispatch> dispatch;
  if (s.per_worker)
    dispatch = std::make_unique<InTurn>(site);
  else
    dispatch = std::make_unique<FirstIdle>(site);
  return {.order = order_of(site, s),
          .drop = s.drop->make(site, s),
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
