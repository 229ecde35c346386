#include "tests/explore/explorer.h"

#include <array>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "tests/explore/choices.h"
#include "tests/explore/fibers.h"
#include "tests/explore/memory.h"
#include "tests/explore/mix.h"
#include "tests/explore/words.h"

namespace leat::explore {
namespace {

std::uint64_t raw(const void* word, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, word, bytes);
  return value;
}

class Explorer {
 public:
  Outcome explore(const Model& model, const Bounds& bounds);

  [[nodiscard]] bool following() const { return following_; }
  void fail(std::string what);

  std::uint64_t load(const void* word, std::size_t bytes, std::memory_order order, const std::source_location& at);
  void store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order,
             const std::source_location& at);
  bool compare_exchange(void* word, std::size_t bytes, std::uint64_t& expected, std::uint64_t desired,
                        std::memory_order success, std::memory_order failure, const std::source_location& at);
  void fence(std::memory_order order, const std::source_location& at);
  void plain(const void* memory, std::size_t bytes, bool writes);
  void ring(int bell);
  void drain(int bell);
  void wait(std::uint32_t bells);

  Sites sites;

 private:
  struct Actor {
    bool ended = false;
    std::uint32_t asleep = 0;  // the bells it waits for
    std::uint32_t looks = 0;
  };
  struct Place {  // of one access
    bool follow;
    Share share;
    std::uintptr_t address;
  };

  [[nodiscard]] bool acting() const { return following_ && current_ != Fibers::kOutside; }
  void run_once();
  void give_up() { following_ = false; }
  [[nodiscard]] bool can_go_on(int actor, bool also_late) const;
  [[nodiscard]] int next_actor();
  void turn();  // before an access that others notice
  void go_on(int from);
  void ended(int actor);
  Place place(const void* word, bool writes);
  bool race_free(bool free, const std::source_location* at);
  void note(const std::source_location* at, const std::string& what);

  Choices choices_;
  Memory memory_{choices_};
  Words words_;
  Fibers fibers_;
  std::unordered_set<std::uint64_t> states_;
  const Model* model_ = nullptr;
  Bounds bounds_;
  Outcome outcome_;

  std::array<Actor, kActors> actors_{};
  std::uint32_t rung_ = 0;  // bells
  int current_ = 0;
  bool following_ = false, anew_ = false, tracing_ = false;
};

Outcome Explorer::explore(const Model& model, const Bounds& bounds) {
  model_ = &model;
  bounds_ = bounds;
  outcome_ = {};
  choices_.clear();
  states_.clear();
  words_.forget();
  do {
    run_once();
    ++outcome_.executions;
    if (anew_) {
      anew_ = false;
      choices_.clear();
      states_.clear();
    } else if (!outcome_.failure.empty()) {
      choices_.rewind();
      tracing_ = true;
      run_once();
      tracing_ = false;
      break;
    } else if (!choices_.advance()) {
      outcome_.complete = true;
      break;
    }
    choices_.rewind();
  } while (outcome_.executions < bounds_.executions);
  outcome_.states = states_.size();
  return outcome_;
}

void Explorer::run_once() {
  model_->set_up();
  memory_.begin();
  actors_ = {};
  rung_ = 0;
  current_ = 0;
  following_ = true;
  const std::function<void(int)> at_end = [this](int actor) { ended(actor); };
  fibers_.run(model_->actors, at_end);
  const bool whole = following_;
  following_ = false;
  current_ = Fibers::kOutside;
  if (!whole) return;
  following_ = true;
  model_->check();
  following_ = false;
}

void Explorer::fail(std::string what) {
  if (!following_) return;
  if (outcome_.failure.empty()) outcome_.failure = std::move(what);
  give_up();
}

bool Explorer::can_go_on(int actor, bool also_late) const {
  const Actor& a = actors_[static_cast<std::size_t>(actor)];
  if (a.ended || (a.asleep != 0 && (a.asleep & rung_) == 0)) return false;
  return also_late || a.looks <= model_->looks;
}

// Who goes on, the current actor first. Nobody, where all that have not ended sleep.
int Explorer::next_actor() {
  const int count = static_cast<int>(model_->actors.size());
  std::array<int, kActors> able{};
  int found = 0;
  for (const bool also_late : {false, true}) {
    for (int i = 0; i < count && (found == 0 || !also_late); ++i)
      if (const int actor = (current_ + i) % count; can_go_on(actor, also_late))
        able[static_cast<std::size_t>(found++)] = actor;
    if (found != 0) break;
  }
  if (found == 0) return Fibers::kOutside;
  return able[static_cast<std::size_t>(choices_.pick(found))];
}

void Explorer::turn() {
  if (++actors_[static_cast<std::size_t>(current_)].looks > 8 * model_->looks) fail("an actor does not end");
  if (following_) go_on(current_);
}

// Hands over to whoever is chosen; returns when `from` is chosen again.
void Explorer::go_on(int from) {
  std::uint64_t state = mix(memory_.state(), rung_);
  for (const Actor& a : actors_) state = mix(state, std::uint64_t{a.looks} << 32 | a.asleep << 1 | (a.ended ? 1 : 0));
  if (!tracing_ && !bounds_.plainly && !choices_.replaying() && !states_.insert(state).second) return give_up();
  const int to = next_actor();
  if (to == Fibers::kOutside) return fail("all that have not ended sleep, and nobody rings");
  if (to == from) return;
  current_ = to;
  fibers_.change(from, to);
}

void Explorer::ended(int actor) {
  actors_[static_cast<std::size_t>(actor)].ended = true;
  bool all = true;
  for (std::size_t i = 0; i < model_->actors.size(); ++i) all = all && actors_[i].ended;
  if (all) fibers_.change(actor, Fibers::kOutside);
  if (following_) go_on(actor);
  for (int i = 0;; ++i) {  // not followed any more: the others run to their ends
    if (actors_[static_cast<std::size_t>(i)].ended) continue;
    current_ = i;
    fibers_.change(actor, i);
  }
}

Explorer::Place Explorer::place(const void* word, bool writes) {
  if (!acting()) return {false, Share::own, 0};
  if (model_->watched && !model_->watched(word)) return {false, Share::own, 0};
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(word);
  bool news = false;
  const Share share = words_.touch(current_, address, writes, news);
  if (news) {
    anew_ = true;
    give_up();
  }
  return {following_ && (share != Share::own || bounds_.plainly), share, address};
}

bool Explorer::race_free(bool free, const std::source_location* at) {
  if (!free) {
    note(at, "races");
    fail("a data race");
  }
  return free;
}

void Explorer::note(const std::source_location* at, const std::string& what) {
  if (!tracing_) return;
  std::string line = "actor " + std::to_string(current_) + ": ";
  if (at != nullptr) {
    const std::string_view file = at->file_name();
    line += std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(at->line()) + " ";
  }
  outcome_.trace.push_back(line + what);
}

std::uint64_t Explorer::load(const void* word, std::size_t bytes, std::memory_order order,
                             const std::source_location& at) {
  if (!acting()) return raw(word, bytes);
  const std::memory_order granted = sites.granted(at, Kind::load, order);
  const Place p = place(word, false);
  if (!p.follow) return raw(word, bytes);
  if (p.share == Share::shared || bounds_.plainly) turn();
  if (!following_) return raw(word, bytes);
  const bool late = actors_[static_cast<std::size_t>(current_)].looks > model_->looks;
  if (!race_free(memory_.atomic(current_, p.address, bytes, false), &at)) return raw(word, bytes);
  const std::uint64_t value = memory_.load(current_, memory_.location(p.address, raw(word, bytes)), granted, late);
  note(&at, "loads " + std::to_string(value));
  return value;
}

void Explorer::store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order,
                     const std::source_location& at) {
  const Place p = place(word, true);
  if (p.follow && bounds_.plainly) turn();
  const std::memory_order granted = acting() ? sites.granted(at, Kind::store, order) : order;
  if (p.follow && following_ && race_free(memory_.atomic(current_, p.address, bytes, true), &at)) {
    const int location = memory_.location(p.address, raw(word, bytes));
    memory_.store(current_, location, value, granted);
    note(&at, "stores " + std::to_string(value));
    value = memory_.newest(location);
  }
  std::memcpy(word, &value, bytes);
}

bool Explorer::compare_exchange(void* word, std::size_t bytes, std::uint64_t& expected, std::uint64_t desired,
                                std::memory_order success, std::memory_order failure, const std::source_location& at) {
  const std::memory_order granted = acting() ? sites.granted(at, Kind::exchange, success) : success;
  const std::memory_order granted_failure = acting() ? sites.granted(at, Kind::failed_exchange, failure) : failure;
  const Place p = place(word, true);
  if (p.follow && p.share == Share::shared) turn();
  if (p.follow && following_ && race_free(memory_.atomic(current_, p.address, bytes, true), &at)) {
    const int location = memory_.location(p.address, raw(word, bytes));
    const bool done = memory_.compare_exchange(current_, location, expected, desired, granted, granted_failure);
    note(&at, done ? "exchanges for " + std::to_string(desired) : "finds " + std::to_string(expected));
    const std::uint64_t newest = memory_.newest(location);
    std::memcpy(word, &newest, bytes);
    return done;
  }
  const std::uint64_t was = raw(word, bytes);
  const bool same = was == expected;
  if (same) std::memcpy(word, &desired, bytes);
  expected = was;
  return same;
}

void Explorer::fence(std::memory_order order, const std::source_location& at) {
  if (!acting()) return;
  const std::memory_order granted = sites.granted(at, Kind::fence, order);
  if (granted == std::memory_order_seq_cst || bounds_.plainly) turn();
  if (!following_) return;
  memory_.fence(current_, granted);
  note(&at, "fence, " + name_of(granted));
}

void Explorer::plain(const void* memory, std::size_t bytes, bool writes) {
  if (!acting()) return;
  race_free(memory_.plain(current_, reinterpret_cast<std::uintptr_t>(memory), bytes, writes), nullptr);
}

void Explorer::ring(int bell) {
  if (!following_) return;
  turn();
  rung_ |= 1u << bell;
  note(nullptr, "rings " + std::to_string(bell));
}

void Explorer::drain(int bell) {
  if (!following_) return;
  turn();
  memory_.learn(current_, rung_ >> bell & 1u);
  rung_ &= ~(1u << bell);
  note(nullptr, "drains " + std::to_string(bell));
}

void Explorer::wait(std::uint32_t bells) {
  if (!following_) return;
  note(nullptr, "sleeps");
  const int me = current_;
  actors_[static_cast<std::size_t>(me)].asleep = bells;
  turn();
  actors_[static_cast<std::size_t>(me)].asleep = 0;
}

Explorer& explorer() {
  static Explorer one;
  return one;
}

}  // namespace

Outcome explore(const Model& model, const Bounds& bounds) { return explorer().explore(model, bounds); }
Sites& sites() { return explorer().sites; }
void require(bool holds, const char* what) {
  if (!holds) explorer().fail(what);
}
bool going() { return explorer().following(); }
void ring(int bell) { explorer().ring(bell); }
void drain(int bell) { explorer().drain(bell); }
void wait_for_ring(std::uint32_t bells) { explorer().wait(bells); }

std::uint64_t load(const void* word, std::size_t bytes, std::memory_order order, const std::source_location& at) {
  return explorer().load(word, bytes, order, at);
}
void store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order,
           const std::source_location& at) {
  explorer().store(word, bytes, value, order, at);
}
bool compare_exchange(void* word, std::size_t bytes, std::uint64_t& expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure, const std::source_location& at) {
  return explorer().compare_exchange(word, bytes, expected, desired, success, failure, at);
}
void fence(std::memory_order order, const std::source_location& at) { explorer().fence(order, at); }
void read_plain(const void* memory, std::size_t bytes) { explorer().plain(memory, bytes, false); }
void write_plain(void* memory, std::size_t bytes) { explorer().plain(memory, bytes, true); }

}  // namespace leat::explore
