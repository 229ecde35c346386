// What the probe takes from the product: processes that answer, their limits of time, and facts of NVML.
#pragma once

#include "cuda/runtime/child.h"
#include "cuda/runtime/mps_daemon.h"
#include "cuda/runtime/nvml.h"
#include "tools/base/subprocess/process.h"

namespace leat::probe {

using gpu::Channel;
using gpu::Child;
using gpu::ChildOptions;
using gpu::DaemonOptions;
using gpu::Message;
using gpu::MpsDaemon;
using gpu::NvmlDevice;
using gpu::NvmlMigInstance;
using gpu::NvmlMigProfile;
using gpu::read_nvml;
using gpu::Receipt;
using gpu::Received;
using gpu::Role;
using subprocess::after;
using subprocess::Clock;
using subprocess::Deadline;
using subprocess::Ending;
using subprocess::Environment;

}  // namespace leat::probe
