// leat profile: measures an ONNX model on this host's partitions and writes the profile that plans are made of.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/workers/gpu_tool.h"
#include "engine/exec/device_plugin.h"
#include "engine/exec/module.h"
#include "planner/io/profile_io.h"
#include "planner/partition_kind.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cores/cores.h"
#include "tools/base/json/json.h"
#include "tools/base/text/units.h"
#include "tools/leat/commands.h"
#include "tools/leat/profile/profiler.h"

namespace leat::tools {
namespace {

constexpr int kBlocksDiffer = 1;
constexpr double kWideSpread = 0.25;
constexpr unsigned kMaxPixels = 16384;  // of a frame's side

constexpr cli::Option kOptions[] = {
    {.name = "partitions",
     .letter = 'p',
     .type = cli::Type::text,
     .value = "N,...",
     .fallback = "1",
     .help = "classes of partition to measure: cores of a CPU partition each (class cpu:N)"},
    {.name = "gpu",
     .type = cli::Type::text,
     .value = "UUID[:PERCENT]",
     .help =
         "instead of cores: a GPU, a MIG device, or a share of one's multiprocessors; measures the class gpu, mig or "
         "mps:PERCENT"},
    {.name = "batches",
     .letter = 'b',
     .type = cli::Type::text,
     .value = "B,...",
     .help = "items of a batch; batch 1 is always measured (default: 1,2,4,8, or 1 where the model fixes it)"},
    {.name = "blocks",
     .letter = 'n',
     .type = cli::Type::integer,
     .value = "N",
     .fallback = "1",
     .min = 1,
     .max = 4096,
     .help = "groups of consecutive layers that plans may put on different partitions"},
    {.name = "group",
     .type = cli::Type::choice,
     .choices = "time|bytes",
     .fallback = "time",
     .help = "blocks of about equal measured time, or the fewest bytes crossing between blocks that --balance allows"},
    cli::real_option("balance", "1.2", 1, 100,
                     "with --group bytes: no block is longer than X times the best possible longest", "X"),
    {.name = "shares",
     .type = cli::Type::text,
     .value = "V,...",
     .fallback = "1",
     .help = "1/V of a partition each: V - 1 busy neighbours run on the same cores"},
    cli::integer_option("neighbours", "0", 0, 256, "busy neighbours on the other cores while measuring"),
    cli::integer_option("samples", "200", 5, 1000000, "runs of each class, share and batch"),
    cli::real_option("seconds", "5", 0, 3600, "at most so long for each of them; 5 runs are made in any case", "S"),
    {.name = "output",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "the profile (default: MODEL.profile.json here); a run that was interrupted goes on from it"},
    {.name = "fresh", .help = "replace the file instead of going on from it"},
    {.name = "model",
     .type = cli::Type::text,
     .value = "NAME",
     .help = "the name that applications use (default: the file's, without its ending)"},
    {.name = "config",
     .letter = 'c',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "leatd's configuration that runs this model: its pre- and post-processing are measured with it"},
    {.name = "module",
     .type = cli::Type::text,
     .value = "NAME",
     .help = "with --config: which, where several run this model (APPLICATION/MODULE)"},
    {.name = "frame",
     .type = cli::Type::text,
     .value = "WxH",
     .fallback = "1280x720",
     .help = "with --config: size of the NV12 frames that are pre-processed"},
    {.name = "half-boundaries",
     .help = "blocks hand float16 to the next in place of float32: half the bytes between partitions, and answers that "
             "differ a little (--verify says how much; its tolerance is 1e-2 then unless you say another)"},
    {.name = "verify",
     .help =
         "first check that the blocks behind each other equal the whole model, with its weights and with random ones"},
    cli::real_option("tolerance", "1e-4", 0, 1,
                     "with --verify: largest difference, relative to the answer's largest value", "X"),
    cli::integer_option("seed", "1", 0, 1e15, "of the inputs and of the random weights"),
    {.name = "write-blocks",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "write each block as an ONNX model of its own, DIR/NAME.blockK.onnx"},
    cli::json_option("print the summary as JSON in place of text"),
};
constexpr cli::Positional kPositionals[] = {{.name = "MODEL.onnx", .help = "the model"}};
constexpr cli::Example kExamples[] = {
    {.line = "leat profile detect.onnx --partitions 1,2 --batches 1,2,4,8 -o profiles/detect.json",
     .text = "on one core and on two"},
    {.line = "leat profile detect.onnx --blocks 3 --verify",
     .text = "in three blocks of about equal time, checked against the whole"},
    {.line = "leat profile tools/models/shapes/detect.onnx --config tools/models/shapes/shapes.toml -o "
             "profiles/detect.json",
     .text = "as leatd runs it, from the frame to its boxes"},
    {.line = "leat profile detect.onnx --gpu GPU-...:25 -o profiles/detect.json",
     .text = "on a quarter of a GPU's multiprocessors; class mps:25"},
    {.line = "leat plan --application street.toml --host auto --profiles profiles/ -o plan.json",
     .text = "what to do with profiles"},
};
constexpr cli::Command kCommand = {
    .name = "leat profile",
    .summary = "measures a model's latency by block, batch and partition",
    .description =
        "Finds the places where the model can be cut (where one tensor alone is handed on), groups its layers into "
        "blocks, "
        "and measures each block's median, 99th percentile and spread on each class of partition.\n\n"
        "The file is written after each class, share and batch, as a whole; a run that was interrupted goes on where "
        "it "
        "stopped, and a later run may add classes and batches. A file of another model, machine or method is refused. "
        "Measure on an otherwise idle machine.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-plan(1), leatd(8)",
    .exit_status = "0: measured; 1: --verify found blocks that differ from the whole model; 2: bad input"};

// The module of the configuration that runs this model.
Result<ModuleAround> module_of(const std::string& file, const std::string& model_path, const std::string& wanted) {
  const auto config = daemon::read_config(file);
  if (!config) return Error{config.error()};
  std::vector<ModuleAround> found;
  std::string names;
  for (const auto& app : config->applications) {
    for (std::size_t m = 0; m < app.modules.size(); ++m) {
      const auto& module = app.modules[m];
      std::error_code failed;
      const std::string name = app.application.name + "/" + app.application.modules[m].name;
      if (module.executor != "onnx" || !std::filesystem::equivalent(module.model_path, model_path, failed) ||
          (!wanted.empty() && wanted != name))
        continue;
      found.push_back({.name = name,
                       .as = module.as,
                       .preprocess = module.preprocess,
                       .postprocess = module.postprocess,
                       .labels = module.labels,
                       .extra = module.extra});
      found.back().crops = !app.application.modules[m].after.empty();
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  if (found.empty())
    return Error{file + ": has no module " + (wanted.empty() ? "" : "'" + wanted + "' ") + "that runs " + model_path +
                 "; name the configuration that does, or leave --config out"};
  if (found.size() > 1)
    return Error{file + ": several modules run " + model_path + ": " + names + "; name one with --module"};
  return found.front();
}

Status read_frame(const std::string& text, ModuleAround& around) {
  unsigned width = 0, height = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%ux%u%c", &width, &height, &rest) != 2 || width < 2 || height < 2 ||
      width > kMaxPixels || height > kMaxPixels || width % 2 + height % 2 != 0)
    return Error{"--frame: '" + text + "' is no size of a frame; write it like 1280x720, both even"};
  around.frame_width = width, around.frame_height = height;
  return Done{};
}

Result<ProfileJob> job_from(const cli::Arguments& args) {
  ProfileJob job;
  job.model_path = args.positionals()[0];
  job.model = args.given("model") ? args.text("model") : std::filesystem::path(job.model_path).stem().string();
  job.output = args.given("output") ? args.text("output") : job.model + ".profile.json";
  if (const auto folder = std::filesystem::path(job.output).parent_path(); !folder.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) return Error{"--output: the folder " + folder.string() + " cannot be made: " + failed.message()};
  }
  const auto usable = usable_cores();
  if (!usable) return Error{usable.error()};
  for (const auto& word : split_list(args.text("partitions"))) {
    const auto cores = parse_class(word, usable->size());
    if (!cores) return Error{cores.error()};
    if (std::find(job.cores.begin(), job.cores.end(), *cores) == job.cores.end()) job.cores.push_back(*cores);
  }
  if (args.given("batches")) {
    auto batches = parse_numbers("--batches", args.text("batches"), 1, exec::kMaxRows);
    if (!batches) return Error{batches.error()};
    job.batches = std::move(*batches);
    if (job.batches.front() != 1) job.batches.insert(job.batches.begin(), 1);
  }
  auto shares = parse_numbers("--shares", args.text("shares"), 1, 64);
  if (!shares) return Error{shares.error()};
  job.shares = std::move(*shares);
  job.neighbours = static_cast<std::uint32_t>(args.integer("neighbours"));
  job.blocks = static_cast<std::uint32_t>(args.integer("blocks"));
  job.by = args.text("group") == "bytes" ? GroupBy::bytes : GroupBy::time;
  job.balance = args.real("balance");
  job.samples = static_cast<std::uint32_t>(args.integer("samples"));
  job.seconds = args.real("seconds");
  job.fresh = args.flag("fresh");
  job.verify = args.flag("verify");
  job.half_boundaries = args.flag("half-boundaries");
  job.tolerance = job.half_boundaries && !args.given("tolerance") ? 1e-2 : args.real("tolerance");
  job.seed = static_cast<std::uint64_t>(args.integer("seed"));
  if (args.given("config")) {
    auto around = module_of(args.text("config"), job.model_path, args.given("module") ? args.text("module") : "");
    if (!around) return Error{around.error()};
    if (auto frame = read_frame(args.text("frame"), *around); !frame) return Error{frame.error()};
    job.around = std::move(*around);
  } else if (args.given("module") || args.given("frame")) {
    return Error{std::string("--") + (args.given("module") ? "module" : "frame") +
                 ": says something only with --config; add the configuration, or leave it out"};
  }
  if (args.given("write-blocks")) job.blocks_folder = args.text("write-blocks");
  if (!args.given("gpu")) return job;
  for (const char* other : {"partitions", "shares", "neighbours"})
    if (args.given(other)) return Error{std::string("--") + other + ": is for cores; leave it out with --gpu"};
  job.cores = {1};
  job.neighbours = 0;
  job.shares = {1};
  return job;
}

// A device of this process, and the MPS daemon that a share of it needs. Both are gone with it.
struct ProfiledGpu {
  std::unique_ptr<daemon::MpsKeeper> keeper;
  std::unique_ptr<exec::Device> device;
};

// Sets what the driver reads before it is loaded.
Result<ProfiledGpu> open_gpu(const std::string& text, ProfileJob& job) {
  const std::size_t colon = text.find(':');
  daemon::PartitionConfig partition;
  partition.partition.name = "--gpu";
  partition.gpu.uuid = text.substr(0, colon);
  if (!partition.gpu.uuid.starts_with("MIG-") && !partition.gpu.uuid.starts_with("GPU-"))
    return Error{"--gpu: '" + text + "' is no UUID of a GPU or MIG device; `leat-gpu list` shows them"};
  if (colon != std::string::npos) {
    const auto percent = parse_numbers("--gpu", text.substr(colon + 1), 1, 100);
    if (!percent) return Error{percent.error()};
    partition.gpu.percent = percent->front();
  }
  const planner::PartitionKind kind = planner::standard_kind(false, partition.gpu.uuid, partition.gpu.percent != 0);
  partition.partition.kind = kind;
  partition.gpu.plugin = row_of(kind).plugin;
  job.device_class = planner::standard_class(kind, "", 0, partition.gpu.percent);
  std::vector<daemon::PartitionConfig> partitions = {partition};
  if (auto found = daemon::locate_gpus(partitions); !found) return Error{found.error()};
  ProfiledGpu out;
  ::setenv("CUDA_VISIBLE_DEVICES", partition.gpu.uuid.c_str(), 1);
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
  if (partition.gpu.percent != 0) {
    auto keeper = daemon::MpsKeeper::start(partition.gpu.uuid, "");
    if (!keeper.ok()) return Error{keeper.error()};
    out.keeper = std::move(*keeper);
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", out.keeper->pipe_directory().c_str(), 1);
    ::setenv("CUDA_MPS_LOG_DIRECTORY", out.keeper->log_directory().c_str(), 1);
    ::setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(partition.gpu.percent).c_str(), 1);
  }
  auto device = exec::Device::open(partition.gpu.plugin, partition.gpu.uuid);
  if (!device.ok()) return Error{device.error()};
  const std::uint32_t all = partitions[0].gpu.multiprocessors, seen = (*device)->info().multiprocessors;
  if (partition.gpu.percent != 0 && partition.gpu.percent < 93 && all != 0 && seen >= all)
    return Error{"a share of " + std::to_string(partition.gpu.percent) + " % sees all " + std::to_string(all) +
                 " multiprocessors: it does not reach its MPS daemon"};
  out.device = std::move(*device);
  job.device = out.device.get();
  return out;
}

struct RowSum {
  std::int64_t p50_ns = 0, spread_ns = 0;
  std::vector<std::int64_t> block_ns;
};
RowSum sum_of(const planner::ProfileRow& row) {
  RowSum out;
  for (const auto& b : row.blocks)
    out.p50_ns += b.p50_ns, out.spread_ns += b.spread_ns, out.block_ns.push_back(b.p50_ns);
  return out;
}

// Empty, or that others were at work: a partition of its own, and still times that differ much.
std::string doubt_about(const planner::Profile& profile) {
  std::size_t own = 0, wide = 0;
  for (const auto& row : profile.rows) {
    if (row.share > 1) continue;
    const RowSum sum = sum_of(row);
    ++own;
    wide += static_cast<double>(sum.spread_ns) > kWideSpread * static_cast<double>(sum.p50_ns) ? 1 : 0;
  }
  if (wide * 2 <= own) return {};
  return std::to_string(wide) + " of " + std::to_string(own) +
         " rows spread by more than a quarter of their median: other programs were at work; measure again on an idle "
         "machine, with --fresh";
}

Json to_json(const ProfileJob& job, const ProfileRun& run) {
  const planner::Profile& p = run.profile;
  Json out = {{"file", job.output},
              {"model", p.model},
              {"module", job.around ? job.around->name : ""},
              {"model_sha256", p.provenance.model_sha256},
              {"cut_points", run.cut_points},
              {"blocks", p.blocks},
              {"cuts", p.cuts},
              {"boundary_bytes", p.boundary_bytes},
              {"measured_rows", run.measured},
              {"kept_rows", run.kept},
              {"seconds", run.seconds}};
  if (run.verified) {
    out["verified"] = {
        {"runs", run.verified->runs}, {"difference", run.verified->own_weights}, {"tolerance", job.tolerance}};
    if (run.verified->random_weights) out["verified"]["difference_random_weights"] = *run.verified->random_weights;
  }
  if (!run.segment_ns.empty()) out["segment_ns"] = run.segment_ns;
  out["warnings"] = Json::array();
  if (!run.note.empty()) out["warnings"].push_back(run.note);
  if (const std::string doubt = doubt_about(p); !doubt.empty()) out["warnings"].push_back(doubt);
  out["rows"] = Json::array();
  for (const auto& row : p.rows) {
    const RowSum sum = sum_of(row);
    out["rows"].push_back({{"class", row.partition_class},
                           {"share", row.share},
                           {"batch", row.batch},
                           {"p50_ns", sum.p50_ns},
                           {"block_p50_ns", sum.block_ns},
                           {"imbalance", imbalance(sum.block_ns)},
                           {"items_per_second", row.batch * 1e9 / static_cast<double>(sum.p50_ns)}});
  }
  for (const auto& row : p.sizes)
    out["sizes"].push_back({{"class", row.partition_class},
                            {"share", row.share},
                            {"width", row.width},
                            {"height", row.height},
                            {"p50_ns", row.latency.p50_ns}});
  return out;
}

void print(const ProfileJob& job, const ProfileRun& run) {
  const planner::Profile& p = run.profile;
  std::printf("%s: %zu cut points, %u block%s", p.model.c_str(), run.cut_points, p.blocks, p.blocks == 1 ? "" : "s");
  for (std::size_t i = 0; i < p.cuts.size(); ++i)
    std::printf("%s %s (%s)", i == 0 ? ", cut at" : ",", p.cuts[i].c_str(),
                text::bytes_text(static_cast<std::uint64_t>(p.boundary_bytes[i])).c_str());
  std::printf("\n");
  if (!run.segment_ns.empty()) {
    const double max = static_cast<double>(*std::max_element(run.segment_ns.begin(), run.segment_ns.end()));
    std::printf("%zu stretches between cuts; the longest takes %.0f %% of the whole, %.0f %% would be an equal block\n",
                run.segment_ns.size(), 100 * max / std::accumulate(run.segment_ns.begin(), run.segment_ns.end(), 0.0),
                100.0 / p.blocks);
  }
  if (run.verified) {
    std::printf("blocks equal the whole model: difference %.2g with its weights, ", run.verified->own_weights);
    if (run.verified->random_weights) std::printf("%.2g with random ones, ", *run.verified->random_weights);
    std::printf("relative to the largest value (%u runs)\n", run.verified->runs);
  }
  std::printf("  %-8s %5s %5s %10s %9s %10s  %s\n", "class", "share", "batch", "p50 ms", "spread", "items/s",
              p.blocks > 1 ? "blocks, ms (longest over mean)" : "");
  for (const auto& row : p.rows) {
    const RowSum sum = sum_of(row);
    std::printf("  %-8s %5u %5u %10.3f %7.1f %% %10.1f  ", row.partition_class.c_str(), row.share, row.batch,
                static_cast<double>(sum.p50_ns) / 1e6,
                100.0 * static_cast<double>(sum.spread_ns) / static_cast<double>(sum.p50_ns),
                row.batch * 1e9 / static_cast<double>(sum.p50_ns));
    for (std::size_t b = 0; b < sum.block_ns.size() && p.blocks > 1; ++b)
      std::printf("%.3f ", static_cast<double>(sum.block_ns[b]) / 1e6);
    if (p.blocks > 1) std::printf("(%.3f)", imbalance(sum.block_ns));
    std::printf("\n");
  }
  for (const auto& row : p.sizes)
    std::printf("  %-8s %5u       %10.3f  one picture of %ux%u\n", row.partition_class.c_str(), row.share,
                static_cast<double>(row.latency.p50_ns) / 1e6, row.width, row.height);
  if (!run.note.empty()) std::printf("  note: %s\n", run.note.c_str());
  if (const std::string doubt = doubt_about(p); !doubt.empty()) std::printf("  warning: %s\n", doubt.c_str());
  std::printf("%s: %zu measured, %zu kept from before, %.1f s\n", job.output.c_str(), run.measured, run.kept,
              run.seconds);
}

int run(const cli::Arguments& args) {
  auto job = job_from(args);
  if (!job) return cli::fail(kCommand.name, job.error());
  ProfiledGpu gpu;
  if (args.given("gpu")) {
    auto opened = open_gpu(args.text("gpu"), *job);
    if (!opened.ok()) return cli::fail(kCommand.name, opened.error());
    gpu = std::move(*opened);
  }
  const auto result = run_profile(*job);
  if (!result) return cli::fail(kCommand.name, result.error());
  const auto& v = result->verified;
  if (v && v->largest() > job->tolerance) {
    char text[256];
    std::snprintf(text, sizeof text,
                  ": its blocks differ from the whole model by %.3g of the largest value, more than the tolerance of "
                  "%.3g; nothing was measured",
                  v->largest(), job->tolerance);
    (void)cli::fail(kCommand.name, job->model_path + text);
    return kBlocksDiffer;
  }
  const cli::JsonOutput json(args);
  if (!json.alone()) print(*job, *result);
  return json.write(to_json(*job, *result).dump(1));
}

}  // namespace

extern const cli::Subcommand kLeatProfile;
const cli::Subcommand kLeatProfile = {.command = &kCommand, .run = run};

}  // namespace leat::tools
