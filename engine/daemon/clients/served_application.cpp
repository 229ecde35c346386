#include "engine/daemon/clients/served_application.h"

#include <utility>

#include "engine/daemon/workers/models/model_metadata.h"

namespace leat::daemon {

std::vector<ServedApplication> served_applications(const Config& config) {
  std::vector<ServedApplication> out;
  for (const ApplicationConfig& app : config.applications)
    out.push_back({.name = app.application.name, .slo_ns = app.application.slo_ns});
  return out;
}

Result<ModelsSaid> models_said(const Config& config, std::uint32_t application, std::span<const worker::Setup> setups,
                               std::span<const worker::Ready> ready) {
  const planner::Application& app = config.applications[application].application;
  ModelsSaid out{.served = {.name = app.name, .slo_ns = app.slo_ns},
                 .recognised = std::vector<exec::Recognised>(app.modules.size()),
                 .tensors = std::vector<ModuleTensors>(app.modules.size())};
  std::vector<std::vector<exec::PartSpec>> needs(app.modules.size());
  for (std::uint32_t p = 0; p < setups.size(); ++p) {
    const auto& sessions = setups[p].modules;
    for (std::size_t s = 0; s < sessions.size() && s < ready[p].parts.size(); ++s) {
      if (sessions[s].application != app.name) continue;
      auto& decodes = out.served.decodes;
      if (sessions[s].edge_in == worker::kNoEdge &&
          (decodes.empty() || decodes.back().partition != setups[p].partition))
        decodes.push_back({setups[p].partition, ready[p].device.codecs});
      const std::uint32_t module = sessions[s].index;
      if (s < ready[p].recognised.size()) merge(ready[p].recognised[s], out.recognised[module]);
      if (!ready[p].parts[s].empty()) needs[module] = ready[p].parts[s];
      if (ready[p].tensors[s].empty()) continue;
      out.tensors[module].inputs = ready[p].tensors[s];
      out.tensors[module].input_names = ready[p].tensor_names[s];
      if (app.modules[module].after.empty()) out.served.tensors = ready[p].tensors[s];
    }
  }
  for (std::size_t m = 0; m < needs.size(); ++m) out.tensors[m].outputs = needs[m];
  auto layout = result_layout(app, needs);
  if (!layout.ok()) return Error{config.file + ": " + layout.error()};
  out.served.results = std::move(*layout);
  out.served.class_names = class_names(config.applications[application], out.recognised);
  return out;
}

}  // namespace leat::daemon
