#include "engine/worker/link/device_facts.h"

namespace leat::worker {

Json as_json(const DeviceMemory& m) {
  return Json{{"allocated", m.allocated}, {"imported", m.imported}, {"pinned", m.pinned}};
}

Json as_json(const DeviceFacts& facts) {
  Json modules = Json::array();
  for (const DeviceFacts::Module& m : facts.modules) {
    Json batches = Json::array();
    for (const exec::GraphTiming& t : m.graphs.batches)
      batches.push_back({t.batch, t.plain_ns, t.graph_ns, t.whole_ns});
    modules.push_back({{"batches", batches},
                       {"why_not", m.graphs.why_not},
                       {"why_apart", m.graphs.why_apart},
                       {"bytes", m.bytes},
                       {"provider_bytes", m.provider_bytes}});
  }
  return Json{
      {"name", facts.name},     {"multiprocessors", facts.multiprocessors}, {"memory_bytes", facts.memory_bytes},
      {"codecs", facts.codecs}, {"memory", as_json(facts.memory)},          {"modules", modules}};
}

DeviceMemory device_memory_from(const Json& j) {
  DeviceMemory out;
  j.at("allocated").get_to(out.allocated);
  j.at("imported").get_to(out.imported);
  j.at("pinned").get_to(out.pinned);
  return out;
}

DeviceFacts device_facts_from(const Json& j) {
  DeviceFacts out;
  j.at("name").get_to(out.name);
  j.at("multiprocessors").get_to(out.multiprocessors);
  j.at("memory_bytes").get_to(out.memory_bytes);
  j.at("codecs").get_to(out.codecs);
  out.memory = device_memory_from(j.at("memory"));
  for (const Json& m : j.at("modules")) {
    DeviceFacts::Module& module = out.modules.emplace_back();
    for (const Json& t : m.at("batches"))
      module.graphs.batches.push_back({t.at(0).get<std::uint32_t>(), t.at(1).get<std::uint64_t>(),
                                       t.at(2).get<std::uint64_t>(), t.at(3).get<std::uint64_t>()});
    m.at("why_not").get_to(module.graphs.why_not);
    m.at("why_apart").get_to(module.graphs.why_apart);
    m.at("bytes").get_to(module.bytes);
    m.at("provider_bytes").get_to(module.provider_bytes);
  }
  return out;
}

}  // namespace leat::worker
