// Clients that ask when they are unsure (arise_world.h). Each asks by itself, between the plan's times; what is asked
// for waits with what is planned, and a partition that is free takes all of it, as many as a batch holds. The frame is
// the newest when it is sent, not when its batch starts.
#include <algorithm>
#include <deque>
#include <functional>
#include <queue>

#include "bench/coordinated/arise_parts.h"

namespace leat::bench {
namespace {

struct Client : Camera {
  bool in = false;
  std::uint32_t under_way = 0;
  TimeNs sent_ns = INT64_MIN / 2;
  Asks asks;
};

class AskingWorld {
 public:
  AskingWorld(const AriseCase& c, const CoordinatorSettings& settings)
      : c_(c),
        w_(c),
        coordinator_({std::vector(c.partitions, c.batch_ns)}, settings),
        clients_(settings.streams),
        running_(c.partitions),
        began_(c.partitions) {
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
      static_cast<Camera&>(clients_[i]) = w_.camera();
      const std::uint32_t id = coordinator_.open(0, {.sla_drop = clients_[i].sla, .pace = {.period_ns = kPeriod}});
      coordinator_.frame_clock(id, clients_[i].phase_ns, kPeriod);
      events_.push({clients_[i].taken(1), Kind::frame, i, 1});
    }
  }

  AriseResult run() {
    std::vector<PlannedBatch> due;
    for (TimeNs now = 0; now < w_.end_ns;) {
      coordinator_.tick(now);
      look(now);
      const TimeNs stop = std::min(w_.end_ns, coordinator_.next_tick());
      due.clear();
      for (const PlannedBatch& b : coordinator_.batches())
        if (b.start_ns >= now && b.start_ns < stop) due.push_back(b);
      for (std::uint32_t i = 0; i < due.size(); ++i) events_.push({due[i].start_ns, Kind::planned, i, 0});
      while (!events_.empty() && events_.top().at_ns < stop) {
        const Event e = events_.top();
        events_.pop();
        if (e.kind == Kind::frame) taken(e);
        if (e.kind == Kind::planned) planned(e.at_ns, coordinator_.members(due[e.who]));
        if (e.kind == Kind::done) done(e.at_ns, e.who);
        start(e.at_ns);
      }
      now = stop;
    }
    return result();
  }

 private:
  enum class Kind : std::uint8_t { done, planned, frame };  // a partition; a batch; of a camera
  struct Event {
    TimeNs at_ns;
    Kind kind;
    std::uint32_t who;
    std::int64_t frame;
    bool operator>(const Event& o) const {
      return at_ns != o.at_ns ? at_ns > o.at_ns : kind != o.kind ? kind > o.kind : who > o.who;
    }
  };
  struct Request {
    std::uint32_t client;
    std::int64_t frame;
  };

  // Who has come and who has gone.
  void look(TimeNs now) {
    for (std::uint32_t id = 0; id < clients_.size(); ++id) {
      Client& cam = clients_[id];
      const bool in = coordinator_.admitted(id);
      cam.asks = coordinator_.view(id).asks;
      if (in && w_.warm(now)) totals_.admitted_s += 1e-9 * static_cast<double>(coordinator_.settings().tick_ns);
      if (in == cam.in) continue;
      cam.in = in;
      if (in) continue;  // it begins with its first answer
      w_.show(cam, now);
      totals_.stay(cam);
      if (w_.warm(now)) out_.evictions += 1;
      cam.source = -1;
      cam.look = {};
      cam.in_window = cam.windows = cam.kept = 0;
      cam.lost = cam.lost_whole = 0;
    }
  }

  [[nodiscard]] double expected(const Client& cam, std::int64_t frame) const {
    return c_.table->expected(cam.offset + static_cast<std::uint64_t>(cam.source),
                              static_cast<std::uint64_t>(frame - cam.source));
  }
  void send(std::uint32_t id, std::int64_t frame, TimeNs now) {
    ++clients_[id].under_way;
    clients_[id].sent_ns = now;
    queue_.push_back({id, frame});
  }

  void taken(const Event& e) {
    Client& cam = clients_[e.who];
    events_.push({e.at_ns + kPeriod, Kind::frame, e.who, e.frame + 1});
    if (!cam.in || cam.asks.latest_ns == 0 || cam.under_way > 0 || cam.source < 0) return;
    const TimeNs since = e.at_ns - cam.sent_ns;
    if (since < cam.asks.earliest_ns) return;
    if (since < cam.asks.latest_ns && expected(cam, e.frame) < cam.asks.above) return;
    if (coordinator_.asked(e.at_ns, e.who)) send(e.who, e.frame, e.at_ns);
  }

  void planned(TimeNs now, std::span<const std::uint32_t> members) {
    std::uint32_t before = core::kNone;
    for (std::size_t m = 0; m < members.size(); ++m) {
      const std::uint32_t id = members[m];
      const Client& cam = clients_[id];
      const bool second = id == before, probe = m + 1 < members.size() && members[m + 1] == id;
      const bool soon = cam.under_way > 0 || (!probe && now - cam.sent_ns < cam.asks.latest_ns / 2);
      if (!cam.in || (cam.asks.latest_ns > 0 && !second && soon)) continue;
      if (const std::int64_t newest = cam.newest(now); newest >= 0 && (!second || cam.under_way > 0))
        send(id, second ? newest - 1 : newest, now);
      before = id;
    }
  }

  void start(TimeNs now) {
    for (std::uint32_t p = 0; p < c_.partitions && !queue_.empty(); ++p) {
      if (!running_[p].empty()) continue;
      const auto n = static_cast<std::ptrdiff_t>(std::min(queue_.size(), c_.batch_ns.size()));
      running_[p].assign(queue_.begin(), queue_.begin() + n);
      queue_.erase(queue_.begin(), queue_.begin() + n);
      began_[p] = now;
      events_.push({now + w_.run_ns(static_cast<std::uint32_t>(n)), Kind::done, p, 0});
    }
  }

  void done(TimeNs now, std::uint32_t partition) {
    std::vector<Request> batch;
    batch.swap(running_[partition]);
    if (w_.warm(began_[partition])) totals_.ran(now - began_[partition], batch.size());
    coordinator_.ran(0, partition, static_cast<std::uint32_t>(batch.size()), now - began_[partition], 0);
    // Of a probe the older frame first.
    std::sort(batch.begin(), batch.end(), [](const Request& a, const Request& b) {
      return a.client != b.client ? a.client < b.client : a.frame < b.frame;
    });
    for (const Request& r : batch) {
      Client& cam = clients_[r.client];
      if (cam.under_way > 0) --cam.under_way;
      if (!cam.in || r.frame <= cam.source) continue;
      w_.show(cam, now);
      const auto [stride, drop] = w_.compare(cam, cam.source, r.frame);
      if (stride > 0) coordinator_.observe(now, r.client, stride, drop, false, expected(cam, r.frame));
      if (const auto from = cam.look.answered(static_cast<std::uint64_t>(r.frame))) {
        const auto [far_stride, far_drop] = w_.compare(cam, static_cast<std::int64_t>(*from), r.frame);
        coordinator_.observe(now, r.client, far_stride, far_drop, true);
      }
      coordinator_.answered(now, r.client, cam.taken(r.frame));
      if (cam.source < 0) cam.next = std::max(cam.next, cam.first_at(now));
      cam.source = r.frame;
      if (w_.warm(now)) totals_.offloaded += 1;
    }
  }

  AriseResult result() {
    for (Client& cam : clients_) {
      if (!cam.in) continue;
      w_.show(cam, w_.end_ns);
      totals_.stay(cam);
    }
    return totals_.result(c_, std::move(out_));
  }

  const AriseCase& c_;
  World w_;
  Coordinator coordinator_;
  std::vector<Client> clients_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::deque<Request> queue_;
  std::vector<std::vector<Request>> running_;  // by partition
  std::vector<TimeNs> began_;
  Totals totals_;
  AriseResult out_;
};

}  // namespace

AriseResult run_asking(const AriseCase& c, const CoordinatorSettings& wanted) {
  CoordinatorSettings settings = wanted;
  settings.streams = crowd(c);
  return AskingWorld(c, settings).run();
}

}  // namespace leat::bench
