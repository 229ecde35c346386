#include "engine/daemon/deployment/device_pairs.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "planner/child/solver_process.h"
#include "tools/base/json/json.h"

namespace leat::daemon {

std::string_view name_of(Handover way) noexcept {
  return way == Handover::in_place ? "in place" : way == Handover::peer ? "peer" : "host";
}

Result<std::vector<DevicePair>> parse_device_pairs(std::string_view json) {
  try {
    std::vector<DevicePair> out;
    const Json list = Json::parse(json).at("pairs");
    for (const Json& p : list) {
      DevicePair& pair = out.emplace_back();
      p.at("from").get_to(pair.from);
      p.at("to").get_to(pair.to);
      const auto way = p.at("way").get<std::string>();
      pair.way = way == "in_place" ? Handover::in_place : way == "peer" ? Handover::peer : Handover::host;
      p.at("gbps").get_to(pair.gbps);
      p.at("host_gbps").get_to(pair.host_gbps);
      p.at("why_not").get_to(pair.why_not);
    }
    return out;
  } catch (const JsonError& e) {
    return Error{std::string("leat-gpu's answer cannot be read: ") + e.what() +
                 "; install leatd and leat-gpu of one release"};
  }
}

Result<std::vector<DevicePair>> measure_device_pairs(std::span<const std::pair<std::string, std::string>> wishes) {
  constexpr std::chrono::milliseconds kEach{30'000};
  std::vector<std::string> command = {planner::gpu_tool_path(), "peers", "--json"};
  for (const auto& [from, to] : wishes) command.push_back(from + ":" + to);
  const planner::SolverRun run = planner::run_solver(command, kEach * static_cast<int>(wishes.size() + 1));
  if (run.end != planner::SolverRun::End::done) return Error{run.message};
  return parse_device_pairs(run.output);
}

DevicePair handover(const PartitionConfig& from, const PartitionConfig& to, std::span<const DevicePair> pairs) {
  DevicePair out{.from = from.gpu.uuid, .to = to.gpu.uuid, .why_not = {}};
  if (from.gpu.uuid.empty() || to.gpu.uuid.empty()) {
    out.why_not = "one of them has no device";
    return out;
  }
  const auto asked = std::find_if(pairs.begin(), pairs.end(),
                                  [&](const DevicePair& p) { return p.from == out.from && p.to == out.to; });
  if (from.gpu.place == to.gpu.place) {
    out.way = Handover::in_place;
    return asked != pairs.end() ? *asked : out;
  }
  if (from.gpu.percent != 0 || to.gpu.percent != 0) {
    out.why_not = "a share sees its own GPU alone";
    if (asked != pairs.end()) out.host_gbps = asked->host_gbps;
    return out;
  }
  if (asked != pairs.end()) return *asked;
  out.why_not = "nobody could ask";
  return out;
}

std::string text_of(const DevicePair& pair) {
  char figures[96] = "";
  if (pair.gbps > 0)
    (void)std::snprintf(figures, sizeof figures, ", %.3g Gbit/s, host rows %.3g", pair.gbps, pair.host_gbps);
  else if (pair.host_gbps > 0)
    (void)std::snprintf(figures, sizeof figures, ", %.3g Gbit/s", pair.host_gbps);
  return std::string(name_of(pair.way)) + figures + (pair.why_not.empty() ? "" : "; " + pair.why_not);
}

}  // namespace leat::daemon
