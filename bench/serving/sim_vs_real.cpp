// Is what is simulated what ships? The same arrivals, plan and preset through the simulator and through a running leatd
// whose partitions are real worker processes that sleep as long as the plan says. The simulator runs twice: by the plan
// alone, and told how long a batch holds its partition beyond the plan (wake-up, sleeping past the end, report): one
// mean of the daemon's own counters, or a figure given beforehand, as `leat sim --overhead-us` takes. Nothing else is
// fitted. A run that differs while other programs took the cores is made again, kTries times in all.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "bench/serving/leatd_child.h"
#include "bench/serving/peers.h"
#include "bench/study.h"
#include "engine/papers/presets.h"
#include "engine/sim/study.h"
#include "leat/client.hpp"
#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/text/quantile.h"

namespace {

using namespace leat;
using core::TimeNs;

constexpr double kMs = 1e6;
// As many streams, each as deep, as leatd allows a client, and enough clients for all that can be in flight.
constexpr std::uint32_t kClients = 3, kStreamsEach = 8, kDepth = 64, kStreams = kClients * kStreamsEach;
constexpr int kTries = 3;
constexpr double kDisturbedUs = 5000;  // of the client's or a worker's 99th percentile: other programs took the cores
constexpr double kGoodputPoints = 3, kDropPoints = 3, kP99Percent = 15;

constexpr cli::Option kOptions[] = {
    {.name = "cases",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "wide,pipeline",
     .help = "wide: one module on 56 partitions; pipeline: three modules; stages: one model in two stages; "
             "shared: five modules, all on 8 partitions"},
    {.name = "presets",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "leat,pard",
     .help = "policy presets, separated by commas"},
    {.name = "loads",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "0.8,1.2",
     .help = "parts of the plan's rate, separated by commas"},
    {.name = "trace",
     .type = cli::Type::text,
     .value = "WORD",
     .fallback = "gamma:1.4",
     .help = "arrivals, as for leat sim"},
    cli::real_option("seconds", "15", 1, 3600, "of arrivals in each run", "S"),
    cli::real_option("scale", "1", 0.05, 100, "all times that much longer, all rates that much lower", "X"),
    {.name = "overhead-us",
     .type = cli::Type::real,
     .value = "US",
     .min = 0,
     .max = 1e6,
     .help = "what a batch costs beyond the plan, known beforehand; default: what this daemon counted"},
    cli::integer_option("seed", "1", 0, 1e15, "of the arrivals"),
    bench::kLeatdOption,
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "sim_vs_real",
    .summary = "the simulator against the running daemon: same arrivals, plan and preset",
    .options = kOptions};

// ---- the cases ----

struct ModuleCase {
  const char* name;
  double fixed_ms, each_ms;  // d(b) = fixed + each x b
  std::uint32_t partitions;
};
struct Case {
  const char* name;
  double slo_ms;
  std::vector<ModuleCase> modules;
  std::uint32_t batch = 4;
  bool stages = false;  // they are stages of one module
  bool shared = false;  // every module on all of the first one's partitions
};
constexpr std::int64_t kFeatureBytes = 100'000;

std::vector<Case> all_cases() {
  return {
      {"wide", 400, {{"work", 40, 15, 56}}},
      {"pipeline", 500, {{"object", 30, 10, 8}, {"face", 25, 8, 7}, {"text", 35, 12, 8}}},
      {"stages", 400, {{"front", 30, 10, 12}, {"back", 20, 8, 9}}, 4, true},
      // `lv` of the study of shared partitions (bench/papers/shared_cells.cpp): d(b) = d (1 - f + f b).
      {"shared",
       500,
       {{"m0", 12.6, 5.4, 8}, {"m1", 7.5, 2.5, 0}, {"m2", 6.4, 1.6, 0}, {"m3", 6.75, 2.25, 0}, {"m4", 14.3, 7.7, 0}},
       32,
       false,
       true}};
}

double run_ms(const ModuleCase& m, std::uint32_t batch) { return m.fixed_ms + m.each_ms * batch; }

// What the plan's batches carry; on shared partitions, what batches of ten do.
double full_rate_rps(const Case& c, double scale) {
  double min = 1e300, ms_of_ten = 0;
  for (const ModuleCase& m : c.modules) {
    min = std::min(min, m.partitions * c.batch * 1e3 / run_ms(m, c.batch));
    ms_of_ten += run_ms(m, 10) / 10;
  }
  return (c.shared ? c.modules[0].partitions * 1e3 / ms_of_ten : min) / scale;
}

planner::PlanFile plan_of(const Case& c, double scale) {
  planner::PlanFile file;
  planner::Application app{.name = c.name, .slo_ns = static_cast<TimeNs>(c.slo_ms * scale * kMs)};
  for (std::uint32_t m = 0; m < c.modules.size(); ++m) {
    const ModuleCase& module = c.modules[m];
    const bool begins = m == 0 || !c.stages;
    if (begins) {
      app.modules.push_back({.name = module.name, .model = module.name});
      if (m > 0) app.modules.back().after = {m - 1};
      file.plan.routes.push_back(
          {.application = 0, .module = m, .batch = c.batch, .rate_rps = full_rate_rps(c, scale), .stages = {}});
    }
    planner::Route& route = file.plan.routes.back();
    const auto s = static_cast<std::uint32_t>(route.stages.size());
    planner::Stage stage{.first_block = s,
                         .end_block = s + 1,
                         .transfer_bytes = c.stages && m + 1 < c.modules.size() ? kFeatureBytes : 0};
    for (std::uint32_t b = 1; b <= c.batch; ++b) {
      const auto ns = static_cast<TimeNs>(run_ms(module, b) * scale * kMs);
      stage.latency_by_batch.push_back({.p50_ns = ns, .p99_ns = ns});
    }
    for (std::uint32_t i = 0; c.shared && m > 0 && i < c.modules[0].partitions; ++i) stage.pool.push_back(i);
    for (std::uint32_t i = 0; i < module.partitions; ++i) {
      const auto p = static_cast<std::uint32_t>(file.plan.partitions.size());
      stage.pool.push_back(p);
      file.plan.partitions.push_back(
          {.name = module.name + std::to_string(i), .partition_class = module.name, .device = p});
    }
    route.stages.push_back(std::move(stage));
  }
  file.applications.push_back(std::move(app));
  return file;
}

std::string config_of(const Case& c, const planner::PlanFile& plan, const std::string& preset,
                      const std::string& plan_path) {
  std::string text = "plan = \"" + plan_path + "\"\n[limits]\nstreams = " + std::to_string(kStreams) +
                     "\n[policy]\npreset = \"" + preset + "\"\n";
  for (const ModuleCase& m : c.modules) {
    if (m.partitions == 0) continue;
    text += std::string("[[partition]]\nname = \"") + m.name +
            "\"\nkind = \"emulated\"\ncount = " + std::to_string(m.partitions) + "\n";
  }
  const planner::Application& app = plan.applications[0];
  text += "[[application]]\nname = \"" + app.name +
          "\"\nslo_ms = " + std::to_string(static_cast<double>(app.slo_ns) / kMs) + "\n";
  for (std::size_t m = 0; m < app.modules.size(); ++m) {
    text += "[[application.module]]\nname = \"" + app.modules[m].name + "\"\nexecutor = \"emulated\"\n";
    if (m > 0) text += "after = [\"" + app.modules[m - 1].name + "\"]\n";
    text += "latency_ms = [";
    for (const planner::Latency& l : plan.plan.routes[m].stages[0].latency_by_batch)
      text += std::to_string(static_cast<double>(l.p50_ns) / kMs) + ", ";
    text += "]\n";
  }
  return text;
}

// ---- the daemon's side ----

struct Answered {
  double in_time = 0, dropped = 0;  // of all requests; dropped: neither completed nor late
  double p50_ms = 0, p99_ms = 0;    // of delivered answers, from capture
};

// What a batch's partition is held for beyond the batch's planned time.
struct Overhead {
  double wake_us_p50 = 0, wake_us_p99 = 0;      // sent to the worker until it starts; the worst module
  double batch_us = 0;                          // mean over all batches
  double client_us_p50 = 0, client_us_p99 = 0;  // the client's own lateness in submitting
  double in_place = 1;                          // part of the features that the next stage read where they lay
};

// One client: its streams, and the thread that feeds them and takes their answers.
class Feeder {
 public:
  // Waits until leatd serves.
  static Result<std::unique_ptr<Feeder>> open(bench::LeatdChild& daemon, const std::string& application) {
    std::unique_ptr<Feeder> f(new Feeder);
    const std::int64_t until = shm::monotonic_ns() + 60'000'000'000;
    StreamOptions o;
    o.application = application.c_str();
    o.format = LEAT_FORMAT_gray8;
    o.width = o.height = 16;
    o.depth = o.slots = kDepth;
    o.overload = LEAT_OVERLOAD_fifo;
    while (f->streams_.size() < kStreamsEach) {
      if (!f->client_) {
        if (auto client = Client::connect(daemon.socket(), "sim_vs_real")) f->client_.emplace(std::move(*client));
      }
      auto stream = f->client_ ? f->client_->open_stream(o) : Result<Stream>(Error{leat_last_error()});
      if (stream) {
        f->streams_.push_back(std::move(*stream));
      } else if (!f->streams_.empty() || !daemon.alive() || shm::monotonic_ns() > until) {
        return Error{"leatd did not serve: " + stream.error()};
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    return f;
  }

  // Submits every arrival at its time, or as soon after as this thread runs, as captured at its time; returns when all
  // are answered.
  Status replay(std::span<const sim::Arrival> arrivals, std::int64_t start,
                const std::function<void(std::uint64_t)>& progress) {
    std::size_t next = 0;
    while (next < arrivals.size() || in_flight_ > 0) {
      for (; next < arrivals.size() && start + arrivals[next].at_ns <= shm::monotonic_ns(); ++next) {
        if (const auto status = submit(arrivals[next], start + arrivals[next].at_ns); !status) return status;
      }
      const std::int64_t until =
          next < arrivals.size() ? start + arrivals[next].at_ns : shm::monotonic_ns() + kPatienceNs;
      std::int64_t wait = std::max<std::int64_t>(0, until - shm::monotonic_ns());
      std::uint64_t taken = 0;
      for (; const auto answer = client_->next_answer(std::chrono::nanoseconds(wait)); wait = 0) {
        note(*answer);
        ++taken;
      }
      if (!client_->connected()) return Error{"leatd went away"};
      if (taken == 0 && next == arrivals.size()) return Error{"leatd left requests without an answer for 30 s"};
      progress(taken);
    }
    return Done{};
  }

  std::vector<double> latency_ms, late_us;  // of delivered answers; of submissions
  std::size_t in_time = 0;

 private:
  static constexpr std::int64_t kPatienceNs = 30'000'000'000;
  Feeder() = default;
  Status submit(const sim::Arrival& a, std::int64_t due) {
    late_us.push_back(static_cast<double>(shm::monotonic_ns() - due) / 1e3);
    auto frame = streams_[a.stream % kStreamsEach].acquire();
    if (!frame) return Done{};  // as many in flight as the stream holds: refused
    if (frame->submit({.capture_ns = due}) != LEAT_ERROR_ok) return Error{leat_last_error()};
    ++in_flight_;
    return Done{};
  }
  void note(const Answer& a) {
    --in_flight_;
    if (a.outcome() == Outcome::completed) ++in_time;
    if (a.outcome() == Outcome::completed || a.outcome() == Outcome::late)
      latency_ms.push_back(static_cast<double>(a.latency().count()) / 1e6);
  }
  std::optional<Client> client_;
  std::vector<Stream> streams_;
  std::size_t in_flight_ = 0;
};

// The load through kClients feeders at once.
Result<Answered> replay(bench::LeatdChild& daemon, const std::string& application, const sim::Load& load,
                        Overhead& overhead, const std::function<void(std::uint64_t)>& progress) {
  std::vector<std::unique_ptr<Feeder>> feeders;
  std::vector<std::vector<sim::Arrival>> parts(kClients);
  for (std::uint32_t c = 0; c < kClients; ++c) {
    auto feeder = Feeder::open(daemon, application);
    if (!feeder) return Error{feeder.error()};
    feeders.push_back(std::move(*feeder));
  }
  for (const sim::Arrival& a : load.arrivals) parts[a.stream / kStreamsEach].push_back(a);
  std::vector<Status> ends(kClients, Done{});
  std::vector<std::thread> threads;
  std::mutex lock;
  const std::int64_t start = shm::monotonic_ns() + 100'000'000;
  for (std::uint32_t c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      ends[c] = feeders[c]->replay(parts[c], start, [&](std::uint64_t more) {
        const std::lock_guard guard(lock);
        progress(more);
      });
    });
  }
  for (std::thread& t : threads) t.join();
  std::vector<double> latency_ms, late_us;
  double in_time = 0;
  for (std::uint32_t c = 0; c < kClients; ++c) {
    if (!ends[c]) return Error{ends[c].error()};
    latency_ms.insert(latency_ms.end(), feeders[c]->latency_ms.begin(), feeders[c]->latency_ms.end());
    late_us.insert(late_us.end(), feeders[c]->late_us.begin(), feeders[c]->late_us.end());
    in_time += static_cast<double>(feeders[c]->in_time);
  }
  overhead.client_us_p50 = quantile(late_us, 0.5);
  overhead.client_us_p99 = quantile(late_us, 0.99);
  const auto n = static_cast<double>(load.arrivals.size());
  return Answered{in_time / n, (n - static_cast<double>(latency_ms.size())) / n, quantile(latency_ms, 0.5),
                  quantile(latency_ms, 0.99)};
}

Status read_overhead(const std::string& socket, const Case& c, double scale, Overhead& out) {
  leat_error error{};
  auto observer = shm::Observer::connect(socket, &error);
  if (!observer) return Error{observer.error()};
  auto counters = observer->counters(&error);
  if (!counters) return Error{counters.error()};
  const auto reader = shm::CountersReader::map(std::move(counters->fd), counters->bytes);
  if (!reader) return Error{reader.error()};
  std::uint32_t p = 0;
  double beyond_ms = 0, batches = 0;
  const auto planned_ms = [&](std::uint32_t m, double n, double items) {
    return scale * (c.modules[m].fixed_ms * n + c.modules[m].each_ms * items);
  };
  for (std::uint32_t m = 0; m < c.modules.size(); ++m) {
    for (std::uint32_t i = 0; i < c.modules[m].partitions; ++i, ++p) {
      const auto record = reader->snapshot(shm::RecordKind::partition, p);
      if (!record) return Error{"leatd counts nothing for partition " + std::to_string(p)};
      const auto n = static_cast<double>(record->value(shm::PartitionCounter::batches).value_or(0)),
                 items = static_cast<double>(record->value(shm::PartitionCounter::items).value_or(0));
      const auto held = record->value(shm::PartitionCounter::busy_ns).value_or(0) +
                        record->value(shm::PartitionCounter::overhead_ns).value_or(0);
      beyond_ms += static_cast<double>(held) / kMs;
      if (!c.shared) beyond_ms -= planned_ms(m, n, items);
      batches += n;
    }
    const auto module = reader->snapshot(shm::RecordKind::module, c.stages ? 0 : m);
    if (c.shared && module)  // a partition does not count by module; here every task is one item
      beyond_ms -= planned_ms(m, static_cast<double>(module->value(shm::ModuleCounter::batches).value_or(0)),
                              static_cast<double>(module->value(shm::ModuleCounter::tasks).value_or(0)));
    out.wake_us_p50 =
        std::max(out.wake_us_p50, module ? module->quantile_ns(shm::Which::first, 0.5).value_or(0) / 1e3 : 0);
    out.wake_us_p99 =
        std::max(out.wake_us_p99, module ? module->quantile_ns(shm::Which::first, 0.99).value_or(0) / 1e3 : 0);
  }
  if (const auto edge = reader->snapshot(shm::RecordKind::edge, 0)) {
    const auto there = static_cast<double>(edge->value(shm::EdgeCounter::bytes_in_place).value_or(0));
    const auto copied = static_cast<double>(edge->value(shm::EdgeCounter::bytes_copied).value_or(0));
    if (there + copied > 0) out.in_place = there / (there + copied);
  }
  out.batch_us = batches > 0 ? 1e3 * beyond_ms / batches : 0;
  return Done{};
}

// ---- one comparison ----

struct Comparison {
  std::string name, preset;
  double load = 0;
  std::size_t requests = 0;
  Answered by_plan, with_overhead, real;
  Overhead overhead;

  [[nodiscard]] bool disturbed() const {
    return overhead.client_us_p99 > kDisturbedUs || overhead.wake_us_p99 > kDisturbedUs;
  }
  [[nodiscard]] bool agrees() const;
};

// leatd less simulated.
struct Difference {
  double goodput_points = 0, drop_points = 0, p99_percent = 0;
  Difference(const Answered& real, const Answered& simulated)
      : goodput_points(100 * (real.in_time - simulated.in_time)),
        drop_points(100 * (real.dropped - simulated.dropped)),
        p99_percent(100 * (real.p99_ms / simulated.p99_ms - 1)) {}
  [[nodiscard]] bool agree() const {
    return std::abs(goodput_points) <= kGoodputPoints && std::abs(drop_points) <= kDropPoints &&
           std::abs(p99_percent) <= kP99Percent;
  }
};

bool Comparison::agrees() const { return Difference(real, with_overhead).agree(); }

Answered simulate(const sim::Study& study, const sim::Load& load, const std::string& preset) {
  core::Policy policy;
  if (!papers::preset(preset, policy)) std::abort();
  const sim::Measured m = sim::measure(study, load, policy, false);
  return {m.outcomes.goodput(), m.outcomes.drop_rate() - m.share(Outcome::late), m.p50_ms, m.p99_ms};
}

Result<Comparison> compare(const Case& c, const sim::Study& study, double factor, std::uint64_t seed,
                           const std::string& preset, double scale, std::optional<double> overhead_us,
                           const std::string& leatd, const std::function<void(std::uint64_t)>& progress) {
  const sim::Load load = sim::make_load(study, factor, seed);
  Comparison out{.name = c.name,
                 .preset = preset,
                 .load = factor,
                 .requests = load.arrivals.size(),
                 .by_plan = simulate(study, load, preset)};
  char folder[] = "/tmp/leat-plan-XXXXXX";
  if (mkdtemp(folder) == nullptr) return Error{"no folder can be made in /tmp"};
  const std::string plan_path = std::string(folder) + "/plan.json";
  const auto run = [&]() -> Status {
    if (const auto status = planner::write_plan(plan_path, study.plan); !status) return status;
    auto daemon = bench::LeatdChild::start(leatd, config_of(c, study.plan, preset, plan_path));
    if (!daemon) return Error{daemon.error()};
    auto real = replay(**daemon, c.name, load, out.overhead, progress);
    if (!real) return Error{real.error()};
    out.real = *real;
    return read_overhead((*daemon)->socket(), c, scale, out.overhead);
  };
  const Status status = run();
  std::error_code none;
  std::filesystem::remove_all(folder, none);
  if (!status) return Error{status.error()};
  sim::Study longer = study;
  sim::add_overhead(longer.reality, static_cast<TimeNs>(overhead_us.value_or(out.overhead.batch_us) * 1e3));
  out.with_overhead = simulate(longer, load, preset);
  return out;
}

Json to_json(const Answered& a) {
  return {{"in_time", a.in_time}, {"drop_rate", a.dropped}, {"p50_ms", a.p50_ms}, {"p99_ms", a.p99_ms}};
}

Json to_json(const Difference& d) {
  return {{"goodput_points", d.goodput_points},
          {"drop_points", d.drop_points},
          {"p99_percent", d.p99_percent},
          {"agree", d.agree()}};
}

void print_row(const char* what, const Answered& a) {
  std::printf("  %-22s %9.2f %9.2f %9.1f %9.1f\n", what, 100 * a.in_time, 100 * a.dropped, a.p50_ms, a.p99_ms);
}

void print_difference(const Answered& real, const Answered& simulated) {
  const Difference d(real, simulated);
  std::printf("  %-22s %+9.2f %+9.2f %18s%+8.1f %%   %s\n", "leatd less that", d.goodput_points, d.drop_points, "",
              d.p99_percent, d.agree() ? "agree" : "DIFFER");
}

void print(const std::vector<Comparison>& all) {
  std::printf("%-24s %9s %9s %9s %9s\n", "", "in time %", "dropped %", "p50 ms", "p99 ms");
  for (const Comparison& c : all) {
    std::printf("%s, %s, load %g, %zu requests\n", c.name.c_str(), c.preset.c_str(), c.load, c.requests);
    print_row("leatd", c.real);
    print_row("simulated, plan alone", c.by_plan);
    print_difference(c.real, c.by_plan);
    print_row("simulated, overhead", c.with_overhead);
    print_difference(c.real, c.with_overhead);
    std::printf(
        "  a batch held its partition %.0f us longer than planned; its worker woke after %.0f us (p99 %.0f); client "
        "late by %.0f us (p99 %.0f)%s\n",
        c.overhead.batch_us, c.overhead.wake_us_p50, c.overhead.wake_us_p99, c.overhead.client_us_p50,
        c.overhead.client_us_p99, c.disturbed() ? "; DISTURBED: other programs took the cores" : "");
    if (c.name == "stages") std::printf("  %.1f %% of the features read in place\n", 100 * c.overhead.in_place);
  }
  std::printf("agree: within %g points of goodput, %g of drop rate, %g %% of p99\n", kGoodputPoints, kDropPoints,
              kP99Percent);
}

Json to_json(const std::vector<Comparison>& all, std::uint64_t seed) {
  Json root{{"seed", seed}, {"comparisons", Json::array()}};
  bool agree = true, unexplained = false;  // one differs; one differs that was not disturbed
  for (const Comparison& c : all) {
    const Difference by_plan(c.real, c.by_plan), with_overhead(c.real, c.with_overhead);
    agree = agree && c.agrees();
    unexplained = unexplained || (!c.agrees() && !c.disturbed());
    root["comparisons"].push_back(
        {{"case", c.name},
         {"preset", c.preset},
         {"load", c.load},
         {"requests", c.requests},
         {"leatd", to_json(c.real)},
         {"by_plan", to_json(c.by_plan)},
         {"with_overhead", to_json(c.with_overhead)},
         {"difference", {{"by_plan", to_json(by_plan)}, {"with_overhead", to_json(with_overhead)}}},
         {"overhead",
          {{"batch_us", c.overhead.batch_us},
           {"wake_us_p50", c.overhead.wake_us_p50},
           {"wake_us_p99", c.overhead.wake_us_p99},
           {"client_us_p50", c.overhead.client_us_p50},
           {"client_us_p99", c.overhead.client_us_p99},
           {"features_in_place", c.overhead.in_place}}},
         {"disturbed", c.disturbed()}});
  }
  root["agree"] = agree;
  root["excused"] = !agree && !unexplained;
  return root;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t from = 0, to = 0; to != std::string::npos; from = to + 1) {
    to = list.find(',', from);
    out.push_back(list.substr(from, to == std::string::npos ? to : to - from));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto fail = [](const std::string& text) { return cli::fail(kCommand.name, text); };
  const auto seed = static_cast<std::uint64_t>(args.integer("seed"));
  const double scale = args.real("scale");
  const auto overhead_us = args.given("overhead-us") ? std::optional(args.real("overhead-us")) : std::nullopt;
  const auto process = sim::read_process(args.text("trace"));
  if (!process) return fail("--trace: " + process.error());
  std::vector<double> loads;
  for (const std::string& word : words_of(args.text("loads"))) {
    char* end = nullptr;
    loads.push_back(std::strtod(word.c_str(), &end));
    if (word.empty() || *end != 0 || !(loads.back() > 0.01 && loads.back() < 10))
      return fail("--loads: '" + word + "' is no number from 0.01 to 10");
  }
  for (const std::string& preset : words_of(args.text("presets"))) {
    core::Policy policy;
    if (!papers::preset(preset, policy))
      return fail("--presets: there is no preset '" + preset + "'; there are " + papers::preset_names());
  }
  const cli::JsonOutput json(args);
  if (!json.alone()) std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);

  std::vector<std::pair<Case, sim::Study>> studies;
  double expected = 0;
  for (const std::string& name : words_of(args.text("cases"))) {
    const std::vector<Case> cases = all_cases();
    const auto it = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return name == c.name; });
    if (it == cases.end()) return fail("--cases: there is no '" + name + "'; there are wide, pipeline, stages, shared");
    sim::Study study{.plan = plan_of(*it, scale)};
    study.believed = study.reality = core::Topology::from(study.plan.plan, study.plan.applications);
    study.processes = {*process};
    study.full_rps = {sim::planned_rate(study.plan, 0)};
    study.streams = kStreams;
    study.depth = kDepth;
    study.length_ns = static_cast<TimeNs>(args.real("seconds") * 1e9);
    for (const double load : loads)
      expected += sim::expected_requests(study, load) * static_cast<double>(words_of(args.text("presets")).size());
    studies.emplace_back(*it, std::move(study));
  }
  std::vector<Comparison> all;
  {
    cli::Progress progress("sim_vs_real", static_cast<std::uint64_t>(expected), "requests");
    for (const auto& [c, study] : studies) {
      for (const std::string& preset : words_of(args.text("presets"))) {
        for (const double load : loads) {
          const auto once = [&] {
            return compare(c, study, load, seed, preset, scale, overhead_us, bench::leatd_of(args),
                           [&](std::uint64_t more) { progress.add(more); });
          };
          auto comparison = once();
          for (int tries = 1; tries < kTries && comparison && comparison->disturbed() && !comparison->agrees(); ++tries)
            comparison = once();
          if (!comparison) return fail(comparison.error());
          all.push_back(std::move(*comparison));
        }
      }
    }
  }
  if (!json.alone()) print(all);
  return json.write(to_json(all, seed).dump(1));
}
