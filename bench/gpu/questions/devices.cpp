// Group 1: what is there, and what the driver says it can do. Facts that cost a look each; the bandwidths are measured.
#include <array>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/processes.h"
#include "bench/gpu/questions/client.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

struct Fact {
  const char* id;
  const char* question;
  CUdevice_attribute which;
  const char* unit;  // null: yes or no
};

constexpr Fact kFacts[] = {
    {"devices.sms", "How many SMs?", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "count"},
    {"devices.l2", "How large is the L2 cache?", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "bytes"},
    {"devices.copy_engines", "How many copy engines?", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, "count"},
    {"devices.compute_mode", "Which compute mode (0 default, 2 prohibited, 3 exclusive process)?",
     CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, "mode"},
    {"devices.concurrent_kernels", "Can kernels of one context overlap?", CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,
     nullptr},
    {"devices.vmm", "Virtual memory management (cuMemCreate)?", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
     nullptr},
    {"devices.vmm_posix_fd", "Can VMM memory be exported as a file descriptor?",
     CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, nullptr},
    {"devices.ipc_events", "Interprocess events?", CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, nullptr},
    {"devices.memory_pools", "Stream-ordered memory pools?", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, nullptr},
    {"devices.memory_pool_handles", "Handle types a memory pool can be exported as (bit 0: file descriptor)?",
     CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, "bits"},
    {"devices.host_register", "Can host memory be registered?", CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, nullptr},
    {"devices.host_register_read_only", "Can a read-only mapping be registered?",
     CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, nullptr},
    {"devices.host_pointer_is_device_pointer", "Do kernels use the host's address of registered memory?",
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, nullptr},
    {"devices.pageable_access", "Can kernels read unregistered host memory?",
     CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, nullptr},
};

void ask_fact(Asker& asker, const Fact& fact, CUdevice device) {
  const Question question{fact.id, fact.question, "cuDeviceGetAttribute"};
  const auto value = [&] {
    const int found = attribute(device, fact.which);
    if (found < 0) throw NotApplicable("this driver does not know the attribute");
    return found;
  };
  if (fact.unit == nullptr) {
    asker.yes_no(question, [&] { return YesNo{value() != 0}; });
  } else {
    asker.number(question, fact.unit, [&] { return Samples{{static_cast<double>(value())}}; });
  }
}

void ask_visible_devices(Asker& asker) {
  int count = 0;
  asker.number({"devices.visible", "How many devices does CUDA show to one process?", "cuDeviceGetCount"}, "count",
               [&] {
                 LEAT_DRIVER(cuDeviceGetCount, &count);
                 return Samples{{static_cast<double>(count)}};
               });
  for (int i = 0; i < count; ++i) {
    asker.number({"devices.compute_capability",
                  "Which compute capability?",
                  "cuDeviceGetAttribute",
                  {{"ordinal", std::to_string(i)}}},
                 "version", [&] {
                   CUdevice device = 0;
                   LEAT_DRIVER(cuDeviceGet, &device, i);
                   std::array<char, 256> name{};
                   LEAT_DRIVER(cuDeviceGetName, name.data(), static_cast<int>(name.size()), device);
                   const int major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
                   const int minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
                   if (major < 0 || minor < 0) throw NotApplicable("this driver does not know the attribute");
                   return Samples{{major + 0.1 * minor}, std::string(name.data()) + ", " + uuid_of(device)};
                 });
    for (int j = 0; j < count; ++j) {
      if (i == j) continue;
      asker.yes_no({"devices.peer_access",
                    "Can kernels on one device reach the other's memory?",
                    "cudaDeviceCanAccessPeer",
                    {{"from", std::to_string(i)}, {"to", std::to_string(j)}}},
                   [&] {
                     int can = 0;
                     LEAT_CUDA(cudaDeviceCanAccessPeer(&can, i, j));
                     return YesNo{can != 0};
                   });
    }
  }
}

std::string text_of(const std::optional<unsigned>& value) { return value ? std::to_string(*value) : "?"; }

void ask_mig(Asker& asker, const NvmlDevice& device, const Conditions& which) {
  asker.yes_no({"devices.mig", "Is MIG mode on?", "nvmlDeviceGetMigMode", which}, [&] {
    if (!device.mig_on) throw NotApplicable("this device has no MIG mode");
    return YesNo{*device.mig_on};
  });
  asker.number({"devices.mig_instances", "How many MIG devices exist?", "nvmlDeviceGetMigDeviceHandleByIndex", which},
               "count", [&] {
                 std::string note;
                 for (const NvmlMigInstance& i : device.instances) {
                   note += (note.empty() ? "" : "; ") + i.name + " gi " + std::to_string(i.gpu_instance) + " ci " +
                           std::to_string(i.compute_instance) + " " + std::to_string(i.multiprocessors) + " SMs " +
                           std::to_string(i.memory_mib) + " MiB";
                 }
                 return Samples{{static_cast<double>(device.instances.size())}, note};
               });
  for (const NvmlMigProfile& profile : device.profiles) {
    Conditions conditions = which;
    conditions["profile"] = std::to_string(profile.id);
    asker.number({"devices.mig_profile_sms", "How many SMs has an instance of this profile?",
                  "nvmlDeviceGetGpuInstanceProfileInfo and ...PossiblePlacements", conditions},
                 "count", [&] {
                   std::string note =
                       std::to_string(profile.slices) + " slices, " + std::to_string(profile.memory_mib) +
                       " MiB, at most " + std::to_string(profile.count_max) + ", copy engines " +
                       std::to_string(profile.copy_engines) + ", decoders " + std::to_string(profile.decoders) +
                       ", peer to peer " + (profile.peer_to_peer ? "yes" : "no") + ", placements";
                   for (const std::string& placement : profile.placements) note += " " + placement;
                   if (profile.placements.empty()) note += " not shown to this user";
                   return Samples{{static_cast<double>(profile.multiprocessors)}, note};
                 });
  }
}

void ask_nvml(Asker& asker) {
  auto facts = read_nvml();
  asker.yes_no({"devices.nvml", "Does NVML answer?", "dlopen of libnvidia-ml.so.1 and nvmlInit"}, [&] {
    return facts ? YesNo{true, "driver " + facts->driver_version} : YesNo{false, facts.error()};
  });
  if (!facts) return;
  for (std::size_t i = 0; i < facts->devices.size(); ++i) {
    const NvmlDevice& device = facts->devices[i];
    const Conditions which{{"gpu", device.uuid.empty() ? std::to_string(i) : device.uuid}};
    asker.number({"devices.memory", "How much memory?", "nvmlDeviceGetMemoryInfo", which}, "MiB", [&] {
      return Samples{{static_cast<double>(device.memory_bytes / kMiB)},
                     std::to_string(device.memory_used_bytes / kMiB) + " MiB in use before the probe's own work"};
    });
    asker.number({"devices.pcie_generation", "Which PCIe generation is the link running at?", "NVML", which},
                 "generation", [&] {
                   if (!device.pcie_generation) throw NotApplicable("this driver does not say");
                   return Samples{{static_cast<double>(*device.pcie_generation)},
                                  "width " + text_of(device.pcie_width) + "; at most generation " +
                                      text_of(device.pcie_generation_max) + " width " + text_of(device.pcie_width_max) +
                                      "; " + device.pci};
                 });
    asker.number({"devices.sm_clock", "Which SM clock, at rest?", "nvmlDeviceGetClockInfo", which}, "MHz", [&] {
      if (!device.sm_clock_mhz) throw NotApplicable("this driver does not say");
      return Samples{{static_cast<double>(*device.sm_clock_mhz)},
                     "memory clock " + text_of(device.memory_clock_mhz) + " MHz"};
    });
    ask_mig(asker, device, which);
  }
}

// A process that is offered two MIG devices of one GPU: how many does CUDA show?
void ask_mig_visibility(Asker& asker) {
  asker.number({"devices.mig_visible_in_one_process", "How many of two offered MIG devices can one process use?",
                "a child with both in CUDA_VISIBLE_DEVICES counts its devices"},
               "count", [&] {
                 auto facts = read_nvml();
                 if (!facts) throw NotApplicable(facts.error());
                 std::string both;
                 for (const NvmlDevice& device : facts->devices) {
                   if (device.instances.size() >= 2) both = device.instances[0].uuid + "," + device.instances[1].uuid;
                 }
                 if (both.empty()) throw NotApplicable("no GPU has two MIG devices");
                 Client client({{"CUDA_VISIBLE_DEVICES", both}});
                 return Samples{{static_cast<double>(client.devices())}, both};
               });
}

void ask_bandwidth(Asker& asker) {
  constexpr std::size_t bytes = 64 * kMiB;
  const int repeats = asker.repeats(50);
  const auto measure = [&](const char* id, const char* question, auto&& work) {
    asker.number({id, question, "64 MiB of pinned memory, events around each copy"}, "GB/s", [&] {
      const Buffer host(bytes, Buffer::Where::host), device(bytes);
      const Stream stream;
      return Samples{rates(time_us(stream, repeats, [&] { work(host, device, stream); }), double{bytes}, 1e-3)};
    });
  };
  measure("devices.upload", "How fast is a copy from the host?",
          [](const Buffer& host, const Buffer& device, const Stream& stream) {
            LEAT_CUDA(cudaMemcpyAsync(device.as(), host.as(), bytes, cudaMemcpyHostToDevice, stream));
          });
  measure("devices.download", "How fast is a copy to the host?",
          [](const Buffer& host, const Buffer& device, const Stream& stream) {
            LEAT_CUDA(cudaMemcpyAsync(host.as(), device.as(), bytes, cudaMemcpyDeviceToHost, stream));
          });
  asker.number({"devices.upload_beside_download", "How fast is a copy from the host while one to the host runs?",
                "64 MiB each way on two streams; the slower of both ends the sample"},
               "GB/s", [&] {
                 const Buffer up(bytes, Buffer::Where::host), down(bytes, Buffer::Where::host), in(bytes), out(bytes);
                 const Stream stream, other;
                 const Event begun, done;
                 return Samples{rates(
                     time_us(stream, repeats,
                             [&] {
                               LEAT_CUDA(cudaEventRecord(begun, stream));
                               LEAT_CUDA(cudaStreamWaitEvent(other, begun, 0));
                               LEAT_CUDA(cudaMemcpyAsync(down.as(), out.as(), bytes, cudaMemcpyDeviceToHost, other));
                               LEAT_CUDA(cudaMemcpyAsync(in.as(), up.as(), bytes, cudaMemcpyHostToDevice, stream));
                               LEAT_CUDA(cudaEventRecord(done, other));
                               LEAT_CUDA(cudaStreamWaitEvent(stream, done, 0));
                             }),
                     double{bytes}, 1e-3)};
               });
  asker.number({"devices.copy_in_place", "How fast does a kernel copy within the device?",
                "256 MiB read and 256 MiB written; both counted"},
               "GB/s", [&] {
                 constexpr std::size_t large = 256 * kMiB;
                 const Buffer from(large), to(large);
                 const Stream stream;
                 return Samples{rates(
                     time_us(stream, repeats, [&] { LEAT_CUDA(kernels::copy(to.as(), from.as(), large, stream)); }),
                     2.0 * double{large}, 1e-3)};
               });
}

}  // namespace

void ask_devices(Asker& asker) {
  ask_visible_devices(asker);
  CUdevice device = 0;
  LEAT_DRIVER(cuDeviceGet, &device, 0);
  for (const Fact& fact : kFacts) ask_fact(asker, fact, device);
  ask_nvml(asker);
  ask_mig_visibility(asker);
  open_device();
  ask_bandwidth(asker);
}

}  // namespace leat::probe
