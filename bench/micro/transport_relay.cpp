#include "bench/micro/transport_relay.h"

#include <poll.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "bench/serving/leatd_child.h"
#include "leat/client.hpp"
#include "shm/src/protocol/descriptors.h"
#include "shm/src/rings/ring.h"
#include "shm/src/rings/wait_policy.h"

namespace leat::bench {
namespace {

using shm::SubmissionDescriptor;
constexpr std::uint32_t kRelayCapacity = 256;
constexpr std::uint32_t kRelayTrips = 300;  // a round

// The mean of the middle eighty percent: a trip takes one yield more or one less by chance, so a median jumps between
// the two, while a mean over all would show whatever else the host does.
double middle_mean(std::vector<double> trips) {
  std::sort(trips.begin(), trips.end());
  const std::size_t cut = trips.size() / 10;
  double sum = 0;
  for (std::size_t i = cut; i < trips.size() - cut; ++i) sum += trips[i];
  return sum / static_cast<double>(trips.size() - 2 * cut);
}

// One direction between two processes.
struct Hop {
  explicit Hop(Shared& memory)
      : cells(memory.take<SubmissionDescriptor>(kRelayCapacity)), index(memory.take<shm::IndexLine>()) {}
  shm::RingProducer<SubmissionDescriptor> producer() const { return {cells, kRelayCapacity, index}; }
  shm::RingConsumer<SubmissionDescriptor> consumer() const { return {cells, kRelayCapacity, index}; }
  SubmissionDescriptor* cells;
  shm::IndexLine* index;
};

// What one process sleeps on.
struct Bed {
  explicit Bed(Shared& memory)
      : word(memory.take<shm::SleepWord>()), bell(std::move(shm::Doorbell::create()).value()) {}
  template <class Empty>
  void park(const Empty& empty) const {
    if (shm::may_sleep([this] { shm::announce_sleep(*word); }, empty)) {
      pollfd p{bell.fd(), POLLIN, 0};
      static_cast<void>(::poll(&p, 1, -1));
      bell.drain();
    }
    shm::announce_awake(*word);
  }
  shm::SleepWord* word;
  shm::Doorbell bell;
};

struct Relay {
  explicit Relay(Shared& m) : submit(m), dispatch(m), report(m), answer(m), client(m), scheduler(m), worker(m) {}
  Hop submit, dispatch, report, answer;
  Bed client, scheduler, worker;
};

void run_scheduler(const Relay& r, const shm::WaitPolicy& policy) {
  auto submissions = r.submit.consumer(), reports = r.report.consumer();
  auto dispatches = r.dispatch.producer(), answers = r.answer.producer();
  shm::Waker client(r.client.word), worker(r.worker.word);
  shm::Waiter waiter(policy);
  SubmissionDescriptor d;
  std::uint64_t in_flight = 0;
  for (;;) {
    bool worked = false;
    if (reports.pop(d)) {
      static_cast<void>(answers.push(d));
      --in_flight;
      worked = true;
      if (client.should_ring()) r.client.bell.ring();
    }
    if (submissions.pop(d)) {
      static_cast<void>(dispatches.push(d));
      ++in_flight;
      worked = true;
      if (worker.should_ring()) r.worker.bell.ring();
    }
    if (worked) {
      waiter.reset();
    } else if (waiter.should_park(in_flight != 0)) {
      r.scheduler.park([&] { return submissions.empty() && reports.empty(); });
      waiter.reset();
    }
  }
}

void run_worker(const Relay& r, const shm::WaitPolicy& policy) {
  auto dispatches = r.dispatch.consumer();
  auto reports = r.report.producer();
  shm::Waker scheduler(r.scheduler.word);
  shm::Waiter waiter(policy);
  SubmissionDescriptor d;
  for (;;) {
    if (dispatches.pop(d)) {
      static_cast<void>(reports.push(d));
      if (scheduler.should_ring()) r.scheduler.bell.ring();
      waiter.reset();
    } else if (waiter.should_park(false)) {
      r.worker.park([&] { return dispatches.empty(); });
      waiter.reset();
    }
  }
}

class RelayClient {
 public:
  RelayClient(const Relay& r, const shm::WaitPolicy& policy)
      : r_(r),
        submissions_(r.submit.producer()),
        answers_(r.answer.consumer()),
        scheduler_(r.scheduler.word),
        waiter_(policy) {}
  double round() {
    std::vector<double> trips(kRelayTrips);
    for (double& trip : trips) {
      SubmissionDescriptor d;
      d.capture_ns = shm::monotonic_ns();
      static_cast<void>(submissions_.push(d));
      if (scheduler_.should_ring()) r_.scheduler.bell.ring();
      waiter_.reset();
      while (!answers_.pop(d))
        if (waiter_.should_park(true)) r_.client.park([&] { return answers_.empty(); });
      trip = static_cast<double>(shm::monotonic_ns() - d.capture_ns);
    }
    return middle_mean(std::move(trips));
  }

 private:
  const Relay& r_;
  shm::RingProducer<SubmissionDescriptor> submissions_;
  shm::RingConsumer<SubmissionDescriptor> answers_;
  shm::Waker scheduler_;
  shm::Waiter waiter_;
};

// leatd with one emulated module of no time.
Result<std::unique_ptr<LeatdChild>> start_leatd(const Cores& cores, const std::string& leatd) {
  return LeatdChild::start(
      leatd, "scheduler_core = " + std::to_string(cores.far) +
                 "\n[[partition]]\nname = \"p\"\nkind = \"cpu\"\ncores = \"" + std::to_string(cores.near) +
                 "\"\n[[application]]\nname = \"nothing\"\nslo_ms = 1000\n"
                 "[[application.module]]\nname = \"zero\"\nexecutor = \"emulated\"\nbatch = 1\nlatency_ms = [0.0]\n");
}

struct PathClient {
  leat_client* client = nullptr;
  leat_stream* stream = nullptr;
  ~PathClient() { leat_disconnect(client); }

  // Tries until leatd serves; it needs a moment to start its worker.
  Status open(LeatdChild& daemon) {
    const std::string socket = daemon.socket();
    const std::int64_t until = shm::monotonic_ns() + 20'000'000'000;
    leat_connect_options c{};
    c.socket = socket.c_str();
    c.wait = LEAT_WAIT_YIELD;
    StreamOptions o;
    o.application = "nothing";
    o.format = LEAT_FORMAT_gray8;
    o.width = 16;
    o.height = 4;
    o.overload = LEAT_OVERLOAD_fifo;
    while (daemon.alive() && shm::monotonic_ns() < until) {
      if (client == nullptr) static_cast<void>(leat_connect(&c, &client));
      if (client != nullptr && stream == nullptr) static_cast<void>(leat_open_stream(client, &o, &stream));
      if (stream != nullptr && trip().has_value()) return Done{};
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Error{std::string("leatd did not serve: ") + leat_last_error()};
  }
  // Nanoseconds from submit to answer; empty: it was not completed.
  std::optional<double> trip() {
    leat_frame frame;
    if (leat_acquire(stream, &frame) != LEAT_ERROR_ok) return std::nullopt;
    leat_submit_options o{};
    o.capture_ns = shm::monotonic_ns();
    if (leat_submit(&frame, &o, nullptr) != LEAT_ERROR_ok) return std::nullopt;
    leat_answer answer;
    if (leat_next_answer(client, 5'000'000'000, &answer) != LEAT_ERROR_ok) return std::nullopt;
    const auto rtt = static_cast<double>(shm::monotonic_ns() - o.capture_ns);
    const bool completed = answer.outcome == LEAT_OUTCOME_completed;
    leat_release(&answer);
    return completed ? std::optional(rtt) : std::nullopt;
  }
  Result<double> round() {
    std::vector<double> trips;
    for (std::uint32_t i = 0; i < kRelayTrips; ++i) {
      const auto rtt = trip();
      if (!rtt) return Error{std::string("a frame was not completed by leatd: ") + leat_last_error()};
      trips.push_back(*rtt);
    }
    return middle_mean(std::move(trips));
  }
};

}  // namespace

Result<PathFigures> measure_path(const Cores& cores, double seconds, const std::string& leatd) {
  Shared memory(1 << 20);
  const Relay relay(memory);
  const std::uint32_t count = 2;  // the two this benchmark uses, however many there are
  const shm::WaitPolicy spin = shm::choose_wait_policy(shm::Role::scheduler, count, true, true);
  const shm::WaitPolicy tiny = shm::choose_wait_policy(shm::Role::worker, count, false, true);
  const auto scheduler = start_pinned(cores.far, [&] { run_scheduler(relay, spin); });
  const auto worker = start_pinned(cores.near, [&] { run_worker(relay, tiny); });
  auto daemon = start_leatd(cores, leatd);
  if (!daemon) return Error{daemon.error()};
  pin(cores.near);
  RelayClient bare(relay, tiny);
  PathClient path;
  if (Status opened = path.open(**daemon); !opened) return Error{opened.error()};

  PathFigures f;
  std::vector<double> relays, paths, over;
  bare.round();
  const std::int64_t until = shm::monotonic_ns() + static_cast<std::int64_t>(seconds * 1e9);
  double before = bare.round();
  while (shm::monotonic_ns() < until || over.empty()) {
    const Result<double> here = path.round();
    if (!here) return Error{here.error()};
    const double after = bare.round();
    if (std::max(before, after) <= 1.25 * std::min(before, after) || (shm::monotonic_ns() >= until && over.empty())) {
      relays.push_back((before + after) / 2);
      paths.push_back(*here);
      over.push_back(paths.back() / relays.back());
    } else {
      ++f.dropped;
    }
    before = after;
  }
  f.relay_rtt_ns = figure(relays);
  f.path_rtt_ns = figure(paths);
  f.path_over_relay = figure(over);
  return f;
}

}  // namespace leat::bench
