#include "tools/leat/profile/profiler.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/exec/model_files/sha256.h"
#include "engine/exec/module.h"
#include "engine/exec/onnx/libraries/onnx_library.h"
#include "engine/exec/onnx/onnx_split.h"
#include "planner/io/profile_io.h"
#include "tools/base/cli/progress.h"
#include "tools/base/cores/cores.h"
#include "tools/base/documents/text_file.h"

namespace leat::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kWarmRuns = 2;         // not counted
constexpr std::uint32_t kMinSamples = 5;       // whatever the time
constexpr std::uint32_t kSegmentSamples = 40;  // for the grouping
constexpr double kSegmentSeconds = 4;
constexpr std::uint32_t kVerifyRuns = 2;  // inputs drawn for each batch and set of weights

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string machine() {
  std::string cpu = "unknown processor", line;
  for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    cpu = line.substr(std::min(line.size(), line.find(':') + 2));
    break;
  }
  utsname name{};
  (void)uname(&name);
  return cpu + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores, " + name.sysname + " " + name.release +
         " " + name.machine;
}

std::string today() {
  const time_t now = time(nullptr);
  tm utc{};
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  return text;
}

// A model under a name of its own in the temporary folder, removed at the end.
class TemporaryModel {
 public:
  explicit TemporaryModel(const std::string& bytes) {
    std::error_code failed;
    path_ = (fs::temp_directory_path(failed) / "leat-profile-XXXXXX").string();
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) return;
    ::close(fd);
    std::ofstream file(path_, std::ios::binary);
    written_ = static_cast<bool>(file << bytes << std::flush);
  }
  ~TemporaryModel() { ::unlink(path_.c_str()); }
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  bool written() const { return written_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool written_ = false;
};

class Profiler {
 public:
  explicit Profiler(ProfileJob job) : job_(std::move(job)) {}
  Result<ProfileRun> run();

 private:
  Status look_at_model();
  Status look_at_host();
  Status choose_cuts();
  Status resume();
  Status cut_anew();
  [[nodiscard]] const exec::OnnxCut* cut_of(const std::string& tensor) const;  // null: it cannot be cut there
  Status fill_in();
  Status write_blocks();
  Status verify();
  Result<double> difference(const std::string& model_path, cli::Progress& progress);
  Status measure();
  Status measure_class(std::uint32_t cores, std::uint32_t share, cli::Progress& progress, std::uint64_t& done);
  Status measure_sizes(Runner& chain, std::uint32_t cores, std::uint32_t share, cli::Progress& progress,
                       std::uint64_t done);
  Result<std::vector<std::vector<std::int64_t>>> sample(Runner& chain, std::uint32_t batch, std::uint32_t samples,
                                                        double seconds, cli::Progress& progress, std::uint64_t done,
                                                        exec::Size size = {});
  bool measured(std::uint32_t cores, std::uint32_t share, std::uint32_t batch) const;
  std::string class_of(std::uint32_t cores) const {
    return job_.device != nullptr ? job_.device_class : "cpu:" + std::to_string(cores);
  }
  Error wrong(const std::string& text) const { return Error{job_.model_path + ": " + text}; }

  ProfileJob job_;
  ProfileRun out_;
  std::optional<exec::OnnxGraph> graph_;
  std::string sha256_;
  std::vector<std::uint32_t> usable_;  // this host's cores
};

Status Profiler::look_at_model() {
  auto graph = exec::OnnxGraph::read(job_.model_path);
  if (!graph) return Error{graph.error()};
  graph_.emplace(std::move(*graph));
  std::ifstream file(job_.model_path, std::ios::binary);
  auto sum = exec::sha256_hex(std::string{std::istreambuf_iterator<char>(file), {}});
  if (!sum) return Error{sum.error()};
  sha256_ = std::move(*sum);
  out_.cut_points = graph_->cuts().size();
  if (const auto shape = graph_->input_shape(); job_.around && shape.size() == 3) {
    job_.around->picture_height = static_cast<std::uint32_t>(shape[1]);
    job_.around->picture_width = static_cast<std::uint32_t>(shape[2]);
  }
  const std::int64_t fixed = graph_->fixed_batch();
  if (fixed > 1)
    return wrong("fixes the batch at " + std::to_string(fixed) +
                 "; export it with an open batch dimension, or a batch of 1");
  if (job_.batches.empty())
    job_.batches = fixed == 1 ? std::vector<std::uint32_t>{1} : std::vector<std::uint32_t>{1, 2, 4, 8};
  if (fixed == 1 && job_.batches.back() > 1) {
    job_.batches = {1};
    out_.note =
        "the model fixes the batch at 1, so batches of 1 alone are measured; leatd runs the items of a larger "
        "batch one by one";
  }
  if (job_.blocks > out_.cut_points + 1) {
    const std::string why =
        graph_->why_few_cuts().empty() ? "" : " (shapes are not known: " + graph_->why_few_cuts() + ")";
    return wrong("has " + std::to_string(out_.cut_points) + " cut points" + why + ", so at most " +
                 std::to_string(out_.cut_points + 1) + " blocks; pass --blocks " + std::to_string(out_.cut_points + 1) +
                 " or fewer");
  }
  if (!exec::onnx_library()) return Error{exec::onnx_library().error()};
  return Done{};
}

Status Profiler::look_at_host() {
  auto usable = usable_cores();
  if (!usable) return Error{usable.error()};
  usable_ = std::move(*usable);
  for (const auto n : job_.cores) {
    if (n > usable_.size())
      return Error{"this host offers " + std::to_string(usable_.size()) + " cores, none is left for " + class_of(n) +
                   "; name a smaller partition"};
    if (job_.neighbours > 0 && n == usable_.size())
      return Error{class_of(n) +
                   " takes every core of this host, none is left for busy neighbours; name a smaller partition, or "
                   "pass --neighbours 0"};
  }
  const std::string folder = fs::path(job_.output).parent_path().string();
  if (!job_.output.empty() && ::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    return Error{job_.output + ": cannot be written: " + std::strerror(errno) +
                 "; make its folder, or name another file with --output"};
  return Done{};
}

// From the file that an earlier run left, if there is one of this model.
Status Profiler::resume() {
  auto old = planner::read_profile(job_.output);
  const std::string cure = "; name another file with --output, or pass --fresh to replace it";
  if (!old) return Error{old.error() + cure};
  const planner::Provenance& was = old->provenance;
  const planner::Provenance& is = out_.profile.provenance;
  const auto differs = [&](const std::string& what, const std::string& then, const std::string& now) {
    return Error{job_.output + ": was measured with " + what + " '" + then + "', this run has '" + now + "'" + cure};
  };
  if (was.model_sha256 != is.model_sha256)
    return differs("the model file of sha256", was.model_sha256.substr(0, 12), is.model_sha256.substr(0, 12));
  if (old->model != job_.model) return differs("the name", old->model, job_.model);
  if (old->blocks != job_.blocks)
    return differs("the number of blocks", std::to_string(old->blocks), std::to_string(job_.blocks));
  if (was.machine != is.machine) return differs("the machine", was.machine, is.machine);
  if (was.libraries != is.libraries) return differs("the libraries", was.libraries, is.libraries);
  if (was.method != is.method) return differs("the method", was.method, is.method);
  out_.profile.cuts = old->cuts;
  out_.profile.rows = std::move(old->rows), out_.profile.sizes = std::move(old->sizes);
  out_.kept = out_.profile.rows.size();
  return Done{};
}

// Times every segment between neighbouring candidates at the largest batch (what plans for throughput run), then
// groups. A cut that undoes a fusion is a candidate only where there are too few others.
Status Profiler::cut_anew() {
  if (job_.blocks == 1) return Done{};
  std::vector<std::string> names;
  std::vector<std::uint64_t> bytes;
  for (const bool all : {false, true}) {
    if (names.size() + 1 >= job_.blocks) break;
    names.clear(), bytes.clear();
    for (const auto& c : graph_->cuts()) {
      if (all || !c.fuses) names.push_back(c.tensor), bytes.push_back(c.item_bytes);
    }
  }
  const std::uint32_t cores = job_.cores.front();
  if (auto pinned = pin_thread({usable_.data(), cores}); !pinned) return Error{pinned.error()};
  cli::Progress progress("looking for blocks", names.size() + 1 + kSegmentSamples, "steps");
  auto chain = open_runner({.model_path = job_.model_path,
                            .cuts = names,
                            .batch_max = job_.batches.back(),
                            .threads = cores,
                            .around = job_.around,
                            .device = job_.device},
                           &progress);
  if (!chain) return Error{chain.error()};
  auto times = sample(**chain, job_.batches.back(), kSegmentSamples, kSegmentSeconds, progress, names.size() + 1);
  if (!times) return Error{times.error()};
  std::vector<std::int64_t> segments;
  for (auto& t : *times) segments.push_back(summary(std::move(t)).p50_ns);
  const Grouping grouping = group(segments, bytes, job_.blocks, job_.by, job_.balance);
  for (const auto c : grouping.cuts) {
    const bool half = job_.half_boundaries && cut_of(names[c])->single;
    out_.profile.cuts.push_back(half ? exec::half_cut(names[c]) : names[c]);
  }
  out_.segment_ns = std::move(segments);
  return Done{};
}

const exec::OnnxCut* Profiler::cut_of(const std::string& tensor) const {
  const auto& all = graph_->cuts();
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& c) { return c.tensor == tensor; });
  return at == all.end() ? nullptr : &*at;
}

// What follows from the cuts.
Status Profiler::fill_in() {
  planner::Profile& p = out_.profile;
  for (const auto& name : p.cuts) {
    const exec::OnnxCut* const cut = cut_of(exec::tensor_of_cut(name));
    if (cut == nullptr)
      return Error{job_.output + ": names a cut '" + name +
                   "' that the model does not have; pass --fresh to measure anew"};
    p.boundary_bytes.push_back(static_cast<std::int64_t>(cut->item_bytes / (exec::is_half_cut(name) ? 2 : 1)));
  }
  std::uint32_t max = job_.batches.back();
  for (const auto& row : p.rows) max = std::max(max, row.batch);
  for (std::uint32_t b = 0; b < job_.blocks; ++b) {
    const auto bytes = graph_->memory_bytes(p.cuts, b, b + 1, max);
    if (!bytes) return Error{bytes.error()};
    p.block_memory_bytes.push_back(static_cast<std::int64_t>(*bytes));
  }
  return Done{};
}

Status Profiler::choose_cuts() {
  planner::Profile& p = out_.profile;
  p.model = job_.model;
  p.blocks = job_.blocks;
  p.provenance = {.machine = machine() + (job_.device != nullptr ? std::string(", ") + job_.device->info().name : ""),
                  .libraries = "ONNX Runtime " + exec::onnx_library()->version + ", Leat " LEAT_VERSION,
                  .date = today(),
                  .method = "",
                  .model_sha256 = sha256_};
  p.provenance.method = std::string("leat profile: executor onnx, blocks grouped by ") +
                        (job_.by == GroupBy::time ? "measured time" : "bytes crossing") + ", " +
                        std::to_string(job_.neighbours) + " busy neighbours on other cores" +
                        (job_.half_boundaries ? ", float16 between blocks" : "");
  if (job_.around) {
    p.provenance.method += ", module " + job_.around->name + " with pre- and post-processing of " +
                           std::to_string(job_.around->frame_width) + "x" + std::to_string(job_.around->frame_height) +
                           " frames";
  }
  std::error_code failed;
  const bool there = !job_.fresh && !job_.output.empty() && fs::exists(job_.output, failed);
  auto status = there ? resume() : cut_anew();
  return status ? fill_in() : status;
}

Status Profiler::write_blocks() {
  if (job_.blocks_folder.empty()) return Done{};
  std::error_code failed;
  fs::create_directories(job_.blocks_folder, failed);
  for (std::uint32_t b = 0; b < job_.blocks; ++b) {
    const auto bytes = graph_->block(out_.profile.cuts, b, b + 1);
    if (!bytes) return Error{bytes.error()};
    const std::string path = job_.blocks_folder + "/" + job_.model + ".block" + std::to_string(b) + ".onnx";
    if (auto written = write_text_file(path, *bytes); !written) return written;
  }
  return Done{};
}

// The largest difference between the whole model and its blocks behind each other, over batches and inputs.
Result<double> Profiler::difference(const std::string& model_path, cli::Progress& progress) {
  const std::uint32_t max = job_.batches.back();
  auto whole =
      Chain::open({.model_path = model_path, .cuts = {}, .batch_max = max, .threads = 1, .around = {}}, &progress);
  if (!whole) return Error{whole.error()};
  auto blocks = Chain::open(
      {.model_path = model_path, .cuts = out_.profile.cuts, .batch_max = max, .threads = 1, .around = {}}, &progress);
  if (!blocks) return Error{blocks.error()};
  std::vector<std::int64_t> ns(job_.blocks);
  double worst = 0;
  for (const std::uint32_t batch : {1u, max}) {
    for (std::uint32_t i = 0; i < kVerifyRuns; ++i) {
      for (Chain* chain : {&*whole, &*blocks}) {
        if (auto s = chain->prepare(batch, job_.seed + i); !s) return Error{s.error()};
        if (auto s = chain->run(ns); !s) return Error{s.error()};
      }
      const auto expected = whole->answer();
      if (!std::all_of(expected.begin(), expected.end(), [](double v) { return std::isfinite(v); }))
        return wrong("answers infinity or no number on normally distributed inputs (seed " +
                     std::to_string(job_.seed + i) + "); nothing can be compared, leave --verify out");
      worst = std::max(worst, relative_difference(expected, blocks->answer()));
      ++out_.verified->runs;
      progress.add(1);
    }
  }
  return worst;
}

Status Profiler::verify() {
  if (!job_.verify) return Done{};
  out_.verified.emplace();
  cli::Progress progress("comparing blocks with the whole", 2 * (job_.blocks + 1 + 2 * kVerifyRuns), "steps");
  const auto own = difference(job_.model_path, progress);
  if (!own) return Error{own.error()};
  out_.verified->own_weights = *own;
  if (graph_->external_weights()) return Done{};
  graph_->randomize_weights(job_.seed);
  const auto bytes = graph_->serialize();
  if (!bytes) return Error{bytes.error()};
  const TemporaryModel model(*bytes);
  if (!model.written())
    return Error{model.path() + ": cannot be written; make room in the temporary folder, or set TMPDIR"};
  const auto drawn = difference(model.path(), progress);
  if (!drawn) return Error{drawn.error()};
  out_.verified->random_weights = *drawn;
  return Done{};
}

bool Profiler::measured(std::uint32_t cores, std::uint32_t share, std::uint32_t batch) const {
  return std::any_of(out_.profile.rows.begin(), out_.profile.rows.end(), [&](const auto& r) {
    return r.partition_class == class_of(cores) && r.share == share && r.batch == batch;
  });
}

// [block][sample], after the warm runs.
Result<std::vector<std::vector<std::int64_t>>> Profiler::sample(Runner& chain, std::uint32_t batch,
                                                                std::uint32_t samples, double seconds,
                                                                cli::Progress& progress, std::uint64_t done,
                                                                exec::Size size) {
  if (auto s = chain.prepare(batch, job_.seed); !s) return Error{s.error()};
  if (size != exec::Size{}) chain.show(size);
  std::vector<std::vector<std::int64_t>> out(chain.blocks());
  std::vector<std::int64_t> ns(chain.blocks());
  for (std::uint32_t i = 0; i < kWarmRuns; ++i) {
    if (auto s = chain.run(ns); !s) return Error{s.error()};
  }
  const auto start = Clock::now();
  for (std::uint32_t i = 0; i < samples && (i < kMinSamples || seconds_since(start) < seconds); ++i) {
    if (auto s = chain.run(ns); !s) return Error{s.error()};
    for (std::size_t b = 0; b < ns.size(); ++b) out[b].push_back(ns[b]);
    progress.set(done + i + 1);
  }
  return out;
}

Status Profiler::measure_class(std::uint32_t cores, std::uint32_t share, cli::Progress& progress, std::uint64_t& done) {
  const std::span mine(usable_.data(), cores);
  if (auto pinned = pin_thread(mine); !pinned) return Error{pinned.error()};
  const ChainSpec spec{.model_path = job_.model_path,
                       .cuts = out_.profile.cuts,
                       .batch_max = job_.batches.back(),
                       .threads = cores,
                       .around = job_.around,
                       .device = job_.device};
  auto chain = open_runner(spec);
  if (!chain) return Error{chain.error()};
  std::vector<std::vector<std::uint32_t>> busy(share - 1, {mine.begin(), mine.end()});
  for (std::uint32_t i = 0; i < job_.neighbours; ++i) busy.push_back({usable_[cores + i % (usable_.size() - cores)]});
  for (const auto batch : job_.batches) {
    if (measured(cores, share, batch)) continue;
    BusyNeighbours neighbours;
    if (auto started = neighbours.start(spec, batch, busy); !started) return started;
    if (batch == 1)
      if (auto status = measure_sizes(**chain, cores, share, progress, done); !status) return status;
    auto times = sample(**chain, batch, job_.samples, job_.seconds, progress, done);
    if (!times) return Error{times.error()};
    progress.set(done += job_.samples, class_of(cores) + " batch " + std::to_string(batch));
    planner::ProfileRow row{.partition_class = class_of(cores), .share = share, .batch = batch, .blocks = {}};
    for (auto& t : *times) row.blocks.push_back(share > 1 ? summary_of_share(std::move(t)) : summary(std::move(t)));
    out_.profile.rows.push_back(std::move(row));
    ++out_.measured;
    if (job_.output.empty()) continue;
    if (auto written = planner::write_profile(job_.output, out_.profile); !written) return written;
  }
  return Done{};
}

// One picture of each size, beside the same neighbours; nothing where there is one size.
Status Profiler::measure_sizes(Runner& chain, std::uint32_t cores, std::uint32_t share, cli::Progress& progress,
                               std::uint64_t done) {
  auto& rows = out_.profile.sizes;
  std::erase_if(rows, [&](const auto& r) { return r.partition_class == class_of(cores) && r.share == share; });
  for (const exec::Size size : chain.sizes()) {
    auto times = sample(chain, 1, job_.samples, job_.seconds, progress, done, size);
    if (!times) return Error{times.error()};
    std::vector<std::int64_t> whole(times->front().size(), 0);
    for (const auto& block : *times)
      for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += block[i];
    rows.push_back({.partition_class = class_of(cores),
                    .share = share,
                    .width = size.width,
                    .height = size.height,
                    .latency = share > 1 ? summary_of_share(std::move(whole)) : summary(std::move(whole))});
  }
  return Done{};
}

Status Profiler::measure() {
  std::uint64_t rows = 0, done = 0;
  for (const auto cores : job_.cores)
    for (const auto share : job_.shares)
      for (const auto batch : job_.batches) rows += measured(cores, share, batch) ? 0 : 1;
  cli::Progress progress("leat profile", rows * job_.samples, "batches");
  for (const auto cores : job_.cores) {
    for (const auto share : job_.shares) {
      const bool whole =
          std::all_of(job_.batches.begin(), job_.batches.end(), [&](auto b) { return measured(cores, share, b); });
      if (whole) continue;
      if (auto status = measure_class(cores, share, progress, done); !status) return status;
    }
  }
  return Done{};
}

Result<ProfileRun> Profiler::run() {
  const auto start = Clock::now();
  for (const auto step : {&Profiler::look_at_model, &Profiler::look_at_host, &Profiler::choose_cuts,
                          &Profiler::write_blocks, &Profiler::verify}) {
    if (auto status = (this->*step)(); !status) return Error{status.error()};
  }
  const bool equal = !out_.verified || out_.verified->largest() <= job_.tolerance;
  if (equal) {
    if (auto status = measure(); !status) return Error{status.error()};
  }
  out_.seconds = seconds_since(start);
  return std::move(out_);
}

}  // namespace

Result<ProfileRun> run_profile(ProfileJob job) { return Profiler(std::move(job)).run(); }

double relative_difference(std::span<const double> expected, std::span<const double> found) {
  if (expected.size() != found.size()) return HUGE_VAL;
  double scale = 0, max_apart = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double apart = std::abs(expected[i] - found[i]);
    if (!std::isfinite(apart)) return HUGE_VAL;
    scale = std::max(scale, std::abs(expected[i]));
    max_apart = std::max(max_apart, apart);
  }
  return max_apart == 0 ? 0 : max_apart / std::max(scale, 1e-30);
}

planner::Latency summary(std::vector<std::int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&](std::size_t percent) {
    return std::max<std::int64_t>(1, ns[std::min(ns.size() - 1, ns.size() * percent / 100)]);
  };
  planner::Latency out{.p50_ns = at(50), .p99_ns = at(99), .samples = static_cast<std::uint32_t>(ns.size())};
  out.spread_ns = at(75) - at(25);
  return out;
}

planner::Latency summary_of_share(std::vector<std::int64_t> ns) {
  const double mean = std::accumulate(ns.begin(), ns.end(), 0.0) / static_cast<double>(ns.size());
  planner::Latency out = summary(std::move(ns));
  out.p50_ns = std::max<std::int64_t>(out.p50_ns, std::llround(mean));
  out.p99_ns = std::max(out.p99_ns, out.p50_ns);
  return out;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

Result<std::vector<std::uint32_t>> parse_numbers(const std::string& what, const std::string& text, std::uint32_t low,
                                                 std::uint32_t high) {
  std::vector<std::uint32_t> out;
  for (const auto& word : split_list(text)) {
    std::uint32_t value = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failed != std::errc{} || end != word.data() + word.size() || value < low || value > high)
      return Error{what + ": '" + word + "' is not a whole number from " + std::to_string(low) + " to " +
                   std::to_string(high) + "; write them like 1,2,4"};
    out.push_back(value);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<std::uint32_t> parse_class(const std::string& text, std::size_t usable) {
  const std::string digits = text.starts_with("cpu:") ? text.substr(4) : text;
  std::uint32_t cores = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), cores);
  if (failed != std::errc{} || end != digits.data() + digits.size() || cores < 1)
    return Error{"--partitions: '" + text +
                 "' is no partition this program can measure; write the cores of a CPU partition, like 2 or cpu:2"};
  if (cores > usable)
    return Error{"--partitions: '" + text + "' has more cores than the " + std::to_string(usable) +
                 " this host offers; name a smaller partition"};
  return cores;
}

}  // namespace leat::tools
