// What a worker says of its device: which one it is to this process, the memory it took there by its own accounting,
// and which batches of its modules run as CUDA graphs. Comes with Ready, and its memory again whenever that changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/onnx/graph_report.h"
#include "tools/base/json/json.h"

namespace leat::worker {

struct DeviceMemory {
  std::uint64_t allocated = 0, imported = 0, pinned = 0;  // leat_device_usage's
  bool operator==(const DeviceMemory&) const = default;
};

struct DeviceFacts {
  std::string name;  // empty: the worker has no device
  std::uint32_t multiprocessors = 0;
  std::uint64_t memory_bytes = 0;  // of the whole device
  std::uint32_t codecs = 0;        // 1 << leat_codec for each whose bitstreams this worker takes
  DeviceMemory memory;
  struct Module {
    exec::GraphReport graphs;
    std::uint64_t bytes = 0;           // of memory.allocated: made while it was opened and warmed
    std::uint64_t provider_bytes = 0;  // what the device's free memory fell by besides: its weights and workspace, and
                                       // whatever a neighbour took in that time; 0 on a stand-in
    bool operator==(const Module&) const = default;
  };
  std::vector<Module> modules;  // as Setup::modules
  bool operator==(const DeviceFacts&) const = default;
};

Json as_json(const DeviceFacts& facts);
Json as_json(const DeviceMemory& memory);
DeviceFacts device_facts_from(const Json& json);  // throws JsonError
DeviceMemory device_memory_from(const Json& json);

}  // namespace leat::worker
