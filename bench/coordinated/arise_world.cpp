#include "bench/coordinated/arise_world.h"

#include <cmath>
#include <deque>
#include <limits>
#include <queue>

#include "bench/coordinated/arise_parts.h"

namespace leat::bench {

CoordinatorSettings arise_settings(Estimation estimation) {
  CoordinatorSettings s;
  s.reach = std::numeric_limits<double>::infinity();
  s.bend = s.hidden = 0;
  s.any_phase = false;
  s.common_batch = false;
  s.even = false;
  s.margin.on = false;
  s.estimator.kind = estimation;
  s.admit_room = 0;
  s.min_grace = s.grace;
  if (estimation == Estimation::ratio) s.probe_ns = 0;
  return s;
}

AriseResult run_coordinated(const AriseCase& c, const CoordinatorSettings& wanted) {
  World w(c);
  CoordinatorSettings settings = wanted;
  settings.streams = crowd(c);
  const bool ours = settings.estimator.kind == Estimation::line;  // the thesis's looks back over one answer
  Coordinator coordinator({std::vector(c.partitions, c.batch_ns)}, settings);
  std::vector<Camera> cameras(settings.streams);
  std::vector<std::uint8_t> in(settings.streams);
  for (Camera& cam : cameras) {
    cam = w.camera();
    const std::uint32_t id = coordinator.open(0, {.sla_drop = cam.sla, .pace = {.period_ns = kPeriod}});
    coordinator.frame_clock(id, cam.phase_ns, kPeriod);
  }
  struct Answer {
    TimeNs at_ns;
    std::uint32_t stream;
    std::int64_t frame;
    bool operator>(const Answer& o) const {
      return at_ns != o.at_ns ? at_ns > o.at_ns : stream != o.stream ? stream > o.stream : frame > o.frame;
    }
  };
  std::priority_queue<Answer, std::vector<Answer>, std::greater<>> answers;
  std::vector<TimeNs> free_ns(c.partitions);
  struct Run {
    core::PartitionId partition;
    std::uint32_t count;
    TimeNs end_ns, run_ns, late_ns;
  };
  std::vector<Run> runs;  // that have not been reported yet
  Totals totals;
  AriseResult out;
  double errors = 0;
  std::vector<PlannedBatch> due;
  for (TimeNs now = 0; now < w.end_ns;) {
    coordinator.tick(now);
    for (std::uint32_t id = 0; id < cameras.size(); ++id) {
      const bool is = coordinator.admitted(id);
      if (is) totals.admitted_s += w.warm(now) ? 1e-9 * static_cast<double>(settings.tick_ns) : 0;
      if (is == (in[id] != 0)) continue;
      in[id] = is ? 1 : 0;
      if (is) continue;  // it begins with its first answer
      w.show(cameras[id], now);
      totals.stay(cameras[id]);
      if (w.warm(now)) out.evictions += 1;
      Camera& cam = cameras[id];
      cam.source = -1;
      cam.look = {};
      cam.in_window = cam.windows = cam.kept = 0;
      cam.lost = cam.lost_whole = 0;
    }
    const TimeNs stop = std::min(w.end_ns, coordinator.next_tick());
    due.clear();
    for (const PlannedBatch& b : coordinator.batches())
      if (b.start_ns >= now && b.start_ns < stop) due.push_back(b);
    std::sort(due.begin(), due.end(),
              [](const PlannedBatch& a, const PlannedBatch& b) { return a.start_ns < b.start_ns; });
    for (const PlannedBatch& b : due) {
      const TimeNs start = std::max(b.start_ns, free_ns[b.partition]), end = start + w.run_ns(b.count);
      free_ns[b.partition] = end;
      runs.push_back({b.partition, b.count, end, end - start, start - b.start_ns});
      std::uint32_t before = core::kNone;
      for (const std::uint32_t id : coordinator.members(b)) {
        const std::int64_t newest = cameras[id].newest(b.start_ns);
        if (newest >= 0) answers.push({end, id, id == before ? newest - 1 : newest});
        before = id;
      }
      if (!w.warm(start)) continue;
      totals.ran(end - start, b.count);
      errors += static_cast<double>(start - b.start_ns);
    }
    // A probe's two frames come together: the older one first, then the newest is compared with one step behind it.
    while (!answers.empty() && answers.top().at_ns < stop) {
      const Answer a = answers.top();
      answers.pop();
      Camera& cam = cameras[a.stream];
      if (in[a.stream] == 0 || a.frame <= cam.source) continue;
      w.show(cam, a.at_ns);
      const auto [stride, drop] = w.compare(cam, cam.source, a.frame);
      if (stride > 0) coordinator.observe(a.at_ns, a.stream, stride, drop);
      if (const auto from = cam.look.answered(static_cast<std::uint64_t>(a.frame)); from && ours) {
        const auto [far_stride, far_drop] = w.compare(cam, static_cast<std::int64_t>(*from), a.frame);
        coordinator.observe(a.at_ns, a.stream, far_stride, far_drop, true);
      }
      coordinator.answered(a.at_ns, a.stream, cam.taken(a.frame));
      if (cam.source < 0) cam.next = std::max(cam.next, cam.first_at(a.at_ns));
      cam.source = a.frame;
      if (w.warm(a.at_ns)) totals.offloaded += 1;
    }
    std::erase_if(runs, [&](const Run& r) {
      if (r.end_ns > stop) return false;
      coordinator.ran(0, r.partition, r.count, r.run_ns, r.late_ns);
      return true;
    });
    now = stop;
  }
  for (std::uint32_t id = 0; id < cameras.size(); ++id) {
    if (in[id] == 0) continue;
    w.show(cameras[id], w.end_ns);
    totals.stay(cameras[id]);
  }
  out.start_error_ms = totals.batches == 0 ? 0 : 1e-6 * errors / totals.batches;
  return totals.result(c, std::move(out));
}

namespace {

AriseResult serve(const AriseCase& c, Reactive policy, Estimation estimation, std::uint32_t clients, Fixed fixed) {
  World w(c);
  const CoordinatorSettings ours;
  const StrideCurve curve = estimation == Estimation::ratio ? StrideCurve() : StrideCurve(ours.bend, ours.hidden);
  const Pace pace{.period_ns = kPeriod};
  EstimatorSettings estimator{.kind = estimation};
  std::vector<Camera> cameras(clients);
  struct Event {
    TimeNs at_ns;
    std::uint32_t kind;  // 0: a batch has ended, 1: a client sends
    std::uint32_t who;   // partition or client
    bool operator>(const Event& o) const {
      return at_ns != o.at_ns ? at_ns > o.at_ns : kind != o.kind ? kind > o.kind : who > o.who;
    }
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  for (std::uint32_t i = 0; i < clients; ++i) {
    cameras[i] = w.camera();
    cameras[i].estimator = DropEstimator(estimator);
    events.push({cameras[i].taken(static_cast<std::int64_t>(w.random.below(12))), 1, i});
  }
  MarginSettings margins;
  margins.on = estimation == Estimation::line;
  SharedMargin shared(margins);
  std::vector<Setting> settings(clients);
  const double reference = reference_mean(c.batch_ns[0], pace, 0.1, curve);
  const auto choose = [&](std::uint32_t i) {
    Camera& cam = cameras[i];
    const double margin = cam.margin.value(shared, cam.estimator.slope(), cam.estimator.settled(), margins);
    const double budget = cam.sla * (1 - margin) / cam.estimator.slope();
    const auto max = static_cast<std::uint32_t>(c.batch_ns.size());
    Setting s;
    switch (policy) {
      case Reactive::static_:
        s = {static_cast<double>(fixed.interval), std::min(max, fixed.batch), 0};
        break;
      case Reactive::clipper: {
        s = {static_cast<double>(fixed.interval), 1, 0};
        while (s.batch < max && longest_interval(frames_until_answer(c.batch_ns[s.batch], pace, 0), budget + reference,
                                                 curve) >= fixed.interval)
          ++s.batch;
        break;
      }
      case Reactive::chameleon:
        s = {std::max(1.0, static_cast<double>(longest_interval(frames_until_answer(c.batch_ns[0], pace, 0),
                                                                budget + reference, curve))),
             1, 0};
        break;
      case Reactive::arise_a:
        s = best_setting(c.batch_ns, pace, 0, budget, curve);
        break;
    }
    settings[i] = s;
  };
  struct Request {
    std::uint32_t client;
    std::int64_t frame;
  };
  std::deque<Request> queue;
  std::vector<std::vector<Request>> running(c.partitions);
  Totals totals;
  std::vector<TimeNs> began(c.partitions);
  const auto start = [&](TimeNs now) {
    for (std::uint32_t p = 0; p < c.partitions && !queue.empty(); ++p) {
      if (!running[p].empty()) continue;
      std::uint32_t n = 0, max = static_cast<std::uint32_t>(c.batch_ns.size());
      while (n < queue.size()) {
        max = std::min(max, settings[queue[n].client].batch);
        if (n + 1 > max) break;
        ++n;
      }
      running[p].assign(queue.begin(), queue.begin() + n);
      queue.erase(queue.begin(), queue.begin() + n);
      began[p] = now;
      events.push({now + w.run_ns(n), 0, p});
    }
  };
  while (!events.empty() && events.top().at_ns < w.end_ns) {
    const Event e = events.top();
    events.pop();
    if (e.kind == 1) {
      choose(e.who);
      // One that still waits is not sent twice: a newer frame takes its place.
      const std::int64_t frame = cameras[e.who].newest(e.at_ns);
      bool waits = false;
      for (Request& r : queue) {
        if (r.client != e.who) continue;
        r.frame = frame;
        waits = true;
      }
      if (!waits) queue.push_back({e.who, frame});
      events.push({cameras[e.who].taken(frame + static_cast<std::int64_t>(settings[e.who].interval)), 1, e.who});
    } else {
      if (w.warm(began[e.who])) totals.ran(e.at_ns - began[e.who], running[e.who].size());
      for (const Request& r : running[e.who]) {
        Camera& cam = cameras[r.client];
        if (r.frame <= cam.source) continue;
        w.show(cam, e.at_ns);
        const auto [stride, drop] = w.compare(cam, cam.source, r.frame);
        if (stride > 0) {
          cam.estimator.observe(e.at_ns, stride, drop, curve);
          cam.meter.observed(stride, cam.estimator.loss(drop), curve);
        }
        if (const auto lost = cam.meter.answered(e.at_ns, cam.taken(r.frame), kPeriod, reference, curve)) {
          cam.margin.measured(shared, lost->slope, cam.estimator.slope(), cam.estimator.settled(), margins);
        }
        if (cam.source < 0) cam.next = std::max(cam.next, cam.first_at(e.at_ns));
        cam.source = r.frame;
        if (w.warm(e.at_ns)) totals.offloaded += 1;
      }
      running[e.who].clear();
    }
    start(e.at_ns);
  }
  for (Camera& cam : cameras) {
    w.show(cam, w.end_ns);
    totals.stay(cam);
  }
  totals.admitted_s = clients * (c.seconds - c.warm_up_s);
  const bool any = totals.stays > 0;
  AriseResult out = totals.result(c);
  out.within = any ? totals.served / clients : 0;
  out.windows_within = any ? out.windows_within : 0;
  out.clients = clients;
  return out;
}

}  // namespace

AriseResult run_reactive(const AriseCase& c, Reactive policy, Estimation estimation, Fixed& chosen) {
  std::vector<Fixed> choices = {chosen};
  if (chosen.interval == 0 && (policy == Reactive::static_ || policy == Reactive::clipper)) {
    choices.clear();
    for (const std::uint32_t interval : {3u, 4u, 6u, 8u, 12u, 18u, 27u}) {
      if (policy == Reactive::clipper) choices.push_back({interval, 0});
      for (const std::uint32_t batch : {2u, 4u, 8u, 16u})
        if (policy == Reactive::static_ && batch <= c.batch_ns.size()) choices.push_back({interval, batch});
    }
  }
  AriseResult best;
  std::uint32_t max = 0;  // clients held with the best choice so far
  for (const Fixed fixed : choices) {
    const auto held = [&](std::uint32_t n) {
      AriseResult r = serve(c, policy, estimation, n, fixed);
      const bool holds = r.windows_within >= kServed;
      if (holds && n > max) {
        max = n;
        best = std::move(r);
        chosen = fixed;
      }
      return holds;
    };
    // Few clients are few seconds, and a crowd may hold an interval down that runs away where there is room: one number
    // may fail where a larger one holds, so three must fail in a row, and all up to the crowd that ours are offered
    // where there are no fixed settings to try. Only what beats the best choice so far is of interest.
    std::uint32_t low = max, high = 0, failed = 0;
    for (std::uint32_t n = max + 1; (failed < 3 || (choices.size() == 1 && n < crowd(c))) && n < 4000;
         n += std::max(1u, n / 4)) {
      if (held(n)) {
        low = n;
        failed = 0;
      } else if (failed++ == 0) {
        high = n;
      }
    }
    while (high > low + 1) {
      const std::uint32_t middle = (low + high) / 2;
      (held(middle) ? low : high) = middle;
    }
  }
  return best;
}

double estimator_error(const DropTable& table, Estimation estimation) {
  const CoordinatorSettings ours;
  const StrideCurve curve = estimation == Estimation::ratio ? StrideCurve() : StrideCurve(ours.bend, ours.hidden);
  constexpr std::uint32_t kIntervals[] = {4, 8, 12, 16, 24}, kFirst = 2;
  const auto period = static_cast<TimeNs>(1e9 / table.fps);
  const auto probe_every = static_cast<std::uint64_t>(1.5 * table.fps);
  double error = 0;
  for (const std::uint32_t interval : kIntervals) {
    DropEstimator e({.kind = estimation});
    double estimated = 0, lost = 0;
    std::uint32_t answers = 0;
    for (std::uint64_t f = 0, probe = 0; f + interval < 3 * table.frames; f += interval) {
      const auto now = static_cast<TimeNs>(f + interval) * period;
      e.observe(now, interval, std::clamp(table.observed(f, interval), 0.0, 1.0), curve);
      if (estimation == Estimation::line && f >= probe) {
        e.observe(now, 1, std::clamp(table.observed(f + interval - 1, 1), 0.0, 1.0), curve);
        probe = f + probe_every;
      }
      if (f < table.frames) continue;  // it has to learn first
      ++answers;
      estimated += e.slope() * (curve.mean(kFirst, interval) - curve.at(1));
      for (std::uint32_t s = kFirst; s < kFirst + interval; ++s)
        lost += (table.extra(f, s) - table.extra(f + s - 1, 1)) / interval;
    }
    error += std::abs(estimated - lost) / answers / static_cast<double>(std::size(kIntervals));
  }
  return error;
}

}  // namespace leat::bench
