#include "engine/daemon/workers/gpu_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/daemon/log.h"
#include "planner/child/solver_process.h"
#include "tools/base/json/json.h"
#include "tools/base/subprocess/user.h"

namespace leat::daemon {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kListLimit{20'000}, kStartLimit{20'000}, kEndLimit{8'000};

// Reads a line, within the limit; empty: there was none.
std::string first_line(int fd, milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return {};
    char byte;
    if (::read(fd, &byte, 1) != 1) return {};
    if (byte == '\n') return text;
    text += byte;
  }
}

std::string names(const Json& gpus) {
  std::string out;
  for (const Json& g : gpus) {
    if (!g.at("mig").get<bool>()) out += (out.empty() ? "" : ", ") + g.at("uuid").get<std::string>();
    for (const Json& i : g.at("instances")) out += (out.empty() ? "" : ", ") + i.at("uuid").get<std::string>();
  }
  return out.empty() ? "none" : out;
}

// True: it is there.
bool locate(const Json& gpus, GpuConfig& gpu) {
  for (const Json& g : gpus) {
    const auto uuid = g.at("uuid").get<std::string>();
    if (uuid == gpu.uuid && !g.at("mig").get<bool>()) {
      g.at("multiprocessors").get_to(gpu.multiprocessors);
      return true;
    }
    for (const Json& i : g.at("instances")) {
      if (i.at("uuid") != gpu.uuid) continue;
      i.at("multiprocessors").get_to(gpu.multiprocessors);
      gpu.place = uuid + "/" + std::to_string(i.at("gpu_instance").get<unsigned>());
      return true;
    }
  }
  return false;
}

// The driver gives processes without MPS the GPU in turns: an H100 in two served 307 frames a second so, and 498 as
// shares.
void warn_of_turns(const std::vector<PartitionConfig>& partitions) {
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    const GpuConfig& gpu = partitions[i].gpu;
    if (gpu.place.empty() || gpu.percent != 0) continue;
    const auto same = [&gpu](const PartitionConfig& p) { return p.gpu.place == gpu.place && p.gpu.percent == 0; };
    const auto first = std::find_if(partitions.begin(), partitions.end(), same) - partitions.begin();
    if (first == static_cast<std::ptrdiff_t>(i)) continue;
    log_warning("partitions '" + partitions[static_cast<std::size_t>(first)].partition.name + "' and '" +
                partitions[i].partition.name +
                "' are on one device and take turns there; make them shares of it (kind = \"mps\")");
  }
}

}  // namespace

Status locate_gpus(std::vector<PartitionConfig>& partitions) {
  const auto wanted = [](const PartitionConfig& p) {
    return row_of(p.partition.kind).place == planner::KindPlace::nvidia;
  };
  if (std::none_of(partitions.begin(), partitions.end(), wanted)) return Done{};
  const planner::SolverRun run = planner::run_solver({planner::gpu_tool_path(), "list", "--json"}, kListLimit);
  if (run.end != planner::SolverRun::End::done) return Error{"the GPUs of this host cannot be listed: " + run.message};
  try {
    const Json gpus = Json::parse(run.output).at("gpus");
    for (PartitionConfig& p : partitions)
      if (wanted(p) && !locate(gpus, p.gpu))
        return Error{"partition '" + p.partition.name + "': there is no device " + p.gpu.uuid + " on this host, only " +
                     names(gpus) + "; `leat-gpu list` shows them"};
  } catch (const JsonError& e) {
    return Error{std::string("leat-gpu's list cannot be read: ") + e.what() +
                 "; install leatd and leat-gpu of one release"};
  }
  warn_of_turns(partitions);
  return Done{};
}

Deployment with_device_pairs(const Config& config, std::span<const std::uint32_t> cores, Deployment deployment) {
  std::vector<std::pair<std::string, std::string>> wishes;
  for (const FeatureEdge& edge : deployment.edges) {
    for (const DevicePair& way : edge.ways) {
      const auto part = [&](const std::string& uuid) -> const GpuConfig& {
        return std::find_if(deployment.partitions.begin(), deployment.partitions.end(),
                            [&](const auto& p) { return p.gpu.uuid == uuid; })
            ->gpu;
      };
      const bool shares = part(way.from).percent != 0 || part(way.to).percent != 0;
      if (shares && part(way.from).place != part(way.to).place) continue;  // each sees its own GPU alone
      const std::pair wish(way.from, way.to);
      if (std::find(wishes.begin(), wishes.end(), wish) == wishes.end()) wishes.push_back(wish);
    }
  }
  if (wishes.empty()) return deployment;
  const auto pairs = measure_device_pairs(wishes);
  if (!pairs.ok()) {
    log_warning("how features pass between devices cannot be measured: " + pairs.error());
    return deployment;
  }
  for (const DevicePair& p : *pairs) {
    const std::string line = "features from " + p.from + " to " + p.to + ": " + text_of(p);
    p.why_not.empty() ? log_info(line) : log_warning(line);
  }
  auto again = deploy(config, cores, nullptr, *pairs);
  return again.ok() ? std::move(*again) : std::move(deployment);
}

Result<std::unique_ptr<MpsKeeper>> MpsKeeper::start(const std::string& uuid, const std::string& user) {
  std::unique_ptr<MpsKeeper> out(new MpsKeeper);
  out->uuid_ = uuid;
  out->user_ = user;
  std::error_code none;
  std::string folder = (fs::temp_directory_path(none) / "leatd-mps-XXXXXX").string();
  constexpr std::size_t kLongestFolder = 80;  // sockets below it, whose paths end at 107 bytes
  // Another user need not reach the folder for temporary files that is this one's.
  if (none || folder.size() > kLongestFolder || !user.empty()) folder = "/tmp/leatd-mps-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return Error{folder + ": " + std::strerror(errno) + "; set TMPDIR"};
  out->folder_ = folder;
  std::vector<std::string> words = {planner::gpu_tool_path(), "keep", uuid, folder};
  if (!user.empty()) {
    if (const Status given = subprocess::give_to_user(folder, user); !given)
      return Error{"the MPS daemon cannot be given to the user '" + user + "' of [workers]: " + given.error()};
    words.insert(words.end(), {"--user", user});
  }
  auto input = subprocess::make_pipe(), output = subprocess::make_pipe();
  if (!input.ok() || !output.ok()) return Error{input.ok() ? output.error() : input.error()};
  out->input_ = std::move(input->write);
  auto process =
      subprocess::Process::start({.words = std::move(words),
                                  .fds = {{input->read.get(), STDIN_FILENO}, {output->write.get(), STDOUT_FILENO}},
                                  .group = subprocess::Group::own});  // Ctrl-C is for leatd alone
  if (!process.ok()) return Error{process.error() + "; install leat-gpu beside leatd"};
  out->process_ = std::move(*process);
  output->write.reset();
  if (first_line(output->read.get(), kStartLimit) != "ready")
    return Error{"the MPS daemon of " + uuid +
                 " does not start; see the line above, and whether nvidia-cuda-mps-control is "
                 "installed"};
  return out;
}

MpsKeeper::~MpsKeeper() {
  input_.reset();
  (void)process_.wait(subprocess::after(kEndLimit));
  std::error_code none;
  fs::remove_all(folder_, none);
}

Status MpsKeepers::start(std::vector<worker::Setup>& setups) {
  for (worker::Setup& setup : setups) {
    worker::DeviceSetup& device = setup.device;
    if (device.group.empty()) continue;
    auto keeper =
        std::find_if(keepers_.begin(), keepers_.end(), [&](const auto& k) { return k->uuid() == device.group; });
    if (keeper == keepers_.end()) {
      auto started = MpsKeeper::start(device.group, setup.user);
      if (!started.ok()) return Error{started.error()};
      keepers_.push_back(std::move(*started));
      keeper = std::prev(keepers_.end());
      log_info("MPS daemon of " + device.group + " runs (keeper " + std::to_string((*keeper)->pid()) + ")");
    }
    for (auto& [key, value] : device.environment)
      if (key == "CUDA_MPS_PIPE_DIRECTORY") value = (*keeper)->pipe_directory();
    device.environment.emplace_back("CUDA_MPS_LOG_DIRECTORY", (*keeper)->log_directory());
  }
  return Done{};
}

std::vector<MpsKeepers::Replaced> MpsKeepers::replace_ended() {
  std::vector<Replaced> out;
  for (auto& keeper : keepers_) {
    if (!keeper->ended()) continue;
    log_warning("the MPS daemon of " + keeper->uuid() + " has died; its workers start again with another");
    auto started = MpsKeeper::start(keeper->uuid(), keeper->user());
    if (!started.ok()) {
      log_error(started.error());  // its workers fail to start from now on, and say so
      continue;
    }
    keeper = std::move(*started);
    out.push_back(
        {keeper->uuid(),
         {{"CUDA_MPS_PIPE_DIRECTORY", keeper->pipe_directory()}, {"CUDA_MPS_LOG_DIRECTORY", keeper->log_directory()}}});
  }
  return out;
}

}  // namespace leat::daemon
