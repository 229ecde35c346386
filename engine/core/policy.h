// A policy: what each room of the scheduler does, as plain enums and integers. Presets bundle them by name.
// Ratios are in permille and times in nanoseconds, so that a decision is the same on every machine.
// Plain data; read once, by Scheduler's constructor.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/types.h"

namespace leat::core {

// Which waiting task is looked at first. adaptive: PARD section 4.3 (delayed transition between hbf and lbf by load
// factor); instant: the same without delay; backlog: hbf iff the time to drain the queue exceeds a share of the
// freshest budget.
#define LEAT_ORDERS(X) X(fcfs) X(lbf) X(hbf) X(adaptive) X(instant) X(backlog)
// When a waiting task is given up. none: never; expired: once its deadline has passed (Clipper); split: once its share
// of the SLO is used up (Clipper++); dynamic_split: shares by recent worst latency (PARD-WCL); window: Nexus by the
// deadline; window_local: Nexus by the module's share of the SLO; proactive: PARD eq. 3; overload_control: DAGOR as
// PARD-oc describes it.
#define LEAT_DROPS(X) \
  X(none) X(expired) X(split) X(dynamic_split) X(window) X(window_local) X(proactive) X(overload_control)
// Where a task or a batch goes. fifs: first idle partition; elsa: ELSA Algorithm 2; tc, tc_rates, rr: Harpagon's
// dispatch policies (turns.cpp); reservation: PPipe Algorithms 1-2.
#define LEAT_PLACES(X) X(fifs) X(random) X(elsa) X(least_wait) X(tc) X(tc_rates) X(rr) X(reservation)
// How large a batch is. greedy: what waits, up to the cap; fill: wait for a full batch until the last safe moment;
// fixed: only full batches (or what is left at the deadline); single: one request, whatever its items (ELSA);
// search_down: the largest that ends in time, from the plan's downwards (PPipe step 2); reactive: the largest that fits
// the module's own budget.
#define LEAT_BATCHES(X) X(greedy) X(fill) X(fixed) X(single) X(search_down) X(reactive)
// late: one queue per module, and a batch is formed when a partition is free. early: a queue per partition; a task is
// bound on arrival.
#define LEAT_BINDINGS(X) X(late) X(early)

// What proactive adds for the modules after this one (PARD Table 1): nothing (PARD-back), execution (PARD-sf), all of
// q, d and W.
#define LEAT_DOWNSTREAMS(X) X(none) X(execution) X(all)
// W_k: the lambda quantile, 0 (PARD-lower), or the sum of later durations (PARD-upper).
#define LEAT_WAITS(X) X(quantile) X(lower) X(upper)
// Clipper++ has two readings: drop when the time used exceeds the share, or when the time used plus d(b) does.
#define LEAT_SPLIT_READINGS(X) X(elapsed) X(elapsed_and_execution)

// Which components the rule of windows.h decides: none; those in which modules share partitions; all of one stage.
#define LEAT_WINDOWS(X) X(none) X(shared) X(all)

#define X(name) name,
enum class Order : std::uint8_t { LEAT_ORDERS(X) };
enum class Drop : std::uint8_t { LEAT_DROPS(X) };
enum class Place : std::uint8_t { LEAT_PLACES(X) };
enum class Batching : std::uint8_t { LEAT_BATCHES(X) };
enum class Binding : std::uint8_t { LEAT_BINDINGS(X) };
enum class Downstream : std::uint8_t { LEAT_DOWNSTREAMS(X) };
enum class WaitEstimate : std::uint8_t { LEAT_WAITS(X) };
enum class SplitReading : std::uint8_t { LEAT_SPLIT_READINGS(X) };
enum class WindowRule : std::uint8_t { LEAT_WINDOWS(X) };
#undef X

struct SchedulerRow;  // policy/registry.h

struct Policy {
  const SchedulerRow* scheduler = nullptr;  // this one for every component; nullptr: the table says

  Order order = Order::lbf;
  Drop drop = Drop::expired;
  Place place = Place::fifs;
  Batching batch = Batching::greedy;
  Binding binding = Binding::late;
  bool form_ahead = false;  // early binding: the next batch is collected while the last one runs (PARD, figure 3b)
  std::uint32_t queue_ahead = 0;  // batches a partition may hold behind the one it runs

  bool fit = false;          // late binding, unequal partitions: each takes only what ends in time there (fit.cpp)
  bool append_only = false;  // reservations, printed or reactive: nothing is booked before what is booked already
  // Printed reservations by what PPipe's authors' simulator does beyond Algorithm 1 (with append_only: all of it): the
  // entry's partition is the one whose uplink could send first, of equals the pool's first; who is not in time with the
  // planned batch when first looked at is dropped; routes of single tasks that are late are the last choice.
  bool as_simulated = false;
  bool reserve_pipelines = false;  // routes of several stages are reserved ahead, whatever `place` says

  WindowRule windows = WindowRule::none;
  std::uint32_t risk_permille = 1500;  // windows: standard deviations of the time to the end that a batch keeps free

  // proactive
  Downstream downstream = Downstream::all;
  WaitEstimate wait = WaitEstimate::quantile;
  std::uint32_t lambda_permille = 100;
  TimeNs window_ns =
      5'000'000'000;  // of q, of the smoothed rate (the present one is over a fifth) and of observed batch waits
  bool exact_duration = false;  // d of the batch about to run, instead of the planned batch; with forecast always
  bool live_queues = false;     // q_i from the core's own window at every bin, instead of the estimator's
  bool forecast = false;  // L_sub from what is queued and running downstream now (forecast.cpp), instead of averages
  std::uint32_t residual_permille =
      500;  // forecast: how much of what busy servers will have left at the batch's start is believed
  // split
  SplitReading split_reading = SplitReading::elapsed;
  // overload_control: a module whose mean queueing delay exceeds the threshold cuts the rate that its entry admits
  TimeNs oc_threshold_ns = 20'000'000;
  std::uint32_t oc_alpha_permille = 50;

  // Batch caps per module: 0: the plan's; else maximise the chain's rate with sum of d(cap) <= kappa x SLO.
  std::uint32_t kappa_permille = 0;
  std::uint32_t shrink_permille =
      700;  // with kappa, after the entry: rather than lose a task, cut the batch to at least this part; 1000: never
  bool ramp = true;                       // with kappa: caps grow with the age of the backlog (ramp.cpp)
  std::uint32_t backlog_permille = 1000;  // order backlog
  std::uint32_t young_permille =
      3000;  // order backlog, in a burst: of the SLO; a backlog counts in proportion to its age until it is that old

  // elsa, equations 1-2
  std::uint32_t alpha_permille = 1000, beta_permille = 1000;

  // freshness: discards are optimistic (by p50, see policy/drop.cpp), promises pessimistic: p99 x a margin that learns
  std::uint32_t margin_permille = 1100, margin_min_permille = 1100, margin_max_permille = 3000;
  std::uint32_t margin_up_permille = 100, margin_down_permille = 1;
  bool look_ahead = false;  // where periodic streams share a partition with another class: weigh moves, idle on purpose
  TimeNs look_ahead_ns = 100'000'000;         // how far at most
  TimeNs background_budget_ns = 100'000'000;  // with look_ahead: least run time of background streams in each window
  TimeNs background_window_ns = 1'000'000'000;

  bool canaries = false;  // now and then what only an estimate condemns is run on an idle partition (canary.h)

  std::uint64_t seed = 1;  // place random
};

// Fills `out` with the preset of that name; false: no such preset (preset_names() lists them).
[[nodiscard]] bool preset(std::string_view name, Policy& out) noexcept;
// "leat, pard, ..." for an error message or a help text.
[[nodiscard]] std::string_view preset_names() noexcept;

// Words of the configuration; false: no such word. *_names() lists the words, comma-separated.
[[nodiscard]] bool parse(std::string_view word, Order& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, Drop& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, Place& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, Batching& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, Binding& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, Downstream& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, WaitEstimate& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, SplitReading& out) noexcept;
[[nodiscard]] bool parse(std::string_view word, WindowRule& out) noexcept;
[[nodiscard]] std::string_view windows_names() noexcept;
[[nodiscard]] std::string_view order_names() noexcept;
[[nodiscard]] std::string_view drop_names() noexcept;
[[nodiscard]] std::string_view place_names() noexcept;
[[nodiscard]] std::string_view batch_names() noexcept;
[[nodiscard]] std::string_view binding_names() noexcept;
[[nodiscard]] std::string_view downstream_names() noexcept;
[[nodiscard]] std::string_view wait_names() noexcept;
[[nodiscard]] std::string_view split_reading_names() noexcept;

}  // namespace leat::core
