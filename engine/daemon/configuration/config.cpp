#include "engine/daemon/configuration/config.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>

#include "engine/core/policy/policy_settings.h"
#ifdef LEAT_PAPERS
#include "engine/papers/presets.h"
#endif
#include "engine/daemon/configuration/config_limits.h"
#include "engine/exec/decode/classes/class_names.h"
#include "engine/worker/link/channel.h"
#include "leat/leat.h"
#include "planner/dag.h"
#include "planner/io/application_io.h"
#include "planner/io/profile_io.h"
#include "tools/base/cores/cores.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kLeftOpenNs = 100'000'000;  // an objective, until leatd has measured

namespace fs = std::filesystem;

constexpr std::int64_t kMax = INT32_MAX;
constexpr std::uint32_t kMaxPartitions = 128;  // records in the counters segment

// What every part of the file needs.
struct Reading {
  fs::path directory;

  std::string path_of(const std::string& name) const {
    return name.empty() ? name : (directory / name).lexically_normal().string();
  }
};

// Keys of the version before.
constexpr RenamedKey kRenamed[] = {{"batch_ms", "batch_timeout_ms"},
                                   {"hello_ms", "handshake_timeout_ms"},
                                   {"least_slo_ms", "min_slo_ms"},
                                   {"load_ms", "worker_start_timeout_ms"},
                                   {"longest_backoff_ms", "max_backoff_ms"}};

// The option of `leat serve` and `leat try` that becomes this key; empty: none does.
std::string option_of(std::string_view key) {
  for (const auto& [of_file, option] : {std::pair{"preprocess", "--preprocess: "},
                                        {"postprocess", "--postprocess: "},
                                        {"labels_file", "--labels: "},
                                        {"labels", "--labels: "},
                                        {"slo_ms", "--slo-ms: "},
                                        {"cores", "--cores: "}})
    if (key == of_file) return option;
  return {};
}

void read_daemon(const JsonCursor& t, const Reading& reading, Config& out) {
  t.only({"socket", "socket_mode", "socket_group", "allow_uids", "allow_gids", "subuid_file", "observers",
          "observer_uids", "observer_gids", "event_loop", "log_level", "scheduler_core", "plan", "replan",
          "replan_look_ms", "recorder", "recorder_mib"});
  out.socket = t.text_or("socket", leat_default_socket());
  if (out.socket.empty()) t.find("socket").fail("must not be empty");
  if (out.socket.size() > 107)
    t.find("socket").fail("is longer than the 107 bytes a Unix socket's path may have; use a shorter one");
  if (!out.socket.empty() && t.has("socket")) out.socket = reading.path_of(out.socket);
  const std::string mode = t.text_or("socket_mode", "0660");
  if (mode.empty() || mode.size() > 4 || mode.find_first_not_of("01234567") != std::string::npos)
    t.find("socket_mode").fail("'" + mode + "' is no file mode; write it like \"0660\"");
  else
    out.socket_mode = static_cast<std::uint32_t>(std::stoul(mode, nullptr, 8));
  if (t.has("socket_group")) {
    const std::string group = t.needed_text("socket_group");
    if (!group.empty()) out.socket_group = group_of(t.find("socket_group"), group);
  }
  for (const auto& [key, list] :
       {std::pair{"allow_uids", &out.allow_uids}, std::pair{"allow_gids", &out.allow_gids},
        std::pair{"observer_uids", &out.observer_uids}, std::pair{"observer_gids", &out.observer_gids}})
    for (const auto id : t.integers(key, 0, UINT32_MAX - 1)) list->push_back(static_cast<std::uint32_t>(id));
  out.subuid_file = reading.path_of(t.text_or("subuid_file", "/etc/subuid"));
  if (t.has("subuid_file") && !out.subuid_file.empty() && !fs::is_regular_file(out.subuid_file))
    t.find("subuid_file").fail("there is no file " + out.subuid_file + "; correct the path, or write \"\" for none");
  out.observers_see_all = t.choice_or("observers", "own", {"own", "all"}) == "all";
  if (t.has("event_loop")) {
    (void)t.choice_or("event_loop", "epoll", {"auto", "io_uring", "epoll"});
    out.warnings.push_back(t.place("event_loop") + "leatd's event loop is epoll now; leave the key out");
  }
  out.log_level = t.choice_or("log_level", "info", {"debug", "info", "warning", "error"});
  out.scheduler_core = static_cast<std::int32_t>(t.integer_or("scheduler_core", -1, -1, 4095));
  out.socket_place = t.place("socket");
  out.scheduler_core_place = t.place("scheduler_core");
  out.plan_place = t.place("plan");
  out.plan_auto = t.text_or("plan", "") == "auto";
  if (!out.plan_auto) out.plan_path = reading.path_of(t.text_or("plan", ""));
  if (!out.plan_path.empty() && !fs::is_regular_file(out.plan_path))
    t.find("plan").fail("there is no file " + out.plan_path + "; make it with leat-plan or correct the path");
  out.replan_auto = t.choice_or("replan", "off", {"off", "auto"}) == "auto";
  out.replan_look_ns = t.integer_or("replan_look_ms", 10'000, 100, 3'600'000) * 1'000'000;
  out.recorder_path = reading.path_of(t.text_or("recorder", ""));
  if (const fs::path folder = fs::path(out.recorder_path).parent_path();
      !out.recorder_path.empty() && ::access(folder.c_str(), W_OK | X_OK) != 0)
    t.find("recorder")
        .fail("the folder " + folder.string() + " is not there or may not be written to; choose another path");
  out.recorder_bytes = static_cast<std::uint64_t>(t.integer_or("recorder_mib", 16, 8, 16384)) << 20;
}

void read_workers(const JsonCursor& t, WorkersConfig& out) {
  t.only({"sandbox", "overlap", "user", "max_backoff_ms", "worker_start_timeout_ms"});
  const std::string sandbox = t.choice_or("sandbox", "on", {"on", "devices", "off"});
  out.sandbox = sandbox == "on"    ? worker::Sandbox::on
                : sandbox == "off" ? worker::Sandbox::off
                                   : worker::Sandbox::devices;
  const std::string overlap = t.choice_or("overlap", "auto", {"auto", "on", "off"});
  out.overlap = overlap == "on"    ? worker::Overlap::on
                : overlap == "off" ? worker::Overlap::off
                                   : worker::Overlap::measured;
  out.user = t.text_or("user", "");
  if (!out.user.empty() && getpwnam(out.user.c_str()) == nullptr)
    t.find("user").fail("there is no user '" + out.user + "' on this host; make it, or name another");
  out.max_backoff_ns = t.integer_or("max_backoff_ms", out.max_backoff_ns / 1'000'000, 0, 3'600'000) * 1'000'000;
  out.worker_start_timeout_ns =
      t.integer_or("worker_start_timeout_ms", out.worker_start_timeout_ns / 1'000'000, 10, 86'400'000) * 1'000'000;
}

#ifdef LEAT_PAPERS
core::Presets known_presets() { return papers::presets(); }
constexpr const char* kOtherPresets = "";
#else
core::Presets known_presets() { return core::presets(); }
constexpr const char* kOtherPresets = "; the papers' presets need a build with -DLEAT_PAPERS=ON";
#endif

void read_policy(const JsonCursor& t, Config& out) {
  core::PolicySettings& settings = out.policy_settings;
  for (const auto& key : t.keys()) {
    const JsonCursor c = t.find(key);
    const auto value = c.scalar();
    if (!value) {
      c.fail("must be a word, a number, or true or false");
      continue;
    }
    if (key == "preset")
      out.preset = *value;
    else
      settings.emplace_back(key, *value);
  }
  const Result<core::Policy> policy = core::policy_of(out.preset, settings, known_presets());
  if (policy.ok()) {
    out.policy = *policy;
    out.policy_place = t.place();
    for (const std::string& note : policy->notes) out.warnings.push_back(out.policy_place + note);
  } else {
    core::Policy known;
    t.fail(policy.error() + (core::preset(out.preset, known, known_presets()) ? "" : kOtherPresets));
  }
}

bool read_gpu(const JsonCursor& t, const planner::PartitionKindRow& kind, GpuConfig& out) {
  using Row = planner::PartitionKindRow;
  for (const char* key : {"gpu", "plugin"})
    if (!kind.on_device() && t.has(key))
      return t.find(key).fail("is for partitions of kind " + planner::kind_names(std::mem_fn(&Row::on_device)) +
                              "; leave it out"),
             false;
  if (kind.share == nullptr && t.has("percent")) {
    const std::string shares = planner::kind_names(std::mem_fn(&Row::share));
    return t.find("percent").fail("is for partitions of kind " + shares + "; leave it out, or say that it is one"),
           false;
  }
  if (!kind.on_device()) return true;
  out.uuid = t.needed_text("gpu");
  if (out.uuid.empty()) return false;
  const bool known = out.uuid.starts_with("MIG-") || out.uuid.starts_with("GPU-");
  if (kind.place == planner::KindPlace::nvidia && (!known || !out.uuid.starts_with(kind.uuid)))
    return t.find("gpu").fail("'" + out.uuid + "' is no " + (kind.uuid == "MIG-" ? "MIG device's" : "GPU's") +
                              " UUID; `leat-gpu list` shows them"),
           false;
  out.plugin = t.text_or("plugin", kind.plugin);
  if (kind.share != nullptr && !t.has("percent"))
    return t.fail("a partition of kind " + std::string(kind.name) + " needs its share; write percent = 25 or so"),
           false;
  out.percent = static_cast<std::uint32_t>(t.integer_or("percent", 0, kind.share != nullptr ? 1 : 0, 100));
  out.place = out.uuid;
  return true;
}

void read_partition(const JsonCursor& t, std::set<std::string>& names, Config& out) {
  t.only(
      {"name", "kind", "class", "cores", "count", "size", "price", "device", "gpu", "percent", "plugin", "memory_mib"});
  PartitionConfig p;
  const std::string gpu = t.has("gpu") ? t.text_or("gpu", "") : "";
  const std::string word = t.text_or("kind", name_of(planner::standard_kind(t.has("cores"), gpu, t.has("percent"))));
  const auto kind = planner::kind_named(word);
  if (!kind)
    return t.find("kind").fail("'" + word + "' is not known; use " +
                               planner::kind_names([](const planner::PartitionKindRow&) { return true; }));
  p.partition.kind = *kind;
  const planner::PartitionKindRow& row = row_of(*kind);
  if (!read_gpu(t, row, p.gpu)) return;
  const std::string name = t.needed_text("name");
  if (t.has("cores")) {
    const auto cores = parse_cores(t.text_or("cores", ""));
    if (!cores.ok()) return t.find("cores").fail(cores.error());
    p.cores = *cores;
    p.cores_place = t.place("cores");
  } else if (row.place == planner::KindPlace::cores) {
    return t.fail(
        "a cpu partition needs cores; write cores = \"0-1\", or cpu = \"auto\" at the top instead of [[partition]]");
  }
  const auto width = static_cast<double>(std::max<std::size_t>(1, p.cores.size()));
  p.partition.partition_class = t.text_or("class", planner::standard_class(*kind, name, p.cores.size(), p.gpu.percent));
  p.partition.size = t.number_or("size", p.gpu.percent != 0 ? p.gpu.percent / 100.0 : width, 1e-6, 1e6);
  p.partition.price = t.number_or("price", p.partition.size, 1e-9, 1e9);
  p.partition.device =
      static_cast<std::uint32_t>(t.integer_or("device", static_cast<std::int64_t>(out.partitions.size()), 0, kMax));
  p.partition.memory_bytes = t.integer_or("memory_mib", 0, 1, kMax) << 20;
  p.partition.selector = p.gpu.uuid.empty()   ? cores_text(p.cores)
                         : p.gpu.percent == 0 ? p.gpu.uuid
                                              : p.gpu.uuid + " " + std::to_string(p.gpu.percent) + "%";
  const std::int64_t count = t.integer_or("count", 1, 1, kMaxPartitions);
  if (!row.multiplies() && count != 1)
    return t.find("count").fail(
        "only emulated partitions and shares can be multiplied; write one [[partition]] for each " + word +
        " partition");
  for (std::int64_t i = 0; i < count; ++i) {
    p.partition.name = t.has("count") ? name + std::to_string(i) : name;
    if (!names.insert(p.partition.name).second)
      return t.find("name").fail("the name '" + p.partition.name + "' stands twice; rename one");
    out.partitions.push_back(p);
  }
  if (out.partitions.size() > kMaxPartitions) t.fail("more than 128 partitions; leave some out");
}

void read_labels(const JsonCursor& t, const Reading& reading, ModuleConfig& out) {
  const JsonCursor list = t.find("labels");
  if (t.has("labels_file")) {
    if (list) return t.find("labels_file").fail("stands beside labels; leave one of them out");
    const auto names = exec::names_in_file(reading.path_of(t.text_or("labels_file", "")));
    if (!names.ok()) return t.find("labels_file").fail(names.error());
    out.labels = {exec::joined(*names)};
    return;
  }
  if (!list) return;
  if (const auto preset = list.scalar()) {
    const exec::ClassNames names = exec::preset_names(*preset);
    if (names.empty())
      return list.fail("'" + *preset + "' is no list of names that Leat has; write " + std::string(exec::kNamePresets) +
                       ", a list, or labels_file = \"FILE\"");
    out.labels = {exec::joined(names)};
    return;
  }
  const auto heads = list.items();
  const bool nested = !heads.empty() && heads.front().is_list();
  for (const JsonCursor& head : nested ? heads : std::vector<JsonCursor>{list}) {
    exec::ClassNames names;
    for (const JsonCursor& name : head.items()) {
      names.push_back(name.text());
      if (names.back().find_first_of("\t\n") != std::string::npos)
        name.fail("must be a text of one line, without tabs");
    }
    out.labels.push_back(exec::joined(names));
  }
  if (heads.empty()) list.fail("must be a list of texts in quotes, or a list of such lists");
}

void read_latency(const JsonCursor& t, const Reading& reading, ModuleConfig& out, const std::string& model) {
  for (const double ms : t.numbers("latency_ms", 0, kLongestMs)) {
    const auto ns = static_cast<std::int64_t>(std::llround(ms * 1e6));
    out.latency_by_batch.push_back({ns, ns, 0});
  }
  if (out.latency_by_batch.size() > worker::kMaxBatch)
    t.find("latency_ms").fail("has more than 64 entries; the largest batch is 64");
  if (!out.latency_by_batch.empty() && out.executor != "emulated")
    t.find("latency_ms").fail("is for the executor \"emulated\"; for others name a profile, or let leatd measure");
  const std::string path = reading.path_of(t.text_or("profile", ""));
  if (path.empty()) return;
  auto profile = planner::read_profile(path);
  if (!profile.ok()) return t.find("profile").fail(profile.error());
  if (!model.empty() && profile->model != model && fs::path(model).stem() != profile->model &&
      out.executor != "emulated")
    return t.find("profile").fail("is about the model '" + profile->model + "', not '" + model +
                                  "'; name the right file");
  out.profile = std::move(*profile);
}

void read_module(const JsonCursor& t, const Reading& reading, planner::Module& module, ModuleConfig& out) {
  t.only(planner::kModuleKeys);
  out.places = {t.place(),
                t.place("model"),
                t.place("executor"),
                t.place("as"),
                t.place("preprocess"),
                t.place("postprocess"),
                t.place(t.has("labels_file") ? "labels_file" : "labels"),
                t.place("profile"),
                t.place("batch")};
  module.name = t.needed_text("name");
  out.executor = t.text_or("executor", t.has("latency_ms") ? "emulated" : "onnx");
  if (out.executor.find('/') != std::string::npos) {  // a plug-in (leat/executor.h)
    out.executor = reading.path_of(out.executor);
    if (!fs::is_regular_file(out.executor))
      t.find("executor").fail("there is no file " + out.executor + "; name the plug-in's library");
  } else {
    (void)t.choice_or("executor", out.executor, {"onnx", "emulated"});
  }
  module.model = t.text_or("model", module.name);
  module.items_per_request = t.number_or("items_per_request", 1, 1e-9, 1e6);
  module.fan_out_cap = static_cast<std::uint32_t>(
      t.integer_or("fan_out_cap", static_cast<std::int64_t>(std::ceil(module.items_per_request)), 1, 64));
  out.as = t.text_or("as", "");
  if (!out.as.empty() && out.executor != "onnx")
    t.find("as").fail("names a known ONNX model, and the executor is '" + out.executor + "'; leave one of them out");
  out.preprocess = t.text_or("preprocess", "");
  out.postprocess = t.text_or("postprocess", "");
  read_labels(t, reading, out);
  if (out.executor == "onnx") {
    out.model_path = reading.path_of(t.needed_text("model"));
    if (!out.model_path.empty() && !fs::is_regular_file(out.model_path))
      t.find("model").fail(no_file_at(out.model_path) +
                           "; correct the path (it is relative to the configuration file)");
    else if (std::error_code none; !out.model_path.empty() && fs::file_size(out.model_path, none) == 0)
      t.find("model").fail(out.model_path + " is empty; copy or download the model again");
  }
  if (out.executor.find('/') != std::string::npos && t.has("model")) out.model_path = reading.path_of(module.model);
  read_latency(t, reading, out, module.model);
  if (out.executor == "emulated" && out.latency_by_batch.empty() && out.profile.rows.empty())
    t.fail("the emulated executor needs latency_ms or a profile");
  const auto longest = out.latency_by_batch.empty() ? std::size_t{8} : out.latency_by_batch.size();
  out.batch =
      static_cast<std::uint32_t>(t.integer_or("batch", static_cast<std::int64_t>(longest), 1, worker::kMaxBatch));
  if (!out.latency_by_batch.empty() && out.batch > longest)
    t.find("batch").fail("is larger than latency_ms has entries; add entries or lower it");
  out.memory_bytes = t.integer_or("memory_mib", 0, 1, kMax) << 20;
  if (!t.has("memory_mib"))
    out.memory_bytes =
        std::accumulate(out.profile.block_memory_bytes.begin(), out.profile.block_memory_bytes.end(), std::int64_t{0});
  for (const auto& key : t.find("options").keys()) {
    const auto value = t.find("options").at(key).scalar();
    if (!value) return t.find("options").at(key).fail("must be a word, a number, or true or false");
    out.extra.emplace_back(key, *value);
  }
}

// Puts the modules into topological order, file order among equals, and turns names into indexes.
void order_modules(const JsonCursor& t, const std::vector<std::vector<std::string>>& after, ApplicationConfig& app) {
  const auto modules = std::exchange(app.application.modules, {});
  const auto configs = std::exchange(app.modules, {});
  std::vector<std::string> names;
  for (const auto& module : modules) names.push_back(module.name);
  planner::NamedOrder order = planner::order_of(names, after);
  if (!order.problem.empty()) return t.fail(order.problem);
  for (std::size_t k = 0; k < order.order.size(); ++k) {
    app.application.modules.push_back(modules[order.order[k]]);
    app.application.modules.back().after = std::move(order.after[k]);
    app.modules.push_back(configs[order.order[k]]);
  }
}

ExpectedStream read_stream(const JsonCursor& t, std::int64_t slo_ns) {
  t.only({"period_ms", "count", "max_age_ms", "priority"});
  if (!t.has("period_ms")) t.fail("the key 'period_ms' is missing; add the time between two frames of such a stream");
  const std::string priority = t.choice_or("priority", "normal", {"background", "normal", "high", "protected"});
  return {
      .count = static_cast<double>(t.integer_or("count", 1, 1, 4096)),
      .period_ns = std::llround(t.number_or("period_ms", 1, 1e-3, kLongestMs) * 1e6),
      .max_age_ns = std::llround(t.number_or("max_age_ms", static_cast<double>(slo_ns) / 1e6, 1e-3, kLongestMs) * 1e6),
      .priority = priority == "background"  ? core::Priority::background
                  : priority == "high"      ? core::Priority::high
                  : priority == "protected" ? core::Priority::protected_
                                            : core::Priority::normal};
}

void read_application(const JsonCursor& t, const Reading& reading, Config& out) {
  t.only(planner::kApplicationKeys);
  ApplicationConfig app;
  app.application.name = t.needed_text("name");
  for (const auto& other : out.applications)
    if (other.application.name == app.application.name)
      return t.find("name").fail("the name '" + app.application.name + "' stands twice; rename one");
  if (app.application.name.size() > 63) return t.find("name").fail("is longer than 63 bytes; shorten it");
  if (!t.has("slo_ms")) return t.fail("the key 'slo_ms' is missing; add the time from capture to answer, or \"auto\"");
  app.slo_auto = t.find("slo_ms").scalar() == "auto";
  app.application.slo_ns = app.slo_auto ? kLeftOpenNs : std::llround(t.number_or("slo_ms", 1, 1e-3, kLongestMs) * 1e6);
  app.application.rate_rps = t.number_or("rate_rps", 0, 0, 1e9);
  app.application.weight = t.number_or("weight", 1, 1e-9, 1e9);
  if (t.has("share")) app.share_permille = read_share(t);
  std::vector<std::vector<std::string>> after;
  for (const auto& m : t.tables("module")) {
    app.application.modules.emplace_back();
    app.modules.emplace_back();
    read_module(m, reading, app.application.modules.back(), app.modules.back());
    after.push_back(m.texts("after"));
  }
  for (const auto& stream : t.tables("stream")) app.expected.push_back(read_stream(stream, app.application.slo_ns));
  if (app.modules.empty()) return t.fail("an application needs at least one [[application.module]]; add one");
  order_modules(t, std::move(after), app);
  if (const std::string problem = planner::problem_of(app.application); !problem.empty()) t.fail(problem);
  out.applications.push_back(std::move(app));
}

// Where a partition says what its models may take, each must say what it takes; empty: they do.
std::string unknown_memory(const Config& config) {
  const auto limited =
      std::ranges::find_if(config.partitions, [](const PartitionConfig& p) { return p.partition.memory_bytes > 0; });
  if (limited == config.partitions.end()) return {};
  for (const ApplicationConfig& app : config.applications)
    for (const ModuleConfig& module : app.modules)
      if (module.memory_bytes == 0)
        return module.places.module + "partition '" + limited->partition.name +
               "' has memory_mib, so every module must say what it takes of it; add memory_mib, or a profile that " +
               "knows it";
  return {};
}

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& file, const std::string& model) {
  const Reading reading{fs::absolute(fs::path(file)).parent_path()};
  const auto document = JsonDocument::from_toml(file, text);
  document->accept(kRenamed);
  if (!model.empty()) document->call_keys(model, option_of);
  Config out;
  out.file = model.empty() ? file : model;
  out.made_from_model = !model.empty();
  out.text_file = file;
  const JsonCursor root = document->root();
  root.only({"daemon", "limits", "workers", "policy", "cpu", "partition", "application"});
  read_daemon(root.find("daemon"), reading, out);
  read_limits(root.find("limits"), out.limits);
  read_workers(root.find("workers"), out.workers);
  read_policy(root.find("policy"), out);
  std::set<std::string> names;
  for (const auto& p : root.tables("partition")) read_partition(p, names, out);
  for (const auto& a : root.tables("application")) read_application(a, reading, out);
  out.cpu_auto = root.has("cpu");
  if (const auto cpu = root.find("cpu").scalar(); out.cpu_auto && cpu != "auto")
    root.find("cpu").fail(
        (cpu ? "is '" + *cpu + "', but " : "") +
        "must be \"auto\", one partition a core; for other cores write [[partition]] tables with cores");
  if (out.partitions.empty() && !out.cpu_auto)
    root.fail("names no partition; write cpu = \"auto\" at the top, or add [[partition]] tables");
  if (out.applications.empty()) root.fail("names no application; add an [[application]]");
  if (document->failed()) return document->error();
  if (std::string line = unknown_memory(out); !line.empty()) return Error{std::move(line)};
  out.warnings.insert(out.warnings.begin(), document->warnings().begin(), document->warnings().end());
  return out;
}

Result<Config> read_config(const std::string& file, const std::string& model) {
  const auto text = read_text_file(file);
  if (!text) return Error{text.error()};
  auto config = parse_config(*text, file, model);
  if (config.ok()) config->text = *text;
  return config;
}

}  // namespace leat::daemon
