#include "bench/gpu/probe.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/keeper.h"
#include "bench/gpu/processes.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

using std::chrono::seconds;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string host_text() {
  utsname name{};
  ::uname(&name);
  return std::string(name.sysname) + " " + name.release + ", " + std::to_string(std::thread::hardware_concurrency()) +
         " CPUs";
}

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool executable(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

// The control daemon is part of the driver: on PATH, else in a bin directory beside the driver's library.
std::string find_mps_control() {
  const std::string name = "/nvidia-cuda-mps-control";
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (executable(directory + name)) return directory + name;
  }
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  link_map* where = nullptr;
  if (library != nullptr && ::dlinfo(library, RTLD_DI_LINKMAP, &where) == 0) {
    const std::string beside = directory_of(where->l_name);
    for (const std::string& directory : {beside, beside + "/../bin", beside + "/../../bin"}) {
      if (executable(directory + name)) return directory + name;
    }
  }
  return {};
}

// ---- one run ----

class Run {
 public:
  explicit Run(const ProbeOptions& options) : options_(options) {}

  Report go() {
    report_.started_utc = utc_now();
    report_.quick = options_.quick;
    report_.host = host_text();
    report_.cuda_build = version_text(CUDART_VERSION);
    if (enumerate()) ask_all();
    report_.duration_s = std::chrono::duration<double>(Clock::now() - begin_).count();
    return std::move(report_);
  }

 private:
  Environment child_environment() const {
    Environment environment;
    if (!options_.device.empty()) environment.emplace_back("CUDA_VISIBLE_DEVICES", options_.device);
    // A daemon of somebody else must not make clients of processes that are to run without MPS.
    environment.emplace_back("CUDA_MPS_PIPE_DIRECTORY", keeper_ ? keeper_->directory() + "/none" : "/nonexistent");
    return environment;
  }

  // False, with the reason in the report, where there is nothing to ask.
  bool enumerate() {
    if (const std::string& why = driver().problem; !why.empty()) {
      report_.problem = "no NVIDIA driver: " + why + "; nothing to probe on this host";
      return false;
    }
    auto child =
        Child::start({.role = std::string(kEnumerateRole), .arguments = {}, .environment = child_environment()});
    if (!child) {
      report_.problem = child.error();
      return false;
    }
    auto versions = child->channel().expect("versions", after(seconds(30)));
    auto devices =
        versions ? child->channel().expect("devices", after(seconds(30))) : Result<Message>(Error{versions.error()});
    if (!devices) {
      report_.problem = "no usable CUDA device: " + devices.error() + "; nothing to probe on this host";
      return false;
    }
    std::istringstream(versions->body) >> report_.driver >> report_.cuda_driver;
    std::istringstream lines(devices->body);
    for (std::string uuid, name; lines >> uuid && std::getline(lines >> std::ws, name);)
      report_.devices.push_back({uuid, name});
    return true;
  }

  void ask_all() {
    auto keeper = Keeper::start();
    // Without it only what needs MPS cannot be asked.
    if (keeper)
      keeper_.emplace(std::move(*keeper));
    else
      no_keeper_ = keeper.error();
    const auto used_before = memory_in_use();
    std::vector<const Group*> chosen;
    for (const Group& group : groups()) {
      const bool named = std::find(options_.groups.begin(), options_.groups.end(), group.name) != options_.groups.end();
      if (options_.groups.empty() || named) chosen.push_back(&group);
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (options_.progress) options_.progress(i, chosen.size(), chosen[i]->name);
      ask(*chosen[i]);
      report_.duration_s = std::chrono::duration<double>(Clock::now() - begin_).count();
      if (options_.partial) options_.partial(report_);
    }
    tidy(used_before);
  }

  void ask(const Group& group) {
    const Deadline deadline = after(options_.quick ? group.limit_quick : group.limit);
    auto child = Child::start({.role = std::string(kGroupRole),
                               .arguments = {std::string(group.name), options_.quick ? "quick" : "full"},
                               .environment = child_environment()});
    if (!child) {
      broken(group, child.error());
      return;
    }
    std::string trouble;
    for (;;) {
      Received received = child->channel().receive(deadline);
      if (received.receipt == Receipt::closed) break;
      if (received.receipt != Receipt::message) {
        trouble = received.receipt == Receipt::timed_out ? "exceeded its time limit" : received.text;
        break;
      }
      if (received.message.kind == "failed") {
        trouble = received.message.body;
        break;
      }
      serve(*child, received.message);
    }
    if (!trouble.empty()) child->kill();
    const Ending ending = child->wait(after(seconds(10)));
    if (trouble.empty() && !ending.clean()) trouble = "its process " + ending.text();
    if (!trouble.empty()) broken(group, trouble);
    if (daemon_up_) (void)stop_daemon();  // the group did not live to do it; tidy() would report what is left
  }

  void serve(Child& child, const Message& message) {
    if (message.kind == "answer") {
      auto answer = answer_from_json(message.body);
      if (answer) report_.answers.push_back(std::move(*answer));
      return;
    }
    Status done = Error{"unknown request " + message.kind};
    std::string body;
    if (message.kind == "start_mps") done = start_daemon(message.body, body);
    if (message.kind == "stop_mps") done = stop_daemon();
    // A group that is gone by now is seen at the next receive.
    (void)(done ? child.channel().send("mps", body) : child.channel().send("failed", done.error()));
  }

  Status start_daemon(const std::string& argument_lines, std::string& body) {
    if (!keeper_) return Error{no_keeper_};
    DaemonOptions daemon;
    daemon.program = options_.mps_control.empty() ? find_mps_control() : options_.mps_control;
    if (daemon.program.empty()) return Error{"nvidia-cuda-mps-control was not found on PATH or beside the driver"};
    std::istringstream lines(argument_lines);
    for (std::string argument; std::getline(lines, argument);) daemon.arguments.push_back(argument);
    if (!options_.device.empty()) daemon.environment.emplace_back("CUDA_VISIBLE_DEVICES", options_.device);
    if (auto started = keeper_->start_daemon(daemon); !started) return started;
    daemon_up_ = true;
    body = daemon.program + '\n';
    for (const auto& [name, value] : keeper_->environment()) body += name + '=' + value + '\n';
    return Done{};
  }

  Status stop_daemon() {
    daemon_up_ = false;
    return keeper_ ? keeper_->stop_daemon() : Status(Done{});
  }

  static std::map<std::string, std::uint64_t> memory_in_use() {
    std::map<std::string, std::uint64_t> used;
    if (auto facts = read_nvml()) {
      for (const NvmlDevice& device : facts->devices) used[device.uuid] = device.memory_used_bytes;
    }
    return used;
  }

  // What this run leaves behind: nothing, and that is checked.
  void tidy(const std::map<std::string, std::uint64_t>& used_before) {
    const Status tidied = keeper_ ? keeper_->tidy() : Status(Error{no_keeper_});
    report_.answers.push_back(own_answer("cleanup.processes", "Was everything the probe started ended and removed?",
                                         "keeper's ending, processes below the probe, its private directory",
                                         tidied ? Verdict::yes : Verdict::failed, tidied ? "" : tidied.error()));
    for (const auto& [uuid, used] : memory_in_use()) {
      const auto before = used_before.find(uuid);
      if (before == used_before.end()) continue;
      Answer answer = own_answer("cleanup.memory_left", "How much more device memory is in use than before?",
                                 "nvmlDeviceGetMemoryInfo before and after; other users of the device count too",
                                 Verdict::number, "");
      answer.conditions["gpu"] = uuid;
      answer.unit = "MiB";
      answer.number = summarise({(static_cast<double>(used) - static_cast<double>(before->second)) / double{kMiB}});
      report_.answers.push_back(std::move(answer));
    }
  }

  Answer own_answer(const std::string& id, const std::string& question, const std::string& how, Verdict verdict,
                    const std::string& note) {
    return {.group = id.substr(0, id.find('.')),
            .id = id,
            .question = question,
            .how = how,
            .conditions = {},
            .verdict = verdict,
            .number = std::nullopt,
            .unit = {},
            .note = note,
            .device = {}};
  }

  void broken(const Group& group, const std::string& why) {
    report_.answers.push_back(own_answer(std::string(group.name) + ".complete",
                                         "Did this group of questions come to its end?", "its process", Verdict::failed,
                                         why));
  }

  const ProbeOptions& options_;
  Report report_;
  std::optional<Keeper> keeper_;
  std::string no_keeper_;  // why there is none
  const Clock::time_point begin_ = Clock::now();
  bool daemon_up_ = false;
};

}  // namespace

Report run_probe(const ProbeOptions& options) { return Run(options).go(); }

int exit_status(const Report& report) noexcept {
  if (!report.problem.empty()) return 3;
  return count_of(report, Verdict::failed) == 0 ? 0 : 1;
}

int run_enumerate(Channel& channel, std::span<const std::string>) {
  LEAT_DRIVER(cuInit, 0);
  int version = 0, count = 0;
  LEAT_DRIVER(cuDriverGetVersion, &version);
  LEAT_DRIVER(cuDeviceGetCount, &count);
  if (count == 0) throw ProbeFailed("CUDA shows none");
  auto facts = read_nvml();
  const std::string driver_version = facts && !facts->driver_version.empty() ? facts->driver_version : "unknown";
  if (!channel.send("versions", driver_version + " " + version_text(version))) return 1;
  std::string lines;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    std::array<char, 256> name{};
    LEAT_DRIVER(cuDeviceGet, &device, i);
    LEAT_DRIVER(cuDeviceGetName, name.data(), static_cast<int>(name.size()), device);
    lines += uuid_of(device) + " " + name.data() + "\n";
  }
  return channel.send("devices", lines) ? 0 : 1;
}

}  // namespace leat::probe
