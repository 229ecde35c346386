// For a target z the prices of the relaxation (lp.h) make a budget of waste: every plan with min rate / weight
// >= z wastes at most bound - z, where waste is the price of its GPUs less the price of its rates, and adds up over
// DNNs, over slots and over the rounding of each pool. Nothing that wastes more need be looked at, however many GPUs
// there are.
//   labels    of a slot: rates at which one of its stages is just full, with the least of every other stage
//   options   of a DNN: picks of labels whose rates add up, least in GPUs; grown with a small budget first, so that the
//             waste no DNN can avoid is known early and taken off everybody else's budget
//   chains    one option a DNN within the counts
// The relaxation's ranges of each slot's rate keep the lists short when thousands of GPUs make many labels of equal
// waste.
#include "planner/pooled/search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace leat::planner {
namespace {

constexpr double kLoose = 1e-9;  // relative; what the relaxation may be off by

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

}  // namespace

bool PooledSearch::covers(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  for (std::size_t g = 0; g < a.size(); ++g) {
    if (a[g] > b[g]) return false;
  }
  return true;
}

PooledSearch::PooledSearch(const PooledProblem& problem, const std::vector<std::vector<Slot>>& slots,
                           const PooledLp& lp, SearchRules rules)
    : problem_(problem),
      slots_(slots),
      lp_(lp),
      rules_(rules),
      unit_(rules.unit),
      grain_(rules.free ? rules.unit : 1),
      types_(static_cast<std::uint32_t>(problem.types.size())),
      dnns_(static_cast<std::uint32_t>(problem.dnns.size())) {}

// False: the steps are spent.
bool PooledSearch::spend(std::uint64_t steps) {
  steps_taken_ += steps;
  if (steps_left_ < steps) return false;
  steps_left_ -= steps;
  return true;
}

// What rounding has cost the pools that nobody at `position` or later can add to.
double PooledSearch::closed_waste(std::uint32_t position) const {
  if (unit_ == grain_) return 0;
  double waste = 0;
  for (std::uint32_t p = 0; p < pool_.size(); ++p) {
    const std::uint32_t part = pool_[p] % unit_;
    if (part != 0 && last_user_[p] < position) waste += lp_.gpu_price()[p % types_] * (unit_ - part) / unit_;
  }
  return waste;
}

// All options of a DNN that waste at most `limit`. False: steps ran out.
bool PooledSearch::make_options(std::uint32_t dnn, double rate, double limit) {
  dnn_ = dnn, rate_ = rate, limit_ = limit;
  options_[dnn].clear();
  max_gpus_.assign(types_, 0);
  for (std::uint32_t g = 0; g < types_; ++g) {
    max_gpus_[g] = grain_ * (problem_.types[g].count + 1e-9);
    for (std::uint32_t i = 0; i < dnns_; ++i) max_gpus_[g] -= i == dnn ? 0 : min_gpus_[i][g];
    if (max_gpus_[g] < 0) return true;
  }
  std::vector<double> max = max_gpus_;
  for (double& m : max) m /= grain_;
  const auto shape = lp_.shape(dnn, rate, limit, max, static_cast<std::uint32_t>(slots_[dnn].size()));
  if (!shape.possible) return true;
  ranges_ = shape.rps;
  if (reach_ != Reach::everywhere) stay_near(dnn, rate);
  if (!make_labels(dnn, limit)) return false;
  const auto slots = static_cast<std::uint32_t>(labels_.size());
  order_.resize(slots);
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return labels_[a].size() < labels_[b].size(); });
  can_still_.assign(slots + 1, 0);
  must_still_.assign(slots + 1, false);
  pool_.assign(std::size_t{problem_.max_stages} * types_, 0);
  last_user_.assign(pool_.size(), 0);
  for (std::uint32_t p = slots; p-- > 0;) {
    const auto& list = labels_[order_[p]];
    const PooledLp::Range& range = ranges_[order_[p]];
    can_still_[p] = can_still_[p + 1] + (list.empty() ? 0 : list.back().rps * slots_[dnn][order_[p]].copies);
    must_still_[p] = must_still_[p + 1] || range.min > kLoose * rate;
  }
  for (std::uint32_t p = 0; p < slots; ++p) {
    for (std::uint32_t s = 0; s < slots_[dnn][order_[p]].stages; ++s)
      last_user_[s * types_ + slots_[dnn][order_[p]].types[s]] = p;
  }
  find_beginnings();
  enough_ = false;
  picks_.clear();
  waste_ = 0;
  return choose(0, 0, rate);
}

// Every beginning of a slot's sequence of types has room for as many pipelines as there are slots that begin so.
void PooledSearch::find_beginnings() {
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  beginnings_.assign(slots_[dnn_].size(), {});
  room_.clear();
  for (std::uint32_t s = 0; s < slots_[dnn_].size(); ++s) {
    const Slot& slot = slots_[dnn_][s];
    for (std::uint32_t length = 1; length <= slot.stages; ++length) {
      const auto [it, fresh] = known.emplace(std::vector<std::uint32_t>(slot.types, slot.types + length),
                                             static_cast<std::uint32_t>(room_.size()));
      if (fresh) {
        std::uint32_t room = 1;
        for (std::uint32_t k = length; k < problem_.max_stages; ++k) room *= types_;
        if (rules_.free) room = UINT32_MAX / 2;
        room_.push_back(room);
      }
      beginnings_[s].push_back(it->second);
    }
  }
}

// Takes or gives back a seat under each beginning of the slot. False, and nothing taken: one of them is full.
bool PooledSearch::seats(std::uint32_t slot, bool taken) {
  for (const std::uint32_t b : beginnings_[slot]) {
    if (taken && room_[b] == 0) return false;
  }
  for (const std::uint32_t b : beginnings_[slot]) room_[b] += taken ? -1 : 1;
  return true;
}

// Tries every label at this position's slot as its `copy`-th pipeline, then the slot without it. False: the steps are
// spent.
bool PooledSearch::choose(std::uint32_t position, std::uint32_t copy, double rest) {
  if (position == order_.size() || can_still_[position] < rest * (1 - kRound)) return true;
  const std::uint32_t slot = order_[position];
  const auto& list = labels_[slot];
  const double price = lp_.rps_price()[dnn_];
  const std::uint32_t copies_left = slots_[dnn_][slot].copies - copy;
  const double own = list.empty() ? 0 : list.back().rps * (copies_left - 1);
  const double floor = std::max(0.0, (rest - can_still_[position + 1] - own) * (1 - kRound));
  const bool full = reach_ != Reach::everywhere &&
                    picks_.size() > types_;  // the relaxation needs `types` of them; one more to fill up
  if (copies_left > 0 && !full && seats(slot, true)) {
    auto it = std::lower_bound(list.begin(), list.end(), floor, [](const Label& l, double r) { return l.rps < r; });
    for (; it != list.end(); ++it) {
      if (!spend(1)) return false;
      const double over = it->rps - rest;
      if (over > 0 && over * price > limit_) break;
      if (waste_ + it->waste + std::max(0.0, over) * price > limit_) continue;
      if (copy > 0 && it->candidate <= picks_.back().label.candidate) continue;  // different ones, in one order
      if (!take(position, copy, *it, rest)) return false;
      if (enough_) break;
    }
    seats(slot, false);
  }
  if (enough_) return true;
  const bool needed = copy == 0 && ranges_[slot].min > kLoose * rate_;
  return needed || choose(position + 1, 0, rest);
}

bool PooledSearch::take(std::uint32_t position, std::uint32_t copy, const Label& label, double rest) {
  const std::uint32_t slot = order_[position];
  const std::uint32_t* types = slots_[dnn_][slot].types;
  const std::uint32_t stages = slots_[dnn_][slot].stages;
  for (std::uint32_t s = 0; s < stages; ++s) pool_[s * types_ + types[s]] += label.use[s];
  picks_.push_back({slot, label});
  waste_ += label.waste;
  bool in_time = true;
  if (label.rps >= rest * (1 - kRound)) {
    if (!must_still_[position + 1]) finish();
  } else {
    const bool again = copy + 1 < slots_[dnn_][slot].copies;
    if (waste_ + closed_waste(again ? position : position + 1) <= limit_) {
      in_time = again ? choose(position, copy + 1, rest - label.rps) : choose(position + 1, 0, rest - label.rps);
    }
  }
  waste_ -= label.waste;
  picks_.pop_back();
  for (std::uint32_t s = 0; s < stages; ++s) pool_[s * types_ + types[s]] -= label.use[s];
  return in_time;
}

// The picks carry the rate: keep them unless they waste too much, take too many GPUs, or another option takes no more.
void PooledSearch::finish() {
  Option option;
  option.gpus.assign(types_, 0);
  for (std::uint32_t p = 0; p < pool_.size(); ++p) option.gpus[p % types_] += ceil_div(pool_[p], unit_ / grain_);
  option.waste = -lp_.rps_price()[dnn_] * rate_;
  for (std::uint32_t g = 0; g < types_; ++g) {
    if (option.gpus[g] > max_gpus_[g]) return;
    option.waste += lp_.gpu_price()[g] * option.gpus[g] / grain_;
  }
  if (option.waste > limit_) return;
  auto& all = options_[dnn_];
  for (const Option& o : all) {
    if (covers(o.gpus, option.gpus)) return;
  }
  all.erase(std::remove_if(all.begin(), all.end(), [&](const Option& o) { return covers(option.gpus, o.gpus); }),
            all.end());
  option.picks = picks_;
  all.push_back(std::move(option));
  enough_ = dnns_ == 1;  // it fits the counts: nothing else is asked
}

// Raises least_gpus_ to what the relaxation of each DNN alone proves within its limit of waste.
void PooledSearch::tighten(double z, const std::vector<double>& limits) {
  std::vector<double> all(types_);
  for (std::uint32_t g = 0; g < types_; ++g) all[g] = problem_.types[g].count;
  for (std::uint32_t i = 0; i < dnns_; ++i) {
    const auto shape = lp_.shape(i, problem_.dnns[i].weight * z, limits[i], all, 0);
    for (std::uint32_t g = 0; g < types_ && shape.possible; ++g) {
      min_gpus_[i][g] = std::max(min_gpus_[i][g], std::ceil(shape.min_gpus[g] * grain_ - 1e-6));
    }
  }
}

Answer PooledSearch::reaches(double z, std::uint64_t steps, Reach reach, std::vector<PooledDnnPlan>& plan) {
  steps_left_ = steps;
  reach_ = reach;
  const Answer answer = look(z, plan);
  return reach != Reach::everywhere && answer == Answer::no ? Answer::too_long : answer;
}

Answer PooledSearch::look(double z, std::vector<PooledDnnPlan>& plan) {
  const double slack = lp_.bound() - z;
  if (slack < -kLoose * z) return Answer::no;
  const double limit = std::max(0.0, slack) + kLoose * lp_.bound();  // a plan of all GPUs wastes all of the slack
  options_.assign(dnns_, {});
  std::vector<double> unavoidable(dnns_, 0), searched(dnns_, -1);
  min_gpus_.assign(dnns_, std::vector<double>(types_, 0));
  tighten(z, std::vector<double>(dnns_, limit));
  for (double level = limit / (2 * dnns_);; level *= 2) {
    bool complete = true;
    for (std::uint32_t i = 0; i < dnns_; ++i) {
      const double others = std::accumulate(unavoidable.begin(), unavoidable.end(), 0.0) - unavoidable[i];
      const double own = std::min(level, limit - others);
      if (own < unavoidable[i]) return Answer::no;
      const bool whole = own >= limit - others;
      complete = complete && whole;
      if (own <= searched[i]) continue;
      if (!make_options(i, problem_.dnns[i].weight * z, own)) return Answer::too_long;
      searched[i] = own;
      unavoidable[i] = own;
      for (const Option& o : options_[i]) unavoidable[i] = std::min(unavoidable[i], o.waste);
      unavoidable[i] = std::max(0.0, unavoidable[i]);
      if (!whole) continue;
      if (options_[i].empty()) return Answer::no;
      for (std::uint32_t g = 0; g < types_; ++g) {
        std::uint32_t fewest = UINT32_MAX;
        for (const Option& o : options_[i]) fewest = std::min(fewest, o.gpus[g]);
        min_gpus_[i][g] = std::max(min_gpus_[i][g], static_cast<double>(fewest));
      }
    }
    if (combine(limit, plan)) return Answer::yes;
    if (complete) return Answer::no;
  }
}

}  // namespace leat::planner
