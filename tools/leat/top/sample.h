// What `leat top` and `leat status` look at: every live record of the daemon's counters segment, taken at one moment,
// and where such samples come from. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "shm/src/counters/counters.h"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/json/json.h"

namespace leat::tools {

// The device of a partition, as leatd's status says. Unknown: -1.
struct GpuFacts {
  std::string uuid;
  double instance = -1, share_percent = -1, multiprocessors = -1, memory_bytes = -1;  // memory: its worker's own
  std::string text;                                                                   // gpu_text()
};

struct Sample {
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::optional<shm::RecordSnapshot> daemon, total;
  std::vector<shm::RecordSnapshot> clients{}, streams{}, modules{}, partitions{}, edges{}, users{};  // each by index
  std::map<std::string, std::string> user_names{};  // as this host knows them, by uid
};

// Two samples of the same daemon; everything shown is computed from them. `before` empty: no rates and no window yet.
struct Window {
  Sample before, now;
  std::map<std::string, GpuFacts> devices{};  // of partitions that have one, by their names
  std::map<std::string, std::string> ways{};  // of edges between devices: ways_in()
  [[nodiscard]] double seconds() const noexcept {
    return before.at_ns > 0 ? static_cast<double>(now.at_ns - before.at_ns) / 1e9 : 0;
  }
};

// The same record in the earlier sample; nullptr when it was not there or has begun anew since.
[[nodiscard]] const shm::RecordSnapshot* earlier(const Window& window, const shm::RecordSnapshot& record);

// "GPU-... instance 3, 25 %, 27 multiprocessors, 120 of 40192 MiB made here", of an entry of leatd's partitions; empty:
// it has no GPU.
[[nodiscard]] std::string gpu_text(const Json& partition);
// "GPU-... to GPU-...: peer, 210 Gbit/s, host rows 92", of one of an edge's ways.
[[nodiscard]] std::string way_text(const Json& way);
// Of every edge between devices, by its name: "in place", "peer", "host", or several.
[[nodiscard]] std::map<std::string, std::string> ways_in(const std::string& status_json);
// Of every partition that has one.
[[nodiscard]] std::map<std::string, GpuFacts> devices_in(const std::string& status_json);

class Watch {
 public:
  // socket empty: the default one. Errors: one line with what to do.
  static Result<Watch> connect(const std::string& socket);
  // The same for a command that asks once (tools/leat/patience.h); status_json() waits as long then.
  static Result<Watch> connect_patiently(const std::string& socket);
  [[nodiscard]] Sample sample() const;
  // Those since the last call that the ring still holds, at first all that it holds; a view of it has none.
  [[nodiscard]] std::vector<shm::Event> events();
  [[nodiscard]] bool daemon_gone() const;
  Result<std::string> status_json();

 private:
  Watch(shm::Observer observer, shm::CountersReader reader)
      : observer_(std::move(observer)), reader_(std::move(reader)) {}
  static Result<Watch> connect(const std::string& socket, std::int64_t patience_ns);
  bool patient_ = false;
  shm::Observer observer_;
  shm::CountersReader reader_;
  std::uint64_t next_event_ = 0;
};

}  // namespace leat::tools
