#include "cuda/partitions/gpus.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "cuda/driver/driver.h"
#include "cuda/partitions/peers.h"
#include "cuda/runtime/nvml.h"
#include "tools/base/json/json.h"

namespace leat::partitions {
namespace {

// "NVIDIA A100-SXM4-40GB MIG 1g.5gb" -> "1g.5gb"
std::string profile_in(const std::string& name) {
  const std::size_t at = name.rfind("MIG ");
  return at == std::string::npos ? name : name.substr(at + 4);
}

void add_multiprocessors(const cuda::Driver& driver, std::vector<Gpu>& gpus) {
  int count = 0;
  (void)driver.device_count(&count);
  for (int i = 0; i < count; ++i) {
    cuda::Ordinal ordinal = 0;
    cuda::Uuid uuid{};
    int multiprocessors = 0;
    std::size_t bytes = 0;
    char name[96] = "";
    if (driver.device_get(&ordinal, i) != cuda::kSuccess || driver.device_uuid(&uuid, ordinal) != cuda::kSuccess ||
        driver.device_attribute(&multiprocessors, cuda::kMultiprocessors, ordinal) != cuda::kSuccess)
      continue;
    (void)driver.device_name(name, sizeof name, ordinal);
    (void)driver.device_memory(&bytes, ordinal);
    const std::string text = cuda::text_of(uuid, "GPU-");
    Gpu* found = nullptr;
    for (Gpu& g : gpus)
      if (g.uuid == text) found = &g;
    const bool instance = std::string(name).find(" MIG ") != std::string::npos;
    if (found == nullptr && !instance && gpus.empty() == (i == 0))
      found = &gpus.emplace_back(Gpu{.uuid = text, .name = name, .memory_mib = bytes >> 20});
    if (found != nullptr) found->multiprocessors = static_cast<unsigned>(multiprocessors);
  }
}

constexpr std::chrono::seconds kInstanceLimit{20};  // of one instance
constexpr const char* kRole = "multiprocessors";

// Of the one device that is visible.
int tell_multiprocessors(gpu::Channel& channel, std::span<const std::string>) {
  const auto driver = cuda::driver();
  cuda::Ordinal ordinal = 0;
  int count = 0;
  if (!driver.ok() || (*driver)->device_get(&ordinal, 0) != cuda::kSuccess ||
      (*driver)->device_attribute(&count, cuda::kMultiprocessors, ordinal) != cuda::kSuccess)
    return 1;
  return channel.send(kRole, std::to_string(count)) ? 0 : 1;
}

}  // namespace

gpu::Role multiprocessors_role() { return {kRole, tell_multiprocessors}; }

void ask_cuda_for_instances(std::vector<Gpu>& gpus) {
  for (Gpu& g : gpus) {
    for (Instance& i : g.instances) {
      auto child = gpu::Child::start({.role = kRole, .environment = {{"CUDA_VISIBLE_DEVICES", i.uuid}}});
      if (!child.ok()) return;
      const auto told = child->channel().expect(kRole, subprocess::after(kInstanceLimit));
      const auto count = told.ok() ? std::strtoul(told->body.c_str(), nullptr, 10) : 0;
      if (count != 0) i.multiprocessors = static_cast<unsigned>(count);
      (void)child->wait(subprocess::after(kInstanceLimit));
    }
  }
}

Result<std::vector<Gpu>> read_gpus() {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"}) ::unsetenv(name);
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);  // a share would show its own multiprocessors alone
  const auto driver = cuda::driver();
  if (!driver.ok()) return Error{driver.error()};
  std::vector<Gpu> out;
  if (const auto nvml = gpu::read_nvml(); nvml.ok()) {
    for (const gpu::NvmlDevice& d : nvml->devices) {
      Gpu gpu{.uuid = d.uuid, .name = d.name, .memory_mib = d.memory_bytes >> 20, .mig = d.mig_on.value_or(false)};
      for (const gpu::NvmlMigInstance& i : d.instances)
        gpu.instances.push_back({.uuid = i.uuid,
                                 .profile = profile_in(i.name),
                                 .gpu_instance = i.gpu_instance,
                                 .compute_instance = i.compute_instance,
                                 .multiprocessors = i.multiprocessors,
                                 .memory_mib = i.memory_mib});
      // Of a GPU in MIG mode the driver shows the instances alone; its largest profile has all that MIG leaves.
      for (const gpu::NvmlMigProfile& p : d.profiles)
        if (gpu.mig) gpu.multiprocessors = std::max(gpu.multiprocessors, p.multiprocessors);
      out.push_back(std::move(gpu));
    }
  }
  add_multiprocessors(**driver, out);
  return out;
}

std::string as_json(const std::vector<Gpu>& gpus) {
  Json list = Json::array();
  for (const Gpu& g : gpus) {
    Json instances = Json::array();
    for (const Instance& i : g.instances)
      instances.push_back({{"uuid", i.uuid},
                           {"profile", i.profile},
                           {"gpu_instance", i.gpu_instance},
                           {"compute_instance", i.compute_instance},
                           {"multiprocessors", i.multiprocessors},
                           {"memory_mib", i.memory_mib}});
    list.push_back({{"uuid", g.uuid},
                    {"name", g.name},
                    {"multiprocessors", g.multiprocessors},
                    {"memory_mib", g.memory_mib},
                    {"mig", g.mig},
                    {"instances", instances}});
  }
  return Json{{"gpus", list}}.dump(2) + "\n";
}

std::string place_of(const std::vector<Gpu>& gpus, const std::string& uuid) {
  for (const Gpu& g : gpus)
    for (const Instance& i : g.instances)
      if (i.uuid == uuid) return g.uuid + "/" + std::to_string(i.gpu_instance);
  return uuid;
}

std::string as_host(const std::vector<Gpu>& gpus, const std::vector<Pair>& pairs) {
  Json list = Json::array();
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const Gpu& gpu = gpus[g];
    const std::string name = "gpu" + std::to_string(g);
    const auto bytes = [](std::uint64_t mib) { return mib << 20; };
    if (!gpu.mig) {
      list.push_back({{"name", name},
                      {"kind", "gpu"},
                      {"class", "gpu"},
                      {"size", 1},
                      {"price", 1},
                      {"device", g},
                      {"memory_bytes", bytes(gpu.memory_mib)},
                      {"selector", gpu.uuid}});
      continue;
    }
    for (const Instance& i : gpu.instances) {
      const double size = gpu.multiprocessors == 0 ? 1 : static_cast<double>(i.multiprocessors) / gpu.multiprocessors;
      list.push_back(
          {{"name", name + "/mig" + std::to_string(i.gpu_instance) + "." + std::to_string(i.compute_instance)},
           {"kind", "mig"},
           {"class", "mig:" + i.profile},
           {"size", size},
           {"price", size},
           {"device", g},
           {"memory_bytes", bytes(i.memory_mib)},
           {"selector", i.uuid}});
    }
  }
  Json out = {{"schema", "leat-host/1"}, {"partitions", list}};
  if (const double slowest = handover_gbps(pairs); slowest > 0) out["handover_gbps"] = slowest;
  // A pair stands for every two partitions of its two places; in place is 0.
  for (const Pair& p : pairs) {
    const std::string there = place_of(gpus, p.from), here = place_of(gpus, p.to);
    const double gbps = p.mapped && p.in_place ? 0 : p.best_gbps();
    if (gbps <= 0 && !p.mapped) continue;
    const auto lies = [&gpus](const Json& partition) {
      return place_of(gpus, partition.at("selector").get<std::string>());
    };
    for (const Json& a : list) {
      for (const Json& b : list)
        if (a != b && lies(a) == there && lies(b) == here)
          out["handover"].push_back({{"from", a.at("name")}, {"to", b.at("name")}, {"gbps", gbps}});
    }
  }
  return out.dump(2) + "\n";
}

}  // namespace leat::partitions
