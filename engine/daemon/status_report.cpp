#include "engine/daemon/status_report.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "engine/daemon/workers/models/model_files.h"
#include "engine/daemon/workers/models/model_metadata.h"
#include "engine/daemon/workers/self_guard.h"
#include "planner/io/plan_io.h"
#include "tools/base/cores/cores.h"
#include "tools/base/json/json.h"

namespace leat::daemon {

namespace {

// "killed by signal 9", as a word of a table.
std::string without_was(const std::string& end) { return end.starts_with("was ") ? end.substr(4) : end; }

double ms(const planner::Latency& l) { return static_cast<double>(l.p50_ns) / 1e6; }

// each: units of one item of the largest size.
Json ms_by_batch(const planner::Stage& stage, std::uint32_t each = 1) {
  Json list = Json::array();
  for (std::size_t u = each; u <= stage.latency_by_batch.size(); u += each)
    list.push_back(ms(stage.latency_by_batch[u - 1]));
  return list;
}

// What one item of each size takes, of the units that one of the largest is.
Json sizes_of(const ModuleSizes& sizes) {
  Json list = Json::array();
  for (std::size_t c = 0; c < sizes.sizes.size(); ++c)
    list.push_back({{"width", sizes.sizes[c].width}, {"height", sizes.sizes[c].height}, {"units", sizes.units[c]}});
  return list;
}

Json names_of(const Deployment& d, const std::vector<std::uint32_t>& partitions) {
  Json list = Json::array();
  for (const auto p : partitions) list.push_back(d.partitions[p].partition.name);
  return list;
}

Json stages_of(const Deployment& d, const planner::Route& route) {
  Json list = Json::array();
  for (const planner::Stage& s : route.stages) {
    list.push_back({{"blocks", {s.first_block, s.end_block}},
                    {"partitions", names_of(d, s.pool)},
                    {"latency_ms", ms_by_batch(s)}});
  }
  return list;
}

Json ways_of(const FeatureEdge& edge) {
  Json list = Json::array();
  for (const DevicePair& w : edge.ways)
    list.push_back({{"from", w.from},
                    {"to", w.to},
                    {"way", name_of(w.way)},
                    {"gbps", w.gbps},
                    {"host_gbps", w.host_gbps},
                    {"why_not", w.why_not}});
  return list;
}

Json edges_of(const StatusFacts& f) {
  using shm::EdgeCounter;
  Json list = Json::array();
  for (std::uint32_t e = 0; e < f.deployment.edges.size(); ++e) {
    const FeatureEdge& edge = f.deployment.edges[e];
    const shm::Record record = f.metrics.of(shm::RecordKind::edge, edge.number);
    list.push_back({{"name", name_of(edge, f.config)},
                    {"from", names_of(f.deployment, edge.from)},
                    {"to", names_of(f.deployment, edge.to)},
                    {"item_bytes", edge.spec.row_bytes},
                    {"slots", edge.spec.rows},
                    {"memory_bytes", edge.spec.bytes()},
                    {"slots_in_use", record.value(EdgeCounter::slots_in_use)},
                    {"memory", edge.place.empty() ? "host" : "device"},
                    {"ways", ways_of(edge)},
                    {"transfers", record.value(EdgeCounter::transfers)},
                    {"bytes_in_place", record.value(EdgeCounter::bytes_in_place)},
                    {"bytes_copied", record.value(EdgeCounter::bytes_copied)}});
  }
  return list;
}

// Of each module that the worker serves: its memory there, and which of its batches are graphs.
Json modules_of(const worker::DeviceFacts& device, const worker::Setup& setup) {
  Json list = Json::array();
  for (std::size_t m = 0; m < std::min(device.modules.size(), setup.modules.size()); ++m) {
    const worker::DeviceFacts::Module& module = device.modules[m];
    Json batches = Json::array();
    const auto ms = [](std::uint64_t ns) { return ns == 0 ? Json() : Json(static_cast<double>(ns) / 1e6); };
    for (const exec::GraphTiming& t : module.graphs.batches)
      batches.push_back({{"batch", t.batch},
                         {"graph", t.graph()},
                         {"one_launch", t.whole()},
                         {"ms", ms(t.plain_ns)},
                         {"graph_ms", ms(t.graph_ns)},
                         {"one_launch_ms", ms(t.whole_ns)}});
    list.push_back({{"name", setup.modules[m].application + "/" + setup.modules[m].name},
                    {"memory_bytes", module.bytes},
                    {"provider_bytes", module.provider_bytes},
                    {"graphs", {{"text", exec::text_of(module.graphs)}, {"batches", batches}}}});
  }
  return list;
}

// Null: it has none.
Json gpu_of(const GpuConfig& gpu, const worker::DeviceFacts& device, const worker::Setup& setup) {
  if (gpu.uuid.empty()) return nullptr;
  const std::size_t slash = gpu.place.find('/');  // "GPU-.../3": a GPU instance
  return Json{{"uuid", gpu.uuid},
              {"device", gpu.place.substr(0, slash)},
              {"instance", slash == std::string::npos ? Json() : Json(std::stoul(gpu.place.substr(slash + 1)))},
              {"share_percent", gpu.percent == 0 ? 100 : gpu.percent},
              {"multiprocessors", device.multiprocessors != 0
                                      ? device.multiprocessors
                                      : gpu.multiprocessors * (gpu.percent == 0 ? 100 : gpu.percent) / 100},
              {"memory_bytes", device.memory_bytes},
              {"allocated_bytes", device.memory.allocated},
              {"imported_bytes", device.memory.imported},
              {"pinned_bytes", device.memory.pinned},
              {"modules", modules_of(device, setup)}};
}

// As served: its files and what they are together; null: no partition has it, or it has no files.
const worker::ModuleSetup* setup_of(const Deployment& d, const std::string& application, std::uint32_t module) {
  for (const worker::Setup& setup : d.setups)
    for (const worker::ModuleSetup& m : setup.modules)
      if (m.application == application && m.index == module && !m.files.empty()) return &m;
  return nullptr;
}

Json files_of(const worker::ModuleSetup& module) {
  Json list = Json::array();
  for (const exec::ModelFile& f : module.files) list.push_back({{"path", f.path}, {"sha256", f.sha256}});
  return list;
}

std::string version_of(const worker::ModuleSetup& module) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, module.version);
  return text;
}

Json partitions_of(const StatusFacts& f) {
  static constexpr const char* kStates[] = {"down", "starting", "up", "lost"};
  Json list = Json::array();
  for (std::uint32_t i = 0; i < f.deployment.partitions.size(); ++i) {
    const PartitionConfig& partition = f.deployment.partitions[i];
    const std::uint32_t p = f.deployment.slots[i];
    list.push_back({{"name", partition.partition.name},
                    {"kind", planner::name_of(partition.partition.kind)},
                    {"class", partition.partition.partition_class},
                    {"cores", cores_text(partition.cores)},
                    {"gpu", gpu_of(partition.gpu, f.supervisor.device(p), f.supervisor.setup(p))},
                    {"state", kStates[static_cast<std::size_t>(f.supervisor.state(p))]},
                    {"pid", f.supervisor.pid(p)},
                    {"restarts", f.supervisor.restarts(p)},
                    {"failures", f.supervisor.failures(p)},
                    {"backoff_ms", f.supervisor.backoff_ns(p) / 1'000'000},
                    {"last_end", without_was(f.supervisor.last_end(p))},
                    {"why_down", f.supervisor.why_down(p)},
                    {"sandbox", worker::name_of(f.supervisor.sandbox(p))}});
  }
  return list;
}

// How long a module's routes take: "latency_ms" by class where they have one stage, else "routes".
void add_routes(const Deployment& d, std::uint32_t a, std::uint32_t m, const ModuleSizes& sizes, Json& module) {
  module["latency_ms"] = Json::object();
  module["routes"] = Json::array();
  for (const planner::Route& r : d.plan.routes) {
    if (r.application != a || r.module != m) continue;
    if (r.stages.size() > 1) {
      module["routes"].push_back({{"batch", r.batch}, {"stages", stages_of(d, r)}});
      continue;
    }
    const std::string& name = d.partitions[r.stages[0].pool[0]].partition.partition_class;
    module["latency_ms"][name] = ms_by_batch(r.stages[0], sizes.each());
  }
}

constexpr const char* kPartKinds[] = {
#define X(name, value, text) #name,
    LEAT_PART_KINDS(X)
#undef X
};

Json described(std::string_view name, std::uint32_t dtype, std::span<const std::uint32_t> dims) {
  const char* const type = leat_dtype_name(dtype);
  return {{"name", name}, {"dtype", type != nullptr ? Json(type) : Json()}, {"shape", dims}};
}

void add_tensors(const ModuleTensors& tensors, Json& module) {
  Json inputs = Json::array(), outputs = Json::array();
  for (std::size_t i = 0; i < tensors.inputs.size(); ++i) {
    const leat_tensor_shape& in = tensors.inputs[i];
    inputs.push_back(described(i < tensors.input_names.size() ? std::string_view(tensors.input_names[i]) : "", in.dtype,
                               {in.dims, in.rank}));
  }
  for (const exec::PartSpec& out : tensors.outputs) {
    outputs.push_back(described(out.name, out.dtype, {out.dims.data(), out.rank}));
    outputs.back()["kind"] = out.kind < std::size(kPartKinds) ? kPartKinds[out.kind] : "unknown";
  }
  if (!inputs.empty()) module["inputs"] = inputs;
  if (!outputs.empty()) module["outputs"] = outputs;
}

Json module_of(const StatusFacts& f, std::uint32_t a, std::uint32_t m) {
  static const ModuleSizes kOne;
  const ApplicationConfig& app = f.config.applications[a];
  const std::uint32_t id = f.deployment.first_module[a] + m;
  const ModuleSizes& sizes = id < f.deployment.sizes.size() ? f.deployment.sizes[id] : kOne;
  Json out = {{"name", app.application.modules[m].name},
              {"executor", app.modules[m].executor},
              {"model", app.application.modules[m].model},
              {"batch", app.modules[m].batch}};
  add_routes(f.deployment, a, m, sizes, out);
  if (const worker::ModuleSetup* const served = setup_of(f.deployment, app.application.name, m)) {
    const auto sum = sha256_of(*served);
    out["sha256"] = sum.ok() ? Json(*sum) : Json();
    out["files"] = files_of(*served);
  }
  if (!sizes.sizes.empty()) out["sizes"] = sizes_of(sizes);
  out["squeezed"] = f.metrics.of(shm::RecordKind::module, id).value(shm::ModuleCounter::squeezed);
  out["not_finite"] = f.metrics.of(shm::RecordKind::module, id).value(shm::ModuleCounter::not_finite);
  if (a < f.recognised.size()) out.update(words_of(f.recognised[a][m], app.modules[m]));
  if (a < f.tensors.size()) add_tensors(f.tensors[a][m], out);
  return out;
}

Json applications_of(const StatusFacts& f) {
  Json list = Json::array();
  for (std::uint32_t a = 0; a < f.config.applications.size(); ++a) {
    const ApplicationConfig& app = f.config.applications[a];
    if (app.retired) continue;
    Json modules = Json::array(), version;
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      modules.push_back(module_of(f, a, m));
      if (const auto* const served = setup_of(f.deployment, app.application.name, m)) version = version_of(*served);
    }
    list.push_back({{"name", app.application.name},
                    {"slo_ms", static_cast<double>(app.application.slo_ns) / 1e6},
                    {"model_version", version},
                    {"modules", modules}});
  }
  return list;
}

}  // namespace

std::string status_report(const StatusFacts& f) {
  const Json out = {
      {"version", LEAT_VERSION},
      {"pid", getpid()},
      {"phase", f.phase},
      {"uptime_ms", f.uptime_ms},
      {"config", f.config.file},
      {"socket", f.config.socket},
      {"preset", f.config.preset},
      {"record", f.config.recorder_path},
      {"workers_are_root", workers_are_root(f.config)},
      {"clients", f.clients},
      {"scheduler", {{"cores", cores_text(f.deployment.scheduler_cores)}, {"alone", f.deployment.scheduler_alone}}},
      {"partitions", partitions_of(f)},
      {"applications", applications_of(f)},
      {"edges", edges_of(f)},
      {"warnings", unschedulable(f.deployment)},
      {"change", f.change},
      {"replan", f.replan}};
  return out.dump();
}

}  // namespace leat::daemon
