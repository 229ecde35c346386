// What the core's tests share: small topologies, and a driver that collects answers and runs batches on a hand-moved
// clock.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/scheduler.h"

namespace leat::core::test {

inline constexpr TimeNs kUs = 1'000, kMs = 1'000'000;

// "a, b, c"
inline std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t at = 0, comma = 0; comma != std::string::npos; at = comma + 2) {
    comma = list.find(", ", at);
    out.push_back(list.substr(at, comma - at));
  }
  return out;
}

// d(b) = base + per_item * b, for b = 1..batch.
inline LatencyTable affine(TimeNs base, TimeNs per_item, std::uint32_t batch) {
  LatencyTable t;
  for (std::uint32_t b = 1; b <= batch; ++b) {
    t.p50_ns.push_back(base + per_item * b);
    t.p99_ns.push_back(base + per_item * b);
  }
  return t;
}

// A chain of modules, each with its own partitions, one stage each.
inline Topology chain(std::size_t modules, std::size_t workers, std::uint32_t batch, TimeNs base, TimeNs per_item,
                      TimeNs slo) {
  Topology t;
  ApplicationSpec app{.slo_ns = slo, .rate_rps = 0, .modules = {}};
  for (std::size_t m = 0; m < modules; ++m) {
    const auto id = static_cast<ModuleId>(m);
    ModuleSpec module{.application = 0, .before = {}, .after = {}, .routes = {id}};
    if (m > 0) module.before = {id - 1};
    if (m + 1 < modules) module.after = {id + 1};
    RouteSpec route{.module = id,
                    .batch = batch,
                    .rate_rps = 0,
                    .stages = {StageSpec{.pool = {}, .latency = affine(base, per_item, batch)}}};
    for (std::size_t w = 0; w < workers; ++w) {
      route.stages[0].pool.push_back(static_cast<PartitionId>(t.partitions.size()));
      t.partitions.push_back({});
    }
    t.modules.push_back(module);
    t.routes.push_back(route);
    app.modules.push_back(id);
  }
  t.applications.push_back(app);
  return t;
}

struct Answer {
  TimeNs at;
  Outcome outcome;
  Reason reason;
};

struct Running {
  BatchHandle batch;
  TimeNs end;
  std::uint32_t stage;
  std::vector<PartitionId> path;
  std::vector<std::uint64_t> tokens;
  RouteId route;
  TimeNs start;
  std::uint32_t first_stage = 0;
  RouteId then = kNone;
  bool went_on = false;
  bool alone = false;
  PartitionId at() const { return path[stage - first_stage]; }
};

// Runs every batch for exactly its planned time and what `extra` says, one after another on each partition.
class Bench {
 public:
  Bench(const Topology& t, const Policy& p, const Limits& l = {}) : topology(t), core(t, p, l) {
    EXPECT_EQ(t.problem(), "");
    for (PartitionId i = 0; i < t.partitions.size(); ++i) core.partition_ready(0, i);
  }

  StreamId open(StreamConfig c = {}) { return core.open_stream(now, c); }
  RequestHandle submit(StreamId s, std::uint64_t token, std::uint32_t n = 1, TimeNs capture = 0,
                       std::uint32_t key = 0) {
    const RequestHandle h =
        core.submit(now, {.stream = s, .token = token, .capture_ns = capture, .items = n, .key = key});
    drain();
    return h;
  }
  // Everything planned up to and including `to`.
  void run_to(TimeNs to) {
    for (;;) {
      TimeNs next = core.next_timer();
      std::size_t which = running.size();
      for (std::size_t i = 0; i < running.size(); ++i) {
        if (running[i].end <= next) {
          next = running[i].end;
          which = i;
        }
      }
      if (next > to) break;
      now = std::max(now, next);
      if (which == running.size()) {
        core.advance(now);
      } else {
        finish(which);
      }
      drain();
      core.audit();
    }
    now = std::max(now, to);
  }
  void finish(std::size_t which) {
    Running r = running[which];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
    std::vector<TaskResult> results(r.tokens.size());
    for (TaskResult& result : results) result.fan_out = fan_out;
    if (core.stage_finished(now, r.batch, r.stage, results)) {
      ++r.stage;
      begin(r);
    }
  }
  void begin(Running r) {
    TimeNs& free = busy_until[r.at()];
    r.start = std::max(now, free);
    r.end = free = r.start + topology.routes[r.route].stages[r.stage].latency.p50_ns[items_of(r) - 1];
    for (std::uint64_t token : r.tokens) r.end = free += extra.contains(token) ? extra.at(token) : 0;
    running.push_back(r);
  }
  std::size_t items_of(const Running& r) const {
    std::size_t n = 0;
    for (std::uint64_t token : r.tokens) n += items.contains(token) ? items.at(token) : 1;
    return n;
  }
  void drain() {
    for (Action a; core.next_action(a);) {
      if (a.kind == ActionKind::answer) {
        EXPECT_FALSE(answers.contains(a.token)) << "answered twice: " << a.token;
        answers[a.token] = {now, a.outcome, a.reason};
        continue;
      }
      if (a.kind != ActionKind::dispatch) continue;
      Running r{.batch = a.batch,
                .end = 0,
                .stage = a.first_stage,
                .path = {a.path.begin(), a.path.end()},
                .tokens = {},
                .route = a.route,
                .start = 0,
                .first_stage = a.first_stage,
                .then = a.then,
                .went_on = a.went_on,
                .alone = a.alone};
      for (const TaskRef& t : a.tasks) {
        r.tokens.push_back(t.token);
        items[t.token] = t.units;
      }
      sent.push_back(r);
      begin(r);
    }
  }

  Topology topology;
  Scheduler core;
  TimeNs now = 1;
  std::uint32_t fan_out = 1;
  std::vector<Running> running, sent;
  std::map<std::uint64_t, Answer> answers;
  std::map<std::uint64_t, std::uint32_t> items;
  std::map<std::uint64_t, TimeNs> extra;  // of a token, beyond the plan
  std::map<PartitionId, TimeNs> busy_until;
};

}  // namespace leat::core::test
