// What a client may know of an application, and how its modules turned out. Values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/scheduler_thread/result_layout.h"
#include "engine/exec/recognise/recognise.h"
#include "engine/worker/link/protocol.h"
#include "leat/result.hpp"

namespace leat::daemon {

struct ServedApplication {
  std::string name;
  std::int64_t slo_ns = 0;
  std::int64_t need_ns = 0;  // of one frame, alone
  // Known once its models are loaded.
  std::string class_names = {};  // StreamOpened's tail
  ResultLayout results = {};
  std::vector<leat_tensor_shape> tensors = {};  // what its frames must be; empty: pictures
  struct Decodes {                              // a partition that takes its frames
    std::string partition;
    std::uint32_t codecs = 0;  // DeviceFacts::codecs
  };
  std::vector<Decodes> decodes = {};
};

// Before its models are loaded.
std::vector<ServedApplication> served_applications(const Config& config);

// What goes into a module and what comes out of it, as clients of tensors know it.
struct ModuleTensors {
  std::vector<leat_tensor_shape> inputs;  // one item; empty: it takes pictures
  std::vector<std::string> input_names;
  std::vector<exec::PartSpec> outputs;  // the parts of a result that it writes
};

struct ModelsSaid {
  ServedApplication served;
  std::vector<exec::Recognised> recognised;  // [module]
  std::vector<ModuleTensors> tensors;        // [module]
};
// setups, ready: [partition]. Error: its results do not fit a slot.
Result<ModelsSaid> models_said(const Config& config, std::uint32_t application, std::span<const worker::Setup> setups,
                               std::span<const worker::Ready> ready);

}  // namespace leat::daemon
