// What `leat status` shows that is not a counter: one JSON object. Control thread.
//
// {"version", "pid", "phase", "uptime_ms", "config", "socket", "preset", "record" (its file), "clients",
//  "scheduler": {"cores", "alone"}, "partitions": [{"name", "kind", "class", "cores", "state", "pid", "restarts"}],
//  "applications": [{"name", "slo_ms", "modules": [{"name", "executor", "model", "batch", "latency_ms", "routes",
//  "preprocess", "postprocess": {"words", "from"}, "labels": {"count", "first", "from"}, "inputs": [{"name", "dtype",
//  "shape"}], "outputs": [{"name", "kind", "dtype", "shape"}]}]}],
//  "edges": [{"name", "from", "to", "item_bytes", "slots", "memory_bytes", "slots_in_use", "transfers",
//  "bytes_in_place", "bytes_copied", "ways": [{"from", "to", "way", "gbps", "host_gbps", "why_not"}]}], "warnings":
//  [...]}
// A partition's "gpu", where it has one: {"uuid", "device", "instance", "share_percent", "multiprocessors",
// "memory_bytes" (of the device), "allocated_bytes", "imported_bytes", "pinned_bytes" (this worker's), "modules":
// [{"name", "memory_bytes", "provider_bytes", "graphs": {"text", "batches": [{"batch", "graph", "ms", "graph_ms"}]}}]}.
// "latency_ms" is by partition class, of routes of one stage; "routes" are those of several: [{"batch", "stages":
// [{"blocks", "partitions", "latency_ms"}]}]. "inputs" has only a module that takes tensors, "outputs" one that writes
// parts of a result: shapes are of one item, without the batch, and what varies is the most that it can be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/daemon/clients/served_application.h"
#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/workers/supervisor.h"
#include "engine/exec/recognise/recognise.h"
#include "tools/base/json/json.h"

namespace leat::daemon {

struct StatusFacts {
  const Config& config;
  const Deployment& deployment;
  const Supervisor& supervisor;
  Metrics& metrics;
  const std::vector<std::vector<exec::Recognised>>& recognised;  // [application][module]; empty until serving
  const std::vector<std::vector<ModuleTensors>>& tensors;        // likewise
  std::string phase;
  std::uint32_t clients = 0;
  std::int64_t uptime_ms = 0;
  Json change;  // LiveChange::status()
  Json replan;  // Replanning::status()
};

std::string status_report(const StatusFacts& facts);

}  // namespace leat::daemon
