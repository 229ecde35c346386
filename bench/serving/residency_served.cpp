// `replan = "auto"` in a real leatd: the loads of residency_study on emulated partitions that hold three of nine models
// each, with sets that stay and with sets that follow the load, each in a leatd of its own, all at the same time; and
// beside them what the simulator makes of the same arrivals. A request is in time if it is answered by a model within
// the objective, from when it was due; one that finds no slot free is lost.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/papers/residency_simulation.h"
#include "bench/serving/leatd_child.h"
#include "bench/study.h"
#include "leat/client.hpp"
#include "shm/src/protocol/control_protocol.h"

namespace {

using namespace leat;
using namespace std::chrono_literals;

constexpr cli::Option kOptions[] = {
    cli::integer_option("minutes", "30", 1, 600, "of every load"),
    cli::integer_option("seed", "1", 1, 1'000'000, "of the arrivals"),
    cli::real_option("level", "0.85", 0.1, 2, "work of the 95th-percentile minute at batches of 8 over the host's",
                     "PART"),
    cli::real_option("slower", "4", 1, 100, "all times of residency_study's models and objectives, so many times",
                     "TIMES"),
    {.name = "loads",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "rotate,diurnal,bursty",
     .help = "which loads: steady, diurnal, bursty, rotate"},
    bench::kLeatdOption,
    cli::json_option("print the figures as JSON in place of text"),
};
constexpr cli::Command kCommand = {
    .name = "residency_served",
    .summary = "what changing the models that partitions hold is worth, in a real leatd",
    .description =
        "In time, of all requests and of the application that fares worst, for sets that stay and for those "
        "of replan = \"auto\", served and simulated, and for an oracle's of each minute.",
    .options = kOptions,
    .exit_status = "0: bars reached; 1: one is not; 2: bad input, or leatd does not serve"};

constexpr std::size_t kPartitions = 8, kHold = 3;
constexpr std::uint32_t kStreams = 4, kSlots = 96, kDepth = 64;  // of an application's client

// The same work in a request, by a batch of one item for each module: emulated modules find nothing.
bench::ResidentApplications applications(double slower) {
  bench::ResidentApplications out = bench::resident_applications();
  for (auto& a : out) {
    a.slo_ms *= slower;
    for (auto& m : a.modules) {
      m.d1_ms *= slower * m.items;
      m.items = 1;
    }
  }
  return out;
}

std::string configuration(const bench::ResidentApplications& apps, const bench::Rates& mean, bool follows) {
  std::string out = std::string("plan = \"auto\"\n") + (follows ? "replan = \"auto\"\n" : "") +
                    "[limits]\nclients = 32\nstreams = 64\n[[partition]]\nname = \"p\"\nkind = \"emulated\"\ncount = " +
                    std::to_string(kPartitions) + "\nmemory_mib = " + std::to_string(100 * kHold) + "\n";
  for (std::size_t a = 0; a < apps.size(); ++a) {
    out += "[[application]]\nname = \"a" + std::to_string(a) + "\"\nslo_ms = " + std::to_string(apps[a].slo_ms) +
           "\nrate_rps = " + std::to_string(mean[a]) + "\n";
    for (std::size_t m = 0; m < apps[a].modules.size(); ++m) {
      out += "[[application.module]]\nname = \"m" + std::to_string(m) +
             "\"\nbatch = " + std::to_string(bench::kResidentBatch) + "\nmemory_mib = 100\n" +
             (m > 0 ? "after = [\"m" + std::to_string(m - 1) + "\"]\n" : "") + "latency_ms = [";
      for (std::uint32_t b = 1; b <= bench::kResidentBatch; ++b)
        out += (b > 1 ? ", " : "") + std::to_string(apps[a].modules[m].run_ms(b));
      out += "]\n";
    }
  }
  return out;
}

struct Counts {
  std::uint64_t due = 0, sent = 0, answered = 0, in_time = 0;
};

// The requests of one application, when they are due.
class Caller {
 public:
  Caller(const std::string& socket, std::size_t application, std::vector<std::int64_t> due_ns, double slo_ms)
      : name_("a" + std::to_string(application)),
        due_ns_(std::move(due_ns)),
        slo_ns_(static_cast<std::int64_t>(slo_ms * 1e6)) {
    auto client = Client::connect(socket, name_);
    if (!client.ok()) {
      error = client.error();
      return;
    }
    client_ = std::make_unique<Client>(std::move(*client));
    StreamOptions o;
    o.application = name_.c_str();
    o.format = LEAT_FORMAT_gray8;
    o.width = o.height = 8;
    o.slots = kSlots;
    o.depth = kDepth;
    o.overload = LEAT_OVERLOAD_fifo;
    for (std::uint32_t i = 0; i < kStreams; ++i) {
      auto stream = client_->open_stream(o);
      if (!stream.ok()) {
        error = stream.error();
        return;
      }
      streams_.push_back(std::move(*stream));
    }
  }
  void begin(std::int64_t from_ns) {
    thread_ = std::thread([this, from_ns] { call(from_ns); });
  }
  void join() { thread_.join(); }

  std::string error;
  Counts counts;

 private:
  void call(std::int64_t from_ns) {
    for (std::size_t next = 0; next < due_ns_.size() && client_->connected();) {
      const std::int64_t now = leat_now_ns() - from_ns;
      if (due_ns_[next] <= now) {
        submit(from_ns + due_ns_[next], next);
        ++next;
        while (take(0ns)) {
        }
        continue;
      }
      (void)take(std::chrono::nanoseconds(due_ns_[next] - now));
    }
    const std::int64_t latest = leat_now_ns() + 2 * slo_ns_ + 10'000'000'000;
    while (counts.answered < counts.sent && client_->connected() && leat_now_ns() < latest) (void)take(100ms);
  }
  void submit(std::int64_t due_ns, std::size_t n) {
    ++counts.due;
    auto frame = streams_[n % kStreams].acquire();
    if (!frame) return;
    leat_submit_options s{};
    s.cookie = static_cast<std::uint64_t>(due_ns);
    if (frame->submit(s) == LEAT_ERROR_ok) ++counts.sent;
  }
  bool take(std::chrono::nanoseconds limit) {
    const auto answer = client_->next_answer(limit);
    if (!answer) return false;
    ++counts.answered;
    const bool in_time = leat_now_ns() <= static_cast<std::int64_t>(answer->raw().cookie) + slo_ns_;
    counts.in_time += answer->raw().outcome == LEAT_OUTCOME_completed && in_time ? 1 : 0;
    return true;
  }

  std::string name_;
  std::vector<std::int64_t> due_ns_;
  std::int64_t slo_ns_;
  std::unique_ptr<Client> client_;
  std::vector<Stream> streams_;
  std::thread thread_;
};

// One leatd under one load.
struct Served {
  std::string load;
  bool follows = false;
  std::unique_ptr<bench::LeatdChild> leatd;
  std::vector<std::unique_ptr<Caller>> callers;
  double total = 0, worst = 100;
  std::uint64_t unanswered = 0, lost = 0, changes = 0;

  void finish() {
    Counts all;
    for (const auto& c : callers) {
      c->join();
      all.due += c->counts.due;
      all.in_time += c->counts.in_time;
      unanswered += c->counts.sent - c->counts.answered;
      lost += c->counts.due - c->counts.sent;
      worst = std::min(worst, 100.0 * static_cast<double>(c->counts.in_time) /
                                  static_cast<double>(std::max<std::uint64_t>(c->counts.due, 1)));
    }
    total = 100.0 * static_cast<double>(all.in_time) / static_cast<double>(std::max<std::uint64_t>(all.due, 1));
  }
};

int fail(const std::string& why) {
  std::fprintf(stderr, "residency_served: %s\n", why.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  const int minutes = static_cast<int>(args.integer("minutes"));
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  const bench::ResidentApplications apps = applications(args.real("slower"));
  bench::ResidencySimulation simulation(apps, kPartitions, kHold, 1);

  std::vector<bench::ResidentLoad> loads;
  std::vector<Served> served;
  for (const std::string name : {"steady", "diurnal", "bursty", "rotate"}) {
    if (("," + args.text("loads") + ",").find("," + name + ",") == std::string::npos) continue;
    loads.push_back(bench::resident_load(apps, name, minutes, args.real("level"), kPartitions, seed));
    std::vector<std::vector<std::int64_t>> due(apps.size());
    for (const sim::Arrival& a : loads.back().arrivals) due[a.stream].push_back(a.at_ns);
    for (const bool follows : {false, true}) {
      Served& s = served.emplace_back();
      s.load = name;
      s.follows = follows;
      auto leatd = bench::LeatdChild::start(bench::leatd_of(args), configuration(apps, loads.back().mean(), follows));
      if (!leatd) return fail(leatd.error());
      s.leatd = std::move(*leatd);
      if (auto up = s.leatd->serves(60s); !up) return fail(up.error());
      for (std::size_t a = 0; a < apps.size(); ++a) {
        s.callers.push_back(std::make_unique<Caller>(s.leatd->socket(), a, due[a], apps[a].slo_ms));
        if (!s.callers.back()->error.empty()) return fail(s.callers.back()->error);
      }
    }
  }
  const std::int64_t from = leat_now_ns() + 100'000'000;
  for (Served& s : served)
    for (auto& caller : s.callers) caller->begin(from);
  {
    cli::Progress progress("residency_served", static_cast<std::uint64_t>(minutes) * 60, "seconds");
    for (int second = 0; second < minutes * 60; ++second) {
      std::this_thread::sleep_for(1s);
      progress.add(1);
    }
  }
  for (Served& s : served) {
    s.finish();
    if (!s.leatd->alive()) return fail("leatd ended under load " + s.load);
    leat_error error{};
    auto observer = shm::Observer::connect(s.leatd->socket(), &error);
    auto text = observer.ok() ? observer->status(&error) : Result<std::string>(Error{"no status"});
    if (!text) return fail("no status of leatd: " + text.error());
    s.changes = Json::parse(*text).at("replan").value("changes", std::uint64_t{0});
  }

  Json cells = Json::object();
  std::vector<bench::Bar> bars;
  for (std::size_t l = 0; l < loads.size(); ++l) {
    const bench::ResidentLoad& load = loads[l];
    const Served &stays = served[2 * l], &follows = served[2 * l + 1];
    Json& cell = cells[load.name];
    const auto row = [&](const char* how, double total, double worst, std::uint64_t changes) {
      if (!json.alone())
        std::printf("  %-18s in time %6.2f, worst application %6.2f, %llu changes\n", how, total, worst,
                    static_cast<unsigned long long>(changes));
      cell[how] = {{"in_time", total}, {"worst", worst}, {"changes", changes}};
    };
    const auto simulated = [&](const char* how, const bench::ResidencySimulation::Changes& changes) {
      const auto in_time = simulation.in_time(load, changes, seed);
      row(how, in_time.front(), *std::min_element(in_time.begin() + 1, in_time.end()),
          static_cast<std::uint64_t>(changes.swaps));
      return in_time.front();
    };
    if (!json.alone()) std::printf("%s, %zu requests\n", load.name.c_str(), load.arrivals.size());
    row("stays", stays.total, stays.worst, stays.changes);
    row("follows", follows.total, follows.worst, follows.changes);
    simulated("stays, simulated", simulation.fixed(load.mean()));
    simulated("follows, simulated", simulation.by_rule(load, load.mean()));
    const double oracle = simulated("oracle, simulated", simulation.oracle(load));
    cell["requests"] = load.arrivals.size();
    cell["unanswered"] = stays.unanswered + follows.unanswered;
    cell["no_slot"] = {{"stays", stays.lost}, {"follows", follows.lost}};
    bars.push_back(
        {load.name + ": points below the simulated oracle, at most", oracle - follows.total, 1.5, false, ""});
    bars.push_back({load.name + ": changes a minute", static_cast<double>(follows.changes) / minutes, 1, false, ""});
    bars.push_back({load.name + ": requests unanswered", static_cast<double>(stays.unanswered + follows.unanswered), 0,
                    false, ""});
    if (load.name == "rotate" && minutes >= 30)  // all six have had their turn
      bars.push_back({"rotate: points above sets that stay", follows.total - stays.total, 8, true, ""});
  }
  if (!json.alone()) bench::print(bars);
  if (const int failed = json.write(Json{{"loads", cells}, {"bars", bench::to_json(bars)}}.dump(1)); failed != 0)
    return failed;
  return std::all_of(bars.begin(), bars.end(), [](const bench::Bar& b) { return b.reached(); }) ? 0 : 1;
}
