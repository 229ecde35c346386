#include "engine/papers/presets.h"

#include <vector>

#include "engine/papers/elsa.h"
#include "engine/papers/harpagon.h"
#include "engine/papers/pard/worker_queues.h"
#include "engine/papers/reactive.h"

namespace leat::papers {
namespace {

using By = WorkerQueues::By;
using Downstream = ProactiveDrop::Downstream;
using Wait = ProactiveDrop::Wait;
constexpr auto kWithExecution = ClipperSplit::Reading::elapsed_and_execution;

template <class Settings>
void into(const Settings& settings, Policy& out) {
  use(settings, out);
}
struct Workers : PresetOf<WorkerQueues> {
  Workers(const char* name, const WorkerQueues& base) : PresetOf(name, base, kWorkerQueueKeys, into<WorkerQueues>) {}
};
struct Pipelines : PresetOf<PPipe> {
  Pipelines(const char* name, const PPipe& base) : PresetOf(name, base, kPPipeKeys, into<PPipe>) {}
};
struct Batches : PresetOf<Harpagon> {
  Batches(const char* name, const Harpagon& base) : PresetOf(name, base, kHarpagonKeys, into<Harpagon>) {}
};

// PARD, and its system with another drop rule under its order.
constexpr WorkerQueues pard(const DropKind& drop = kProactiveDrop) { return {.order = By::adaptive, .drop = &drop}; }
constexpr WorkerQueues pard_in(By order) { return {.order = order, .drop = &kProactiveDrop}; }
constexpr WorkerQueues pard_with(Downstream downstream, Wait wait) {
  return {.order = By::adaptive, .drop = &kProactiveDrop, .pard = {.downstream = downstream, .wait = wait}};
}
// It acts ten times a second, on what has been so until now.
constexpr WorkerQueues pard_oc() {
  return {.order = By::adaptive, .drop = &kOverloadControl, .window_ns = 500'000'000};
}

const Workers kPard("pard", pard());
const PresetOf<Elsa> kElsa("elsa", {}, kElsaKeys, into<Elsa>);
const Pipelines kPPipe("ppipe", {}), kPPipeAppend("ppipe-append", {.append_only = true}),
    kPPipeSimulator("ppipe-simulator", {.append_only = true, .as_simulated = true});
const Batches kHarpagon("harpagon", {}),
    kHarpagonPrinted("harpagon-printed", {.dispatch = Harpagon::Dispatch::tc_rates});
const PresetOf<Reactive> kReactive("reactive", {}, kReactiveKeys, into<Reactive>);
const Workers kNexus("nexus", {.drop = &kNexusWindow}), kNexusLocal("nexus-local", {.drop = &kNexusLocalWindow}),
    kClipper("clipper++", {.drop = &kClipperSplit}),
    kClipperD("clipper++d", {.drop = &kClipperSplit, .reading = kWithExecution});
const PresetOf<Fifs> kFifs("fifs", {}, kFifsKeys, into<Fifs>);
const Workers kNaive("naive", {});
// PARD's ablations, Table 1.
const Workers kPardBack("pard-back", pard_with(Downstream::none, Wait::quantile)),
    kPardSf("pard-sf", pard_with(Downstream::execution, Wait::quantile)), kPardOc("pard-oc", pard_oc()),
    kPardSplit("pard-split", {.order = By::adaptive, .drop = &kClipperSplit, .reading = kWithExecution}),
    kPardWcl("pard-wcl", pard(kWorstCaseSplit)), kPardLower("pard-lower", pard_with(Downstream::all, Wait::lower)),
    kPardUpper("pard-upper", pard_with(Downstream::all, Wait::upper)), kPardFcfs("pard-fcfs", pard_in(By::fcfs)),
    kPardHbf("pard-hbf", pard_in(By::hbf)), kPardLbf("pard-lbf", pard_in(By::lbf)),
    kPardInstant("pard-instant", pard_in(By::instant));

}  // namespace

Presets presets() noexcept {
  static const Preset* const all[] = {core::presets().front(),
                                      &kPard,
                                      &kElsa,
                                      &kPPipe,
                                      &kPPipeAppend,
                                      &kPPipeSimulator,
                                      &kHarpagon,
                                      &kHarpagonPrinted,
                                      &kReactive,
                                      &kNexus,
                                      &kNexusLocal,
                                      &kClipper,
                                      &kClipperD,
                                      &kFifs,
                                      &kNaive,
                                      &kPardBack,
                                      &kPardSf,
                                      &kPardOc,
                                      &kPardSplit,
                                      &kPardWcl,
                                      &kPardLower,
                                      &kPardUpper,
                                      &kPardFcfs,
                                      &kPardHbf,
                                      &kPardLbf,
                                      &kPardInstant};
  return all;
}

Presets study_presets() noexcept {
  using Windows = LeatVariant::Windows;
  static const PresetOf<Policy> variants[] = {
      leat_preset("leat-queues", {.windows = Windows::none}), leat_preset("leat-windows", {.windows = Windows::all}),
      leat_preset("leat-single", {.one_request = true, .foresees = false}),
      leat_preset("leat-unfitted", {.fits = false}), leat_preset("leat-ageless", {.ages = false})};
  static const std::vector<const Preset*> all = [] {
    std::vector<const Preset*> list(presets().begin(), presets().end());
    for (const Preset& p : variants) list.push_back(&p);
    return list;
  }();
  return all;
}

}  // namespace leat::papers
