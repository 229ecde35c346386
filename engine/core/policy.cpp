#include "engine/core/policy.h"

#include <array>
#include <utility>

namespace leat::core {
namespace {

#define LEAT_WORD(name) std::string_view(#name),
#define LEAT_LIST(name) #name ", "
constexpr std::array kOrders{LEAT_ORDERS(LEAT_WORD)};
constexpr std::array kDrops{LEAT_DROPS(LEAT_WORD)};
constexpr std::array kPlaces{LEAT_PLACES(LEAT_WORD)};
constexpr std::array kBatches{LEAT_BATCHES(LEAT_WORD)};
constexpr std::array kBindings{LEAT_BINDINGS(LEAT_WORD)};
constexpr std::array kDownstreams{LEAT_DOWNSTREAMS(LEAT_WORD)};
constexpr std::array kWaits{LEAT_WAITS(LEAT_WORD)};
constexpr std::array kWindows{LEAT_WINDOWS(LEAT_WORD)};
constexpr std::array kSplitReadings{LEAT_SPLIT_READINGS(LEAT_WORD)};

template <class Enum, std::size_t N>
bool find(const std::array<std::string_view, N>& words, std::string_view word, Enum& out) noexcept {
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == word) {
      out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

// "a, b, " without its last two characters.
constexpr std::string_view list(std::string_view text) noexcept { return text.substr(0, text.size() - 2); }

// The system that PARD's paper measures everything in: a queue per worker, requests dealt out in turn, the next batch
// collected while the last one runs.
constexpr Policy worker_queues() {
  Policy p;
  p.order = Order::fcfs;
  p.drop = Drop::none;
  p.place = Place::rr;
  p.binding = Binding::early;
  p.form_ahead = true;
  return p;
}

constexpr Policy pard() {
  Policy p = worker_queues();
  p.order = Order::adaptive;
  p.drop = Drop::proactive;
  return p;
}

constexpr Policy ppipe() {
  Policy p;
  p.order = Order::fcfs;
  p.place = Place::reservation;
  p.batch = Batching::search_down;
  return p;
}

constexpr Policy harpagon() {
  Policy p;
  p.order = Order::fcfs;
  p.drop = Drop::none;
  p.place = Place::tc;
  p.batch = Batching::fill;
  p.binding = Binding::early;
  return p;
}

constexpr Policy leat() {
  Policy p;
  p.order = Order::backlog;
  p.drop = Drop::proactive;
  p.forecast = true;
  p.kappa_permille = 850;
  p.look_ahead = true;
  p.reserve_pipelines = true;
  p.fit = true;
  p.windows = WindowRule::shared;
  p.canaries = true;
  return p;
}

struct Named {
  std::string_view name;
  Policy policy;
};

template <class Change>
constexpr Policy with(Policy base, Change change) {
  change(base);
  return base;
}

constexpr std::array kPresets{
    Named{"leat", leat()},
    Named{"pard", pard()},
    Named{"elsa", with(Policy{},
                       [](Policy& p) {
                         p.order = Order::fcfs;
                         p.drop = Drop::none;
                         p.place = Place::elsa;
                         p.batch = Batching::single;
                         p.binding = Binding::early;
                       })},
    Named{"ppipe", ppipe()},
    Named{"ppipe-append", with(ppipe(), [](Policy& p) { p.append_only = true; })},
    Named{"ppipe-simulator", with(ppipe(), [](Policy& p) { p.append_only = p.as_simulated = true; })},
    Named{"harpagon", harpagon()},
    Named{"harpagon-printed", with(harpagon(), [](Policy& p) { p.place = Place::tc_rates; })},
    Named{"reactive", with(ppipe(), [](Policy& p) { p.batch = Batching::reactive; })},
    Named{"nexus", with(worker_queues(), [](Policy& p) { p.drop = Drop::window; })},
    Named{"nexus-local", with(worker_queues(), [](Policy& p) { p.drop = Drop::window_local; })},
    Named{"clipper++", with(worker_queues(), [](Policy& p) { p.drop = Drop::split; })},
    Named{"clipper++d", with(worker_queues(),
                             [](Policy& p) {
                               p.drop = Drop::split;
                               p.split_reading = SplitReading::elapsed_and_execution;
                             })},
    Named{"fifs", with(Policy{},
                       [](Policy& p) {
                         p.order = Order::fcfs;
                         p.drop = Drop::none;
                         p.batch = Batching::single;
                       })},
    Named{"naive", worker_queues()},
    // PARD's ablations, Table 1.
    Named{"pard-back", with(pard(), [](Policy& p) { p.downstream = Downstream::none; })},
    Named{"pard-sf", with(pard(), [](Policy& p) { p.downstream = Downstream::execution; })},
    Named{"pard-oc", with(pard(),
                          [](Policy& p) {
                            p.drop = Drop::overload_control;
                            p.window_ns = 500'000'000;  // it acts ten times a second, on what has been so until now
                          })},
    Named{"pard-split", with(pard(),
                             [](Policy& p) {
                               p.drop = Drop::split;
                               p.split_reading = SplitReading::elapsed_and_execution;
                             })},
    Named{"pard-wcl", with(pard(), [](Policy& p) { p.drop = Drop::dynamic_split; })},
    Named{"pard-lower", with(pard(), [](Policy& p) { p.wait = WaitEstimate::lower; })},
    Named{"pard-upper", with(pard(), [](Policy& p) { p.wait = WaitEstimate::upper; })},
    Named{"pard-fcfs", with(pard(), [](Policy& p) { p.order = Order::fcfs; })},
    Named{"pard-hbf", with(pard(), [](Policy& p) { p.order = Order::hbf; })},
    Named{"pard-lbf", with(pard(), [](Policy& p) { p.order = Order::lbf; })},
    Named{"pard-instant", with(pard(), [](Policy& p) { p.order = Order::instant; })},
};

// "leat, pard, ..."
constexpr auto kPresetList = [] {
  constexpr std::size_t length = [] {
    std::size_t n = 0;
    for (const Named& named : kPresets) n += named.name.size() + 2;
    return n - 2;
  }();
  std::array<char, length> text{};
  std::size_t at = 0;
  for (const Named& named : kPresets) {
    if (at > 0) text[at++] = ',', text[at++] = ' ';
    for (const char c : named.name) text[at++] = c;
  }
  return text;
}();

}  // namespace

bool preset(std::string_view name, Policy& out) noexcept {
  for (const Named& named : kPresets) {
    if (named.name == name) {
      out = named.policy;
      return true;
    }
  }
  return false;
}

std::string_view preset_names() noexcept { return {kPresetList.data(), kPresetList.size()}; }

bool parse(std::string_view word, Order& out) noexcept { return find(kOrders, word, out); }
bool parse(std::string_view word, Drop& out) noexcept { return find(kDrops, word, out); }
bool parse(std::string_view word, Place& out) noexcept { return find(kPlaces, word, out); }
bool parse(std::string_view word, Batching& out) noexcept { return find(kBatches, word, out); }
bool parse(std::string_view word, Binding& out) noexcept { return find(kBindings, word, out); }
bool parse(std::string_view word, Downstream& out) noexcept { return find(kDownstreams, word, out); }
bool parse(std::string_view word, WaitEstimate& out) noexcept { return find(kWaits, word, out); }
bool parse(std::string_view word, SplitReading& out) noexcept { return find(kSplitReadings, word, out); }
bool parse(std::string_view word, WindowRule& out) noexcept { return find(kWindows, word, out); }
std::string_view windows_names() noexcept { return list(LEAT_WINDOWS(LEAT_LIST)); }
std::string_view order_names() noexcept { return list(LEAT_ORDERS(LEAT_LIST)); }
std::string_view drop_names() noexcept { return list(LEAT_DROPS(LEAT_LIST)); }
std::string_view place_names() noexcept { return list(LEAT_PLACES(LEAT_LIST)); }
std::string_view batch_names() noexcept { return list(LEAT_BATCHES(LEAT_LIST)); }
std::string_view binding_names() noexcept { return list(LEAT_BINDINGS(LEAT_LIST)); }
std::string_view downstream_names() noexcept { return list(LEAT_DOWNSTREAMS(LEAT_LIST)); }
std::string_view wait_names() noexcept { return list(LEAT_WAITS(LEAT_LIST)); }
std::string_view split_reading_names() noexcept { return list(LEAT_SPLIT_READINGS(LEAT_LIST)); }

}  // namespace leat::core
