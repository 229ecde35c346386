// leat sim: a plan under a load, in the simulator around the daemon's own scheduler core.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>

#include "engine/papers/presets.h"
#include "engine/sim/for_each_job.h"
#include "planner/io/application_io.h"
#include "planner/io/profile_io.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cli/progress.h"
#include "tools/base/documents/text_file.h"
#include "tools/leat/commands.h"
#include "tools/leat/sim/coordinated.h"
#include "tools/leat/sim/replay.h"
#include "tools/leat/sim/results.h"
#include "tools/leat/sim/what_if.h"

namespace leat::tools {
namespace {

using core::TimeNs;

constexpr cli::Option kOptions[] = {
    {.name = "plan",
     .letter = 'p',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "the plan, as leat plan writes it; needed without --replay; with it: as if this one had held throughout"},
    {.name = "replay",
     .type = cli::Type::path,
     .value = "RECORD",
     .help = "instead of all that: do again what this record of leatd's holds, and compare every action of its "
             "scheduler; with --presets, --plan, --without or --twice: what would have become of its frames "
             "(docs/reference/record.md)"},
    {.name = "without",
     .type = cli::Type::text,
     .value = "LIST",
     .help = "with --replay: as if these partitions of the record were not there"},
    {.name = "twice",
     .type = cli::Type::text,
     .value = "LIST",
     .help = "with --replay: as if beside each of these partitions there were another like it"},
    {.name = "trace",
     .letter = 't',
     .type = cli::Type::text,
     .value = "WORD",
     .fallback = "poisson",
     .repeat = true,
     .help =
         "arrivals: poisson, gamma:CV, mmpp:RATE/SECONDS,..., or a trace's path; NAME=WORD: of that application only"},
    {.name = "presets",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "leat",
     .help = "policy presets, separated by commas, each with settings if wanted (leat,leat:risk_permille=2000); "
             "all: every one there is; with --replay also recorded: the record's own"},
    {.name = "load",
     .letter = 'l',
     .type = cli::Type::real,
     .value = "X",
     .fallback = "1",
     .min = 0.001,
     .max = 100,
     .help = "mean arrivals in parts of the rate that the plan was made for"},
    cli::real_option("rate", "0", 0, 1e7, "what load 1 is, for every application; 0: the plan's rates", "RPS"),
    cli::integer_option(
        "coordinated", "0", 0, 4096,
        "0: none; else, instead of arrivals, N clients with cameras of 60 frames/s whose streams the server "
        "coordinates, by the first preset, on the plan's applications of one uncut module in turn"),
    cli::real_option("accuracy", "0.06", 0.001, 0.5, "with --coordinated: what each may lose of its accuracy", "DROP"),
    {.name = "video",
     .type = cli::Type::text,
     .value = "LIST",
     .fallback = "easy,walk,shaky,fast,crowd,phases",
     .help =
         "with --coordinated: what they film, in turn: generated videos, on which the tracker's losses are recorded "
         "first"},
    cli::integer_option(
        "tasks", "1", 1, 4,
        "with --coordinated: so many of the streams are tasks of one client each, which take turns, of several "
        "models where the plan has them"),
    {.name = "sweep",
     .type = cli::Type::text,
     .value = "LOW:HIGH:STEP",
     .help = "also run these loads: attainment over load"},
    cli::integer_option("seed", "1", 0, 1e15, "the first seed"),
    cli::integer_option("seeds", "1", 1, 1000,
                        "how many, paired over presets and loads; with --replay how often batch times are drawn, 8 "
                        "times unless it is given"),
    cli::real_option("seconds", "0", 0, 1e7, "length of the arrivals; 0: the trace's own, else 60", "S"),
    cli::real_option("bin-ms", "0", 0, 1e8, "replay a rate series with bins of this length; 0: its own", "MS"),
    {.name = "profiles",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "what stages really take, where the plan's latencies are believed; default: as planned"},
    {.name = "application",
     .letter = 'a',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "take SLOs and rates from here instead of from the plan"},
    {.name = "faults",
     .type = cli::Type::path,
     .value = "FILE",
     .help = "partitions lost or slow, wrong profiles, clock steps, bursts (TOML or JSON)"},
    cli::integer_option("noise", "0", 0, 300, "standard deviation of execution times", "PERMILLE"),
    cli::real_option("overhead-us", "0", 0, 1e6,
                     "what a batch holds its partition besides its run: wake-ups and reports, as leat top shows them",
                     "US"),
    {.name = "items",
     .type = cli::Type::text,
     .value = "MEDIAN:SIGMA:MOST",
     .help = "items per request, log-normal; default: one"},
    cli::integer_option("check", "0", 0, 1e9, "check every invariant of the scheduler after every N events"),
    cli::integer_option("threads", "0", 0, 256, "simulations at a time; 0: as many as there are cores"),
    {.name = "timeline-at",
     .type = cli::Type::real,
     .value = "S",
     .min = 0,
     .max = 1e7,
     .help = "where the report's partition timeline begins; default: at the worst second"},
    {.name = "report", .type = cli::Type::path, .value = "DIR", .help = "write pictures (SVG) and index.html there"},
    cli::json_option("print all figures as JSON in place of the table"),
};
constexpr cli::Example kExamples[] = {
    {.line = "leat sim --plan plan.json --trace twitter_bursty_30min_1s_a.csv --presets leat,pard,nexus --load 0.9 "
             "--report out",
     .text = "three policies on one trace, with pictures"},
    {.line = "leat sim --plan plan.json --trace gamma:1.4 --sweep 0.5:1.2:0.1 --seeds 3",
     .text = "how much load the plan carries when arrivals are bursty"},
    {.line = "leat sim --replay leatd.record", .text = "does this leat decide as the leatd did that recorded it?"},
    {.line = "leat sim --replay leatd.record --presets recorded,nexus --twice gpu1",
     .text = "what would have become of its frames with one partition more, under two policies"},
};
constexpr cli::Command kCommand = {
    .name = "leat sim",
    .summary = "runs a plan under a load in the simulator, one policy preset beside the other",
    .description =
        "The simulator drives the daemon's own scheduler code. One seed decides everything: the same seed, plan and "
        "options print the same trace "
        "hash on every machine. In time: completed by the deadline. Of bound: of what a clairvoyant scheduler could "
        "complete at most. Invalid: execution "
        "time spent on requests that were not completed.\n\n"
        "A rate series (*_1s_*, *_1min_*, *_1h_*) is scaled to the wanted mean and is Poisson within each bin; a "
        "per-request trace (*_arrivals_*) is "
        "stretched as a whole.\n\n"
        "With --replay nothing is simulated: the scheduler that a leatd recorded ([daemon] recorder) is made again and "
        "fed what that one was fed. All of its actions are the same; one that differs is a fault, or another "
        "release.\n\n"
        "With --replay and another policy, plan or set of partitions the record's frames come as they came, streams "
        "that wait for grants have their pictures when they had them and are asked for them anew, and batches take "
        "times that are drawn from the record, --seeds times (8). The totals stand beside the recorded ones; those of "
        "the recorded policy show how far to trust the others. In time: of the frames that were submitted. Pictures: "
        "of all that there were, wanted or not.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-plan(1), leat-record(1), leatd(8)",
    .exit_status =
        "0; 1: a run did not drain, that is, requests were left without an answer, or a replayed action "
        "differs; 2: bad input, or a record that cannot be replayed",
};

constexpr double kMaxArrivals = 5e7;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  for (std::size_t from = 0, to = 0; to != std::string::npos; from = to + 1) {
    to = text.find(at, from);
    out.push_back(text.substr(from, to == std::string::npos ? to : to - from));
  }
  return out;
}

// "A:B:C" as three numbers.
bool three_numbers(const std::string& text, double out[3]) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 3) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    char* end = nullptr;
    out[i] = std::strtod(parts[i].c_str(), &end);
    if (parts[i].empty() || *end != 0 || !std::isfinite(out[i])) return false;
  }
  return true;
}

Result<std::vector<double>> read_sweep(const cli::Arguments& args) {
  std::vector<double> loads;
  if (!args.given("sweep")) return loads;
  double v[3];
  if (!three_numbers(args.text("sweep"), v) || v[0] <= 0 || v[1] < v[0] || v[2] <= 0 || v[1] > 100 ||
      (v[1] - v[0]) / v[2] > 1000) {
    return Error{"--sweep: '" + args.text("sweep") + "' is no LOW:HIGH:STEP; write for example 0.5:1.2:0.1"};
  }
  for (int i = 0; v[0] + i * v[2] <= v[1] + v[2] * 1e-6; ++i) loads.push_back(v[0] + i * v[2]);
  return loads;
}

// SLOs, rates and fan-out from another file; names and shape must be the plan's.
Status replace_applications(const std::string& path, planner::PlanFile& file) {
  const auto read = planner::read_applications(path);
  if (!read) return Error{read.error()};
  for (planner::Application& planned : file.applications) {
    const auto it =
        std::find_if(read->begin(), read->end(), [&](const planner::Application& a) { return a.name == planned.name; });
    if (it == read->end()) return Error{path + ": has no application '" + planned.name + "', which the plan serves"};
    bool same = it->modules.size() == planned.modules.size();
    for (std::size_t m = 0; same && m < planned.modules.size(); ++m) {
      same = it->modules[m].name == planned.modules[m].name && it->modules[m].after == planned.modules[m].after;
    }
    if (!same)
      return Error{path + ": application '" + planned.name + "' has other modules than in the plan; plan it anew"};
    planned = *it;
  }
  return Done{};
}

// One word for all applications, or NAME=WORD for one of them.
Status read_arrivals(const cli::Arguments& args, sim::Study& study) {
  const std::vector<planner::Application>& applications = study.plan.applications;
  study.processes.resize(applications.size());
  for (const std::string& given : args.texts("trace")) {
    const std::size_t equals = given.find('=');
    std::size_t only = applications.size();
    for (std::size_t a = 0; equals != std::string::npos && a < applications.size(); ++a) {
      if (given.compare(0, equals, applications[a].name) == 0) only = a;
    }
    if (equals != std::string::npos && only == applications.size() && !std::filesystem::exists(given)) {
      return Error{"--trace " + given + ": the plan has no application '" + given.substr(0, equals) +
                   "'; its first is '" + applications.front().name + "'"};
    }
    const auto process = sim::read_process(only < applications.size() ? given.substr(equals + 1) : given);
    if (!process) return Error{"--trace: " + process.error()};
    for (std::size_t a = 0; a < applications.size(); ++a) {
      if (only == applications.size() || only == a) study.processes[a] = *process;
    }
  }
  return Done{};
}

Status read_rates(const cli::Arguments& args, const std::vector<double>& loads, sim::Study& study) {
  for (std::uint32_t a = 0; a < study.plan.applications.size(); ++a) {
    study.full_rps.push_back(args.real("rate") > 0 ? args.real("rate") : sim::planned_rate(study.plan, a));
    if (study.full_rps[a] <= 0)
      return Error{"application '" + study.plan.applications[a].name +
                   "' has no rate, neither in the plan's routes nor of its own; state --rate"};
  }
  double max = 0;
  for (const double load : loads) max = std::max(max, sim::expected_requests(study, load));
  char text[160];
  std::snprintf(text, sizeof text,
                "one run would have %.3g requests; the most is %.0g: shorten it with --seconds or --bin-ms", max,
                kMaxArrivals);
  return max > kMaxArrivals ? Status(Error{text}) : Status(Done{});
}

Result<sim::Study> read_study(const cli::Arguments& args, const std::vector<double>& loads) {
  auto file = planner::read_plan(args.text("plan"));
  if (!file) return Error{file.error()};
  sim::Study study{.plan = std::move(*file)};
  if (args.given("application")) {
    if (const auto status = replace_applications(args.text("application"), study.plan); !status)
      return Error{status.error()};
  }
  study.believed = core::Topology::from(study.plan.plan, study.plan.applications);
  if (const std::string problem = study.believed.problem(); !problem.empty())
    return Error{args.text("plan") + ": " + problem};
  if (args.given("faults")) {
    auto faults = sim::read_faults(args.text("faults"), study.plan);
    if (!faults) return Error{faults.error()};
    study.faults = std::move(*faults);
  }
  std::vector<planner::Profile> profiles;
  if (args.given("profiles")) {
    auto read = planner::read_profiles(args.text("profiles"));
    if (!read) return Error{read.error()};
    profiles = std::move(*read);
  }
  auto reality = sim::reality_of(study.plan, study.believed, profiles, study.faults.profile_errors);
  if (!reality) return Error{args.text("profiles") + ": " + reality.error()};
  study.reality = std::move(*reality);
  sim::add_overhead(study.reality, static_cast<TimeNs>(args.real("overhead-us") * 1e3));
  study.length_ns = static_cast<TimeNs>(args.real("seconds") * 1e9);
  study.bin_ns = static_cast<TimeNs>(args.real("bin-ms") * 1e6);
  study.noise_permille = static_cast<std::uint32_t>(args.integer("noise"));
  study.check_every = static_cast<std::uint32_t>(args.integer("check"));
  if (args.given("items")) {
    double v[3];
    std::size_t room = core::kMaxBatch;
    for (const core::RouteSpec& r : study.believed.routes) room = std::min<std::size_t>(room, r.batch);
    if (!three_numbers(args.text("items"), v) || v[0] < 1 || v[1] < 0 || v[1] > 5 || v[2] < 1 ||
        v[2] > static_cast<double>(room)) {
      return Error{"--items: '" + args.text("items") + "' is no MEDIAN:SIGMA:MOST with MOST from 1 to " +
                   std::to_string(room) + ", the least batch of the plan's routes; write for example 4:0.9:8"};
    }
    study.items = {.median = v[0], .sigma = v[1], .largest = static_cast<std::uint32_t>(v[2])};
  }
  if (const auto status = read_arrivals(args, study); !status) return Error{status.error()};
  if (const auto status = read_rates(args, loads, study); !status) return Error{status.error()};
  return study;
}

// One draw of arrivals: made by the first who needs it, let go by the last.
struct Draw {
  std::once_flag once;
  sim::Load load;
  std::atomic<std::size_t> done{0};
};

// All runs: for each load and seed one draw of arrivals, shared by the presets.
void run_all(const cli::Arguments& args, const sim::Study& study, SimResults& results) {
  const auto seeds = static_cast<std::size_t>(args.integer("seeds"));
  const bool histories = args.given("report");
  std::vector<double> loads{results.load};
  loads.insert(loads.end(), results.sweep_loads.begin(), results.sweep_loads.end());
  for (SimPreset& p : results.presets) {
    p.runs.resize(seeds);
    p.sweep.assign(results.sweep_loads.size(), std::vector<SimRun>(seeds));
  }
  double expected = 0;
  for (const double load : loads)
    expected += sim::expected_requests(study, load) * static_cast<double>(seeds * results.presets.size());
  cli::Progress progress("leat sim", static_cast<std::uint64_t>(expected), "requests");
  std::mutex lock;
  const auto told = [&](std::uint64_t more) {
    const std::lock_guard guard(lock);
    progress.add(more);
  };
  std::vector<Draw> draws(loads.size() * seeds);
  const std::size_t jobs = draws.size() * results.presets.size();
  const auto wanted = args.integer("threads") > 0 ? static_cast<std::size_t>(args.integer("threads"))
                                                  : std::size_t{std::max(1u, std::thread::hardware_concurrency())};
  sim::for_each_job(jobs, wanted, [&](std::size_t job) {
    const std::size_t p = job % results.presets.size(), draw = job / results.presets.size(), l = draw / seeds,
                      k = draw % seeds;
    Draw& d = draws[draw];
    std::call_once(d.once, [&] { d.load = sim::make_load(study, loads[l], results.first_seed + k); });
    SimRun& run = l == 0 ? results.presets[p].runs[k] : results.presets[p].sweep[l - 1][k];
    run = {.seed = d.load.seed,
           .load = loads[l],
           .bound = d.load.bound,
           .measured = sim::measure(study, d.load, results.presets[p].policy, histories && draw == 0, told)};
    if (d.done.fetch_add(1, std::memory_order_acq_rel) + 1 == results.presets.size())
      d.load.arrivals = {};  // all others are done with it
  });
}

bool all_drained(const SimResults& results) {
  for (const SimPreset& p : results.presets) {
    for (const SimRun& run : p.runs) {
      if (!run.measured.outcomes.drained) return false;
    }
    for (const auto& seeds : p.sweep) {
      for (const SimRun& run : seeds) {
        if (!run.measured.outcomes.drained) return false;
      }
    }
  }
  return true;
}

// What cannot be written or shown is said before the runs, not after them.
Status prepare_outputs(const cli::Arguments& args, const sim::Study& study) {
  const double seconds = static_cast<double>(sim::length_of(study, args.real("load"))) / 1e9;
  if (args.given("timeline-at") && args.real("timeline-at") >= seconds) {
    char text[120];
    std::snprintf(text, sizeof text, "--timeline-at %g: the arrivals end after %g s; begin before that",
                  args.real("timeline-at"), seconds);
    return Error{text};
  }
  return args.given("report") ? prepare_report(args.text("report")) : Done{};
}

bool goes_with_what_if(std::string_view option) {
  constexpr std::string_view kThese[] = {"replay", "json", "presets", "plan", "without", "twice", "seed", "seeds"};
  return std::ranges::find(kThese, option) != std::end(kThese);
}

int run(const cli::Arguments& args) {
  if (args.given("replay")) {
    for (const cli::Option& option : kOptions)
      if (!asks_what_if(args) ? option.name != "replay" && option.name != "json" && args.given(option.name)
                              : !goes_with_what_if(option.name) && args.given(option.name))
        return cli::fail(kCommand.name, "--" + std::string(option.name) + ": a record has its own; leave it out");
    if (args.given("plan") && (args.given("without") || args.given("twice")))
      return cli::fail(kCommand.name, "--plan: has partitions of its own; leave out --without and --twice");
    return asks_what_if(args) ? ask_what_if(args) : replay_record(args);
  }
  for (const char* option : {"without", "twice"})
    if (args.given(option))
      return cli::fail(kCommand.name,
                       "--" + std::string(option) + ": needs --replay RECORD, whose partitions it means");
  if (!args.given("plan"))
    return cli::fail(kCommand.name, "'--plan FILE' is missing: the plan, as leat plan writes it; or --replay RECORD");
  const auto presets = papers::read_policies(args.text("presets"));
  if (!presets) return cli::fail(kCommand.name, "--presets: " + presets.error());
  const auto sweep = read_sweep(args);
  if (!sweep) return cli::fail(kCommand.name, sweep.error());
  std::vector<double> loads = *sweep;
  loads.push_back(args.real("load"));
  const auto study = read_study(args, loads);
  if (!study) return cli::fail(kCommand.name, study.error());

  for (const core::NamedPolicy& p : *presets) {
    for (const std::string& note : p.policy.notes) std::fprintf(stderr, "%s: %s\n", p.name.c_str(), note.c_str());
    if (const std::string idle = core::idle_setting(p.policy, study->believed); !idle.empty())
      return cli::fail(kCommand.name, "--presets: " + p.name + ": " + idle);
  }
  if (args.integer("coordinated") > 0) return simulate_coordinated(args, *study, presets->front().policy);
  if (const auto status = prepare_outputs(args, *study); !status) return cli::fail(kCommand.name, status.error());

  SimResults results{.plan = args.text("plan"),
                     .first_seed = static_cast<std::uint64_t>(args.integer("seed")),
                     .load = args.real("load"),
                     .sweep_loads = *sweep,
                     .bounded = study->items.largest == 1};
  for (const std::string& t : args.texts("trace")) results.trace += (results.trace.empty() ? "" : ", ") + t;
  for (const core::NamedPolicy& p : *presets) results.presets.push_back({.name = p.name, .policy = p.policy});
  const cli::JsonOutput json(args);
  const bool table = !json.alone();
  if (table) std::printf("seed %llu\n", static_cast<unsigned long long>(results.first_seed));
  std::fflush(stdout);
  run_all(args, *study, results);
  if (table) std::printf("%s", table_text(results).c_str());
  if (json.wanted()) {
    if (const int failed = json.write(json_text(results, *study)); failed != 0) return failed;
  }
  if (args.given("report")) {
    const TimeNs at = args.given("timeline-at") ? static_cast<TimeNs>(args.real("timeline-at") * 1e9) : -1;
    if (const auto status = write_report(results, *study, args.text("report"), at); !status)
      return cli::fail(kCommand.name, status.error());
    if (table) std::printf("\npictures: %s/index.html\n", args.text("report").c_str());
  }
  if (table) std::printf("trace hash %016llx\n", static_cast<unsigned long long>(trace_hash(results)));
  if (!all_drained(results)) {
    std::fprintf(
        stderr,
        "leat sim: requests were left without an answer a minute after the last arrival; see \"drained\" in --json\n");
    return 1;
  }
  return 0;
}

}  // namespace

extern const cli::Subcommand kLeatSim;
const cli::Subcommand kLeatSim = {.command = &kCommand, .run = run};

}  // namespace leat::tools
