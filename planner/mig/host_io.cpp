// Host files: {"schema": "leat-mig/1", "geometry": "A100-40" | {...}, "gpus": [...]} (docs/research/planning-paris.md).
#include <algorithm>

#include "planner/mig/change.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

MigGeometry geometry_from(const JsonCursor& node) {
  if (node.is_text()) {
    const MigGeometry* table = mig_table(node.text());
    if (table != nullptr) return *table;
    std::string names;
    for (const std::string& n : mig_table_names()) names += (names.empty() ? "" : ", ") + n;
    node.fail("no such table; there are " + names + ", or write the geometry that the driver reports");
    return {};
  }
  node.only({"gpu", "compute_slices", "memory_slices", "profiles"});
  MigGeometry g;
  g.from_driver = true;
  g.gpu = node.at("gpu").text();
  g.compute_slices = static_cast<std::uint32_t>(node.at("compute_slices").integer(1, 64));
  g.memory_slices = static_cast<std::uint32_t>(node.at("memory_slices").integer(1, 32));
  for (const JsonCursor& item : node.at("profiles").items()) {
    item.only({"name", "compute", "memory", "most", "starts", "memory_mib", "media"});
    MigProfile p;
    p.name = item.at("name").text();
    p.compute = static_cast<std::uint32_t>(item.at("compute").integer(1, 64));
    p.memory = static_cast<std::uint32_t>(item.at("memory").integer(1, 32));
    p.max = static_cast<std::uint32_t>(item.at("most").integer(1, 64));
    for (const JsonCursor& s : item.at("starts").items())
      p.starts.push_back(static_cast<std::uint32_t>(s.integer(0, 31)));
    p.memory_mib = item.integer_or("memory_mib", 0, 0, std::int64_t{1} << 40);
    p.media = item.has("media") && item.at("media").boolean();
    g.profiles.push_back(std::move(p));
  }
  if (const std::string problem = problem_of(g); !problem.empty()) node.fail(problem);
  return g;
}

MigGpu gpu_from(const JsonCursor& node, const MigGeometry& geometry) {
  node.only({"index", "uuid", "mig_enabled", "instances"});
  MigGpu gpu;
  gpu.index = static_cast<std::uint32_t>(node.at("index").integer(0, 1023));
  gpu.uuid = node.text_or("uuid", "");
  if (node.has("mig_enabled")) gpu.mig_enabled = node.at("mig_enabled").boolean();
  if (!node.has("instances")) return gpu;
  std::vector<MigPlacement> placements;
  for (const JsonCursor& item : node.at("instances").items()) {
    item.only({"profile", "start", "id", "uuid", "used_by"});
    MigInstance i;
    const std::string name = item.at("profile").text();
    const auto at = std::find_if(geometry.profiles.begin(), geometry.profiles.end(),
                                 [&](const MigProfile& p) { return p.name == name; });
    if (at == geometry.profiles.end()) item.at("profile").fail("no profile '" + name + "' in the geometry");
    i.placement.profile =
        static_cast<std::uint32_t>(at == geometry.profiles.end() ? 0 : at - geometry.profiles.begin());
    i.placement.start = static_cast<std::uint32_t>(item.at("start").integer(0, 31));
    i.id = static_cast<std::int32_t>(item.integer_or("id", -1, -1, 1 << 20));
    i.uuid = item.text_or("uuid", "");
    i.used_by = item.text_or("used_by", "");
    placements.push_back(i.placement);
    gpu.instances.push_back(std::move(i));
  }
  if (geometry.profiles.empty()) return gpu;
  if (const std::string problem = problem_of(geometry, placements); !problem.empty())
    node.at("instances").fail(problem);
  return gpu;
}

}  // namespace

Result<MigHost> parse_mig_host(std::string_view json, const std::string& name) {
  JsonDocument document(name, json);
  const JsonCursor root = document.root();
  root.only({"schema", "geometry", "gpus"});
  if (root.at("schema").text() != "leat-mig/1") root.at("schema").fail("expected \"leat-mig/1\"");
  MigHost host;
  host.geometry = geometry_from(root.at("geometry"));
  for (const JsonCursor& item : root.at("gpus").items()) host.gpus.push_back(gpu_from(item, host.geometry));
  if (host.gpus.empty() || host.gpus.size() > kMaxMigGpus)
    root.at("gpus").fail("1 to " + std::to_string(kMaxMigGpus) + " GPUs");
  if (document.failed()) return document.error();
  return host;
}

Result<MigHost> read_mig_host(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  return parse_mig_host(*text, path);
}

}  // namespace leat::planner
