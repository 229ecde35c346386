// The core and the papers' queues against a naive twin: chains of modules with equal partitions, a queue a module,
// orders fcfs, lbf and hbf, drops none, expired and proactive (PARD eq. 3 without recent averages). The twin keeps
// plain lists and looks at everything after each event; every answer (when, what) and every batch (who, in what order)
// must be the same.
#include <algorithm>
#include <random>
#include <tuple>

#include "engine/core/test/test_bench.h"
#include "engine/papers/pard/worker_queues.h"

namespace leat::papers {
namespace {

using test::kMs;
using By = WorkerQueues::By;
using Downstream = ProactiveDrop::Downstream;

struct Request {
  std::uint64_t token = 0;
  TimeNs at = 0, capture = 0, deadline = 0;
  std::uint32_t items = 1;
  TimeNs cancel_at = kNever;
};

struct Seen {
  TimeNs at = 0;
  Outcome outcome = Outcome::pending;
  Reason reason = Reason::none;
  bool operator==(const Seen&) const = default;
};

struct History {
  std::map<std::uint64_t, Seen> answers;
  std::map<ModuleId, std::vector<std::pair<TimeNs, std::vector<std::uint64_t>>>> batches;  // by module, in time
};

// Batches that end at the same moment are reported by module and first task, to both alike. runs.size(): none has
// ended.
template <class Run>
std::size_t first_ended(const std::vector<Run>& runs, TimeNs now) {
  std::size_t best = runs.size();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].end > now) continue;
    if (best == runs.size() || std::tie(runs[i].module, runs[i].token) < std::tie(runs[best].module, runs[best].token))
      best = i;
  }
  return best;
}

// ---- the twin ----

class NaiveTwin {
 public:
  NaiveTwin(const Topology& t, const WorkerQueues& p) : topology_(t), policy_(p), modules_(t.modules.size()) {
    for (std::size_t m = modules_.size(); m-- > 0;) {
      modules_[m].idle = static_cast<std::uint32_t>(t.routes[m].stages[0].pool.size());
      if (m + 1 == modules_.size()) continue;
      modules_[m].after =
          modules_[m + 1].after + (p.pard.downstream == Downstream::none ? 0 : run_ns(m + 1, t.routes[m + 1].batch));
      modules_[m].after_min = modules_[m + 1].after_min + run_ns(m + 1, 1);
    }
  }
  void submit(const Request& r, TimeNs now) {
    now_ = now;
    modules_[0].queue.push_back({.token = r.token, .deadline = r.deadline, .items = r.items});
    serve();
  }
  void cancel(std::uint64_t token, TimeNs now) {
    now_ = now;
    for (Module& m : modules_) {
      std::erase_if(m.queue, [&](const Job& j) {
        return j.token == token && answer(token, Outcome::dropped, Reason::cancelled);
      });
    }
    for (Run& r : running_) {
      for (Job& j : r.jobs) j.doomed = j.doomed || j.token == token;
    }
    serve();
  }
  [[nodiscard]] TimeNs next() const {
    TimeNs at = kNever;
    for (const Run& r : running_) at = std::min(at, r.end);
    for (const Module& m : modules_) {
      for (const Job& j : m.queue) at = policy_.drop == &kKeepAll ? at : std::min(at, j.deadline);
    }
    return at;
  }
  // Ends of batches, then what has expired.
  void advance(TimeNs now) {
    now_ = now;
    for (std::size_t i = first_ended(running_, now); i < running_.size(); i = first_ended(running_, now)) {
      const Run r = running_[i];
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      ++modules_[r.module].idle;
      for (const Job& j : r.jobs) {
        if (j.doomed) {
          answer(j.token, Outcome::dropped, Reason::cancelled);
        } else if (r.module + 1 < modules_.size()) {
          modules_[r.module + 1].queue.push_back({.token = j.token, .deadline = j.deadline, .items = 1});
        } else {
          answer(j.token, now <= j.deadline ? Outcome::completed : Outcome::late, Reason::none);
        }
      }
      serve();
    }
    for (Module& m : modules_) {
      if (policy_.drop == &kKeepAll) continue;
      std::erase_if(m.queue, [&](const Job& j) {
        return j.deadline <= now && answer(j.token, Outcome::dropped, Reason::expired);
      });
    }
    serve();
  }
  History history;

 private:
  struct Job {
    std::uint64_t token = 0;
    TimeNs deadline = 0;
    std::uint32_t items = 1;
    bool doomed = false;
  };
  struct Module {
    std::vector<Job> queue;  // by arrival
    std::uint32_t idle = 0;
    TimeNs after = 0, after_min = 0, probed = INT64_MIN / 2;
  };
  struct Run {
    std::size_t module = 0;
    TimeNs end = 0;
    std::uint64_t token = 0;  // of its first task
    std::vector<Job> jobs;
  };

  [[nodiscard]] TimeNs run_ns(std::size_t module, std::uint32_t items) const {
    return topology_.routes[module].stages[0].latency.p50_ns[items - 1];
  }
  bool answer(std::uint64_t token, Outcome outcome, Reason reason) {
    EXPECT_TRUE(history.answers.emplace(token, Seen{now_, outcome, reason}).second)
        << "twin: answered twice: " << token;
    return true;
  }
  // Which waits at the front: the order's choice. Equal deadlines keep arrival order; the largest budget takes the
  // latest of them.
  [[nodiscard]] std::size_t pick(const Module& m) const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < m.queue.size(); ++i) {
      if (policy_.order == By::lbf && m.queue[i].deadline < m.queue[best].deadline) best = i;
      if (policy_.order == By::hbf && m.queue[i].deadline >= m.queue[best].deadline) best = i;
    }
    return best;
  }
  [[nodiscard]] Reason judge(const Module& m, const Job& j, TimeNs d) const {
    if (policy_.drop == &kKeepAll) return Reason::none;
    if (now_ >= j.deadline) return Reason::expired;
    return policy_.drop == &kProactiveDrop && now_ + d + m.after > j.deadline ? Reason::unreachable : Reason::none;
  }
  void serve() {
    for (std::size_t k = 0; k < modules_.size(); ++k) {
      Module& m = modules_[k];
      while (m.idle > 0 && !m.queue.empty() && start(k, m)) {
      }
    }
  }
  bool start(std::size_t k, Module& m) {
    const std::uint32_t cap = topology_.routes[k].batch;
    std::uint32_t waiting = 0, items = 0;
    for (const Job& j : m.queue) waiting += j.items;
    const std::uint32_t target = std::min(waiting, cap);
    const TimeNs d = run_ns(k, cap);
    Run run{.module = k, .end = 0, .token = 0, .jobs = {}};
    while (items < target && !m.queue.empty()) {
      const std::size_t i = pick(m);
      const Job job = m.queue[i];
      if (items + job.items > cap) break;
      m.queue.erase(m.queue.begin() + static_cast<std::ptrdiff_t>(i));
      if (const Reason reason = judge(m, job, d); reason != Reason::none) {
        const bool probe =
            policy_.drop == &kProactiveDrop && now_ - m.probed >= 100 * kMs && now_ + d + m.after_min <= job.deadline;
        if (!probe) {
          answer(job.token, Outcome::dropped, reason);
          continue;
        }
        m.probed = now_;
      }
      items += job.items;
      run.jobs.push_back(job);
    }
    if (policy_.order == By::hbf) {  // hopeless ones gather at the low end
      for (;;) {
        const auto low = std::min_element(m.queue.begin(), m.queue.end(),
                                          [](const Job& a, const Job& b) { return a.deadline < b.deadline; });
        if (low == m.queue.end()) break;
        const Reason reason = judge(m, *low, d);
        if (reason == Reason::none) break;
        answer(low->token, Outcome::dropped, reason);
        m.queue.erase(low);
      }
    }
    if (run.jobs.empty()) return false;
    --m.idle;
    run.end = now_ + run_ns(k, items);
    run.token = run.jobs.front().token;
    std::vector<std::uint64_t> tokens;
    for (const Job& j : run.jobs) tokens.push_back(j.token);
    history.batches[static_cast<ModuleId>(k)].emplace_back(now_, tokens);
    running_.push_back(std::move(run));
    return true;
  }

  const Topology& topology_;
  const WorkerQueues& policy_;
  std::vector<Module> modules_;
  std::vector<Run> running_;
  TimeNs now_ = 0;
};

// ---- the core, driven event by event ----

class Core {
 public:
  Core(const Topology& t, const Policy& p)
      : topology_(t), core_(t, p, {.streams = 2, .requests = 4096, .tasks = 4096, .batches = 64, .actions = 8192}) {
    for (PartitionId i = 0; i < t.partitions.size(); ++i) core_.partition_ready(0, i);
    stream_ = core_.open_stream(0, {.depth = 4096});
  }
  void submit(const Request& r, TimeNs now) {
    handles_[r.token] = core_.submit(
        now,
        {.stream = stream_, .token = r.token, .capture_ns = r.capture, .deadline_ns = r.deadline, .items = r.items});
    drain(now);
  }
  void cancel(std::uint64_t token, TimeNs now) {
    core_.cancel(now, handles_[token]);
    drain(now);
  }
  [[nodiscard]] TimeNs next() const {
    TimeNs at = core_.next_timer();
    for (const Run& r : running_) at = std::min(at, r.end);
    return at;
  }
  void advance(TimeNs now) {
    for (std::size_t i = first_ended(running_, now); i < running_.size(); i = first_ended(running_, now)) {
      const BatchHandle batch = running_[i].batch;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      (void)core_.stage_finished(now, batch, 0, {});
      drain(now);
    }
    core_.advance(now);
    drain(now);
    core_.audit();
  }
  History history;

 private:
  struct Run {
    BatchHandle batch;
    TimeNs end = 0;
    std::size_t module = 0;
    std::uint64_t token = 0;  // of its first task
  };
  void drain(TimeNs now) {
    for (Action a; core_.next_action(a);) {
      if (a.kind == ActionKind::answer) {
        EXPECT_TRUE(history.answers.emplace(a.token, Seen{now, a.outcome, a.reason}).second)
            << "core: answered twice: " << a.token;
        continue;
      }
      std::vector<std::uint64_t> tokens;
      std::uint32_t items = 0;
      for (const TaskRef& t : a.tasks) {
        tokens.push_back(t.token);
        items += t.items;
      }
      history.batches[a.module].emplace_back(now, tokens);
      core_.stage_started(now, a.batch, 0);
      running_.push_back(
          {a.batch, now + topology_.routes[a.route].stages[0].latency.p50_ns[items - 1], a.module, tokens.front()});
    }
  }

  const Topology& topology_;
  Scheduler core_;
  StreamId stream_ = 0;
  std::vector<Run> running_;
  std::map<std::uint64_t, RequestHandle> handles_;
};

template <class Subject>
History play(Subject subject, const std::vector<Request>& requests) {
  using Event = std::tuple<TimeNs, int, std::size_t>;  // arrivals before cancellations
  std::vector<Event> events;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    events.emplace_back(requests[i].at, 0, i);
    if (requests[i].cancel_at != kNever) events.emplace_back(requests[i].cancel_at, 1, i);
  }
  std::sort(events.begin(), events.end());
  std::size_t next = 0;
  for (;;) {
    const TimeNs own = subject.next(), outside = next < events.size() ? std::get<0>(events[next]) : kNever;
    if (own == kNever && outside == kNever) return std::move(subject.history);
    if (own <= outside) {
      subject.advance(own);
    } else if (const auto [at, kind, i] = events[next++]; kind == 0) {
      subject.submit(requests[i], at);
    } else {
      subject.cancel(requests[i].token, at);
    }
  }
}

std::vector<Request> draw_requests(std::mt19937_64& random, TimeNs slo, TimeNs gap, std::uint32_t max_items) {
  const auto below = [&](TimeNs n) { return static_cast<TimeNs>(random() % static_cast<std::uint64_t>(n)); };
  std::vector<Request> list(20 + static_cast<std::size_t>(below(130)));
  TimeNs at = kMs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    at += below(8) == 0 ? below(10 * gap) : below(gap);
    Request& r = list[i];
    r = {.token = i + 1,
         .at = at,
         .capture = std::max<TimeNs>(1, at - below(10 * kMs)),
         .deadline = 0,
         .items = 1 + static_cast<std::uint32_t>(below(max_items))};
    // Few distinct deadlines, so that some are equal.
    r.deadline = std::min(r.capture + slo, (at / kMs + 1 + below(1 + slo / kMs)) * kMs);
    if (below(16) == 0) r.cancel_at = at + below(slo);
  }
  return list;
}

TEST(Twin, EveryAnswerAndEveryBatchIsTheSame) {
  constexpr std::uint64_t kSeeds = 600;
  std::printf("seeds 1 to %llu\n", static_cast<unsigned long long>(kSeeds));
  std::size_t dropped = 0, completed = 0, late = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !::testing::Test::HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const TimeNs slo = static_cast<TimeNs>(30 + below(200)) * kMs;
    const std::uint32_t batch = 1 + static_cast<std::uint32_t>(below(8));
    Topology t = test::chain(1 + below(3), 1 + below(3), batch, static_cast<TimeNs>(below(12)) * kMs,
                             static_cast<TimeNs>(1 + below(6)) * kMs, slo);
    WorkerQueues p{.per_worker = false, .pard = {.wait = ProactiveDrop::Wait::lower}};
    p.order = std::array{By::fcfs, By::lbf, By::hbf}[below(3)];
    p.drop = std::array{&kKeepAll, &kDropExpired, &kProactiveDrop}[below(3)];
    p.pard.downstream = below(2) == 0 ? Downstream::none : Downstream::execution;
    Policy policy;
    use(p, policy);
    const std::vector<Request> requests =
        draw_requests(random, slo, static_cast<TimeNs>(1 + below(15)) * kMs, std::min<std::uint32_t>(batch, 3));
    const History twin = play(NaiveTwin(t, p), requests), core = play(Core(t, policy), requests);
    EXPECT_EQ(core.answers.size(), requests.size()) << "seed " << seed;
    for (const Request& r : requests) {
      if (!core.answers.contains(r.token) || !twin.answers.contains(r.token)) {
        ADD_FAILURE() << "seed " << seed << ", request " << r.token << " has no answer";
        continue;
      }
      const Seen &a = core.answers.at(r.token), &b = twin.answers.at(r.token);
      EXPECT_EQ(a, b) << "seed " << seed << ", request " << r.token << ": core " << a.at << " outcome "
                      << static_cast<int>(a.outcome) << " reason " << static_cast<int>(a.reason) << ", twin " << b.at
                      << " outcome " << static_cast<int>(b.outcome) << " reason " << static_cast<int>(b.reason);
      completed += a.outcome == Outcome::completed ? 1 : 0;
      late += a.outcome == Outcome::late ? 1 : 0;
      dropped += a.outcome == Outcome::dropped ? 1 : 0;
    }
    EXPECT_EQ(core.batches, twin.batches) << "seed " << seed;
  }
  std::printf("completed %zu, late %zu, dropped %zu\n", completed, late, dropped);
  EXPECT_GT(completed, 1000u);
  EXPECT_GT(late, 100u);
  EXPECT_GT(dropped, 1000u);
}

}  // namespace
}  // namespace leat::papers
