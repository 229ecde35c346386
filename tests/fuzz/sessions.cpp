// The control protocol beyond its first message: several connections of several users at once, beside an honest client,
// against leatd's own acceptor, sessions, streams and scheduler loop (stepped_leatd.h). The input is a programme: moves
// of eight bytes that connect, speak in plausible and implausible order, pass descriptors of every kind, write into the
// rings, tamper with their memory and leave half-way, and turns of leatd's threads in between. Whatever they are:
//   * the process goes on, and its descriptors stay within what its sessions and streams need;
//   * every submission is answered once, and the honest client is served within a bounded number of turns;
//   * when all have left nobody has anything, and every descriptor passed has been given back.
#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tests/fuzz/stepped/peer.h"
#include "tests/fuzz/stepped/seams.h"
#include "tests/fuzz/stepped/stepped_leatd.h"

namespace leat::fuzz {
namespace {

constexpr std::size_t kPeers = 6, kMaxMoves = 192, kMovesBetweenCounts = 16;
constexpr std::uint32_t kRoundsToServe = 300, kRoundsToLeave = 400, kRoundsToStop = 40;
constexpr std::int64_t kPatienceNs = 10'000'000'000;
constexpr std::int64_t kWhileLeavingNs = 20'000'000;
constexpr uid_t kUsers[] = {kUser, kUser, kSmallUser, kSmallUser, kStranger, 0};

enum class Move : std::uint8_t {
  arrive,  // all that leads to an open stream and its first frame, and leatd's turns in between
  connect,
  hello,
  read,
  mapped,
  open,
  close,
  observe,
  status,
  junk,   // a message of any type
  again,  // the last message, several times
  ring,
  submit,
  submit_changed,
  cancel,
  report,
  poke,
  take_answers,
  sleep,
  tamper,
  half_close,
  leave_memory,
  hang_up,
  control,
  schedule,
  round,
  later,
  worker,
  pools,  // how many steps jobs get in a round from now on
  honest,
  count_
};

struct Step {
  Move what;
  std::uint8_t who;
  std::uint16_t a, b;
  std::uint8_t load, kind;
};
static_assert(sizeof(Step) == 8);

// How far inputs came, all together, and what leatd's threads did meanwhile.
struct Figures {
  std::uint64_t inputs = 0, moves = 0;
  std::uint64_t connected = 0, greeted = 0, secured = 0, opened = 0, answered = 0;  // inputs that reached it
  std::uint64_t passed = 0, refused = 0;                                            // messages with descriptors
  std::uint64_t honest = 0, honest_completed = 0;                                   // frames

  ~Figures() {
    if (inputs == 0) return;
    const auto share = [&](std::uint64_t n) { return 100.0 * static_cast<double>(n) / static_cast<double>(inputs); };
    std::fprintf(
        stderr,
        "sessions: %llu inputs, %.1f moves each; reached: connected %.0f %%, greeted %.0f %%, secured %.0f %%, "
        "stream open %.0f %%, frame answered %.0f %%\n",
        ull(inputs), static_cast<double>(moves) / static_cast<double>(inputs), share(connected), share(greeted),
        share(secured), share(opened), share(answered));
    std::fprintf(stderr,
                 "sessions: honest frames answered %llu, completed %llu; messages with descriptors %llu, %llu "
                 "refused by the kernel\n",
                 ull(honest), ull(honest_completed), ull(passed), ull(refused));
    say("control", SteppedLeatd::figures_of_control());
    say("scheduler", SteppedLeatd::figures_of_scheduler());
  }

 private:
  static unsigned long long ull(std::uint64_t n) { return n; }
  static void say(const char* thread, const TurnFigures& f) {
    std::fprintf(stderr,
                 "sessions: %s thread: %llu turns, waited %llu times, %.1f "
                 "ms at most\n",
                 thread, ull(f.turns), ull(f.waited), static_cast<double>(f.longest_wait_ns) / 1e6);
  }
};
Figures& figures() {
  static Figures all;
  return all;
}

std::size_t open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  insist(folder != nullptr, "no /proc");
  std::size_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  (void)closedir(folder);
  return count;
}

class Run {
 public:
  explicit Run(std::size_t descriptors) : before_(descriptors), leatd_(passed_) {
    honest_.connect(SteppedLeatd::path(), kHonestUser, 1);
    shm::OpenStream open = honest_.open(0, 0);
    open.settings.depth = open.pool.slots = 8;
    lead_to_stream(honest_, open);
    insist(honest_.open_streams() == 1, "an honest client without its stream");
  }

  void step(const Step& s) {
    Peer& peer = peers_[s.who % kPeers];
    const Burden burden = burden_of(s);
    switch (s.what) {
      case Move::arrive:
        return arrive(peer, s);
      case Move::connect:
        return peer.connect(SteppedLeatd::path(), kUsers[s.who % kPeers], 100 + s.a % 3);
      case Move::hello: {
        shm::Hello m;
        m.role = s.a % 4 == 0 ? shm::PeerRole::observer : shm::PeerRole::client;
        shm::set_text(m.name, "fuzz");
        return peer.say(m, burden, passed_);
      }
      case Move::read:
        return peer.read();
      case Move::mapped: {
        shm::Mapped m;
        if (s.a != 0) m.stream = peer.granted(s.a - 1U);
        return peer.say(m, burden, passed_);
      }
      case Move::open:
        return peer.say(peer.open(s.a, s.b), burden, passed_);
      case Move::close: {
        shm::CloseStream m;
        m.stream = peer.granted(s.a);
        return peer.say(m, burden, passed_);
      }
      case Move::observe:
        return peer.say(shm::Observe{}, burden, passed_);
      case Move::status:
        return peer.say(shm::StatusRequest{}, burden, passed_);
      case Move::junk: {
        Burden junk = burden;
        junk.changes = 1 + s.a % 8;
        std::uint32_t left = s.a % shm::kMessages;
        shm::for_each_message([&](const auto& message) {
          if (left-- == 0) peer.say(message, junk, passed_);
        });
        return;
      }
      case Move::again:
        return peer.again(s.a % 64, burden, passed_);
      case Move::ring:
        return peer.ring(s.a % 2048, burden, passed_);
      default:
        return silent(s, peer);
    }
  }

  void count_descriptors() {
    std::size_t own = passed_.held() + honest_.descriptors();
    for (const Peer& p : peers_) own += p.descriptors();
    insist(open_descriptors() <= before_ + own + leatd_.max_descriptors(), "more descriptors than are accounted for");
  }

  void end(bool stopped) {
    leatd_.let_jobs_run(UINT32_MAX);
    serve_honest();
    for (std::uint32_t i = 0; i < kRoundsToServe && !all_answered(); ++i) {
      leatd_.round();
      for (Peer& p : peers_) p.read(), p.take_answers();
    }
    insist(all_answered(), "a submission without an answer");
    note();
    honest_answers_ = honest_.answers, honest_completed_ = honest_.completed;
    if (stopped) leatd_.stop();
    for (Peer& p : peers_) p.hang_up();
    insist(stopped || !honest_.ended(), "an honest client was disconnected");
    honest_.hang_up();
    const std::uint32_t rounds = stopped ? kRoundsToStop : kRoundsToLeave;  // nobody counts what a stopped leatd has
    // The kernel looks for sockets that lie in nobody's hands but their own queues on a thread of its own, whenever
    // that is run: only real time brings it.
    const std::int64_t patience_ns = real_time_ns() + kPatienceNs;
    const auto waits = [&](std::uint32_t i) { return i < rounds || (!stopped && real_time_ns() < patience_ns); };
    for (std::uint32_t i = 0; waits(i) && !(leatd_.empty() && passed_.held() == 0); ++i) {
      if (i >= rounds) sched_yield();
      leatd_.later(kWhileLeavingNs);
      leatd_.round();
      for (core::PartitionId p = 0; p < kPartitions && i % 16 == 15; ++p) leatd_.lose(p);
    }
    insist(stopped || leatd_.empty(), ("clients that never leave: there is still " + leatd_.left()).c_str());
    insist(passed_.held() == 0, "a descriptor that was passed and never given back");
    insist_on_ledger();
  }

 private:
  static Burden burden_of(const Step& s) {
    Burden out;
    out.count = (s.load & 4) != 0 ? 1 + s.load % 4 : 0;
    for (std::size_t i = 0; i < out.count; ++i)
      out.kinds[i] = static_cast<Kind>((s.kind + 5 * i) % static_cast<std::size_t>(Kind::count_));
    out.changes = (s.load & 8) != 0 ? 1 + s.load / 16 % 4 : 0;
    out.seed = s.b;
    return out;
  }

  void silent(const Step& s, Peer& peer) {
    std::array<std::uint64_t, 4> drawn;
    for (std::uint64_t i = 0, draw = std::uint64_t{s.a} << 16 | s.b; i < drawn.size(); ++i)
      drawn[i] = draw = mixed(draw);
    Reader in(reinterpret_cast<const std::uint8_t*>(drawn.data()), sizeof drawn);
    switch (s.what) {
      case Move::submit:
        for (std::uint32_t i = 0; i <= s.b % 8U; ++i) peer.submit(s.a, leatd_.now(), nullptr);
        return;
      case Move::submit_changed:
        return peer.submit(s.a, leatd_.now(), &in);
      case Move::cancel:
        return peer.cancel();
      case Move::report:
        return peer.report(s.a, s.b);
      case Move::poke:
        return peer.poke_uplink(in);
      case Move::take_answers:
        return peer.take_answers();
      case Move::sleep:
        return peer.announce_sleep();
      case Move::tamper:
        return peer.tamper(s.a);
      case Move::half_close:
        return peer.half_close(s.a % 2 != 0);
      case Move::leave_memory:
        return peer.leave_memory();
      case Move::hang_up:
        note();
        return peer.hang_up();
      case Move::control:
        return leatd_.control();
      case Move::schedule:
        return leatd_.schedule(s.a % 2 != 0);
      case Move::round:
        for (std::uint32_t i = 0; i <= s.a % 4U; ++i) leatd_.round();
        return;
      case Move::later:
        return leatd_.later(std::int64_t{s.a} * 100'000);
      case Move::worker:
        if (s.a % 4 == 0) return leatd_.lose(s.b % kPartitions);
        return leatd_.work(s.b % kPartitions, s.a % 4 == 1 ? &in : nullptr);
      case Move::pools:
        return leatd_.let_jobs_run(s.a % 4 == 0 ? UINT32_MAX : s.a % 4 - 1U);
      default:
        return serve_honest();
    }
  }

  template <class M>
  void ask(Peer& peer, const M& message) {
    peer.say(message, {}, passed_);
    for (int i = 0; i < 2; ++i) leatd_.round();
    peer.read();
  }
  void lead_to_stream(Peer& peer, const shm::OpenStream& open) {
    shm::Hello hello;
    shm::set_text(hello.name, "fuzz");
    ask(peer, hello);
    ask(peer, shm::Mapped{});
    ask(peer, open);
    shm::Mapped mapped;
    mapped.stream = peer.granted(0);
    if (mapped.stream != shm::kLinks) ask(peer, mapped);
  }
  void arrive(Peer& peer, const Step& s) {
    if (peer.open_streams() != 0) return;
    note();
    peer.connect(SteppedLeatd::path(), kUsers[s.who % kPeers], 100 + s.a % 3);
    lead_to_stream(peer, peer.open(s.a, s.b));
    peer.submit(0, leatd_.now(), nullptr);
  }

  void serve_honest() {
    for (std::uint32_t i = 0; i < 2; ++i) honest_.submit(0, leatd_.now(), nullptr);
    for (std::uint32_t i = 0; i < kRoundsToServe && honest_.unanswered() != 0; ++i) {
      leatd_.round();
      honest_.take_answers();
    }
    insist(honest_.unanswered() == 0, "an honest frame without an answer");
    insist(!honest_.ended(), "an honest client was disconnected");
  }

  [[nodiscard]] bool all_answered() const {
    return std::ranges::all_of(peers_,
                               [](const Peer& p) { return p.unanswered() == 0 || !p.honest_rings() || p.ended(); });
  }

  // How far this input has come.
  void note() {
    for (const Peer& p : peers_) {
      connected_ |= p.connected();
      greeted_ |= p.greeted();
      secured_ |= p.secured();
      opened_ |= p.open_streams() != 0;
      answered_ |= p.answers != 0;
    }
  }

 public:
  void add_to(Figures& all) {
    ++all.inputs;
    all.connected += connected_, all.greeted += greeted_, all.secured += secured_, all.opened += opened_;
    all.answered += answered_;
    all.passed += passed_.sent, all.refused += passed_.refused;
    all.honest += honest_answers_, all.honest_completed += honest_completed_;
  }

 private:
  std::size_t before_;
  Passed passed_;
  SteppedLeatd leatd_;
  Peer honest_;
  std::array<Peer, kPeers> peers_;
  bool connected_ = false, greeted_ = false, secured_ = false, opened_ = false, answered_ = false;
  std::uint64_t honest_answers_ = 0, honest_completed_ = 0;
};

// ---- seeds ----

class Programme {
 public:
  Programme& operator()(Move what, std::uint8_t who, std::uint16_t a = 0, std::uint16_t b = 0, std::uint8_t load = 0,
                        std::uint8_t kind = 0) {
    const Step s{what, who, a, b, load, kind};
    text_.append(reinterpret_cast<const char*>(&s), sizeof s);
    return *this;
  }
  // A move, what leatd makes of it, and its reply. `kind`: with such a descriptor and three others.
  Programme& ask(Move what, std::uint8_t who, std::uint16_t a = 0, std::uint16_t b = 0, std::uint8_t load = 0,
                 std::uint8_t kind = 0) {
    return (*this)(what, who, a, b, load, kind)(Move::round, 0, 1)(Move::read, who);
  }
  Programme& client(std::uint8_t who, std::uint16_t what = 0, std::uint16_t how = 0) {
    (*this)(Move::connect, who);
    return ask(Move::hello, who, 1).ask(Move::mapped, who).ask(Move::open, who, what, how).ask(Move::mapped, who, 1);
  }
  Programme& frames(std::uint8_t who) { return (*this)(Move::submit, who)(Move::round, 0, 3)(Move::take_answers, who); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

constexpr std::uint8_t kTwo = 4 | 1, kFour = 4 | 3;  // so many descriptors with a message
constexpr std::uint16_t kCoordinated = 1 | 1 << 12, kTensors = 2;

std::uint8_t number(Kind kind) { return static_cast<std::uint8_t>(kind); }

void insist_on_reach() {
  const Figures& f = figures();
  insist(f.connected != 0 && f.greeted != 0 && f.secured != 0, "seeds that do not get past the handshake");
  insist(f.opened != 0 && f.answered != 0, "seeds without an open stream, or without an answered frame");
  insist(f.passed + f.refused != 0, "seeds that pass no descriptors");
  insist(f.honest == f.honest_completed, "an honest frame that was not completed beside the seeds");
}
const bool kLooksAtReach = (after_seeds = insist_on_reach) != nullptr;

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  const auto add = [&](const Programme& p) { out.push_back(p.text()); };
  add(Programme().client(0).frames(0).ask(Move::close, 0).ask(Move::hang_up, 0));
  add(Programme()(Move::arrive, 0).frames(0)(Move::arrive, 2).frames(2)(Move::hang_up, 0)(Move::round, 0));
  add(Programme()
          .client(0, kCoordinated)
          .frames(0)(Move::report, 0, 0, 0x801)
          .frames(0)
          .client(1, kTensors)
          .frames(1)(Move::honest, 0)
          .frames(0));
  add(Programme().client(1)(Move::sleep, 1).frames(1)(Move::cancel, 1)(Move::round, 0)(Move::hang_up, 1));
  for (std::uint8_t kind = 0; kind < number(Kind::count_); kind = static_cast<std::uint8_t>(kind + 4))
    add(Programme()
            .client(0)
            .ask(Move::status, 0, 0, 0, kFour, kind)(Move::ring, 0, 0, 0, kFour, static_cast<std::uint8_t>(kind + 1))
            .frames(0)
            .ask(Move::close, 0, 0, 0, kTwo, static_cast<std::uint8_t>(kind + 2)));
  add(Programme()(Move::connect, 0).ask(Move::hello, 0, 0, 0, kTwo, number(Kind::lingering)).frames(0));
  add(Programme()(Move::connect, 0)
          .ask(Move::hello, 0, 0)
          .ask(Move::observe, 0)
          .ask(Move::status, 0)(Move::again, 0, 40)(Move::round, 0)(Move::later, 0, 9999)(Move::round, 0));
  // Replies that nobody reads, and the only other end of the connection in what it has sent.
  for (const auto then : {Move::observe, Move::hello})
    add(Programme()(Move::connect, 0)(Move::hello, 0, 1)(Move::round, 0)(then, 0, 1)(
        Move::status, 0, 0, 0, 4, number(Kind::own_connection))(Move::hang_up, 0)(Move::round, 0)(Move::honest, 0));
  Programme small;
  for (std::uint8_t who = 2; who < kPeers; ++who) small.client(who, static_cast<std::uint16_t>(0x200 | 1 << 10));
  add(small.frames(2).frames(3)(Move::connect, 2, 1)(Move::round, 0)(Move::hello, 3, 2)(Move::round, 0));
  add(Programme()(Move::connect, 0)
          .ask(Move::hello, 0, 1)(Move::tamper, 0, 0)
          .ask(Move::mapped, 0)
          .client(1)(Move::tamper, 1, 3)(Move::tamper, 1, 2)
          .frames(1)(Move::leave_memory, 1)(Move::round, 0));
  add(Programme()(Move::pools, 0, 2)
          .client(0)(Move::round, 0, 3)
          .ask(Move::open, 0, 0, 10)(Move::hang_up, 0)(Move::pools, 0, 1)(Move::honest, 0)(Move::pools, 0, 0));
  add(Programme().client(0)(Move::submit, 0, 0, 7)(Move::schedule, 0)(Move::half_close, 0, 1)(Move::worker, 0, 0)(
      Move::round, 0)(Move::worker, 0, 1, 1)(Move::hang_up, 0)(Move::round, 0));
  add(Programme()
          .client(0)
          .client(1)(Move::submit_changed, 0, 3, 3)(Move::round, 0)(Move::poke, 1, 5, 5)(Move::round, 0)(
              Move::junk, 1, 3)(Move::round, 0)
          .client(0)(Move::hello, 0, 1, 0, 8)(Move::round, 0));
  return out;
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat::fuzz;
  static const bool kPrepared = [] {
    Passed::prepare();
    Passed passed;
    const SteppedLeatd leatd(passed);
    return true;
  }();
  (void)kPrepared;
  const std::size_t before = open_descriptors();
  {
    Run run(before);
    Step s{};
    std::size_t moves = 0;
    for (; moves < kMaxMoves && size >= (moves + 1) * sizeof s; ++moves) {
      std::memcpy(&s, data + moves * sizeof s, sizeof s);
      s.what = static_cast<Move>(static_cast<std::uint8_t>(s.what) % static_cast<std::uint8_t>(Move::count_));
      run.step(s);
      if (moves % kMovesBetweenCounts == 0) run.count_descriptors();
    }
    figures().moves += moves;
    run.end(size % sizeof s == 1);
    run.add_to(figures());
  }
  insist(open_descriptors() == before, "a descriptor that was left open");
  return 0;
}
