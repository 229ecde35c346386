// What several processes know of the GPUs that are not there: one file that all of them map. A test makes it
// (Host::create), names it in LEAT_FAKE_GPUS for the processes it starts, and changes it while they run: faults, MIG
// instances, delays. Without the variable a process has one A100 of its own.
//
// Thread rule: every field that changes is an atomic; instances change under the file's lock (flock).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/fake/geometry.h"

namespace leat::fake {

// What happens when a process on one place maps another's memory.
enum Peer : std::uint32_t { kPeerRefused = 0, kPeerWorks = 1, kPeerLies = 2 };  // lies: maps, and reads something else

inline constexpr unsigned kMaxGpus = 8, kMaxInstances = 8, kMaxCompute = 7, kMaxClients = 48, kMaxUsers = 64;

struct ComputeInstance {
  std::atomic<std::uint32_t> there, slices, start;
};
struct Instance {
  std::atomic<std::uint32_t> there, profile, start;
  ComputeInstance compute[kMaxCompute];
};
struct Client {
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> epoch;
  // Events on its streams that have not been reached, and graphs that have not ended.
  std::atomic<std::uint32_t> marks, graphs;
};
struct User {  // a process with a context
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> instance, compute;  // 0xff: the whole GPU
};
struct Gpu {
  std::uint32_t model;  // index in models()
  std::atomic<std::uint32_t> mig, mig_pending;
  std::atomic<std::uint32_t> fault_epoch;  // of its MPS clients: all of an older epoch are lost
  Instance instances[kMaxInstances];
  Client clients[kMaxClients];               // of MPS
  std::atomic<std::uint32_t> refused_joins;  // of MPS clients, while others of before a fault were still there
  User users[kMaxUsers];
};
struct State {
  std::uint32_t magic, gpu_count;
  std::atomic<std::uint64_t> seed;
  std::atomic<std::uint32_t> longest_delay_us;            // before each piece of work of a stream
  std::atomic<std::uint32_t> launch_us, graph_launch_us;  // of each plain host function, and of each graph
  std::atomic<std::uint32_t> put_us;                      // of each plain copy and kernel
  std::atomic<std::uint32_t> counts_time;                 // events say what these add up to; nobody waits for that
  std::atomic<std::uint64_t> launches;                    // what was put on streams so far, but for events
  std::atomic<std::uint32_t> refuse_capture;              // no stream can be captured
  std::atomic<std::int32_t> fault_pid;                    // this process's context is lost, nobody else's
  std::atomic<std::uint32_t> fault_status;                // what is said of a lost context; 0: a failed launch
  std::atomic<std::uint32_t> abort_in_destructors;        // of what a lost context is destroyed with, the process ends
  std::atomic<std::uint32_t> driver_version;              // 0: 13000
  std::atomic<std::uint32_t> refused_opens, refused_by;   // so many contexts to come are refused with this status
  std::atomic<std::uint32_t> pins_no_read_only;           // host pages that are mapped read-only cannot be registered
  std::atomic<std::uint64_t> pageable_bytes;              // copied from host pages that are not pinned
  std::atomic<std::uint32_t> instance_multiprocessors;    // of a MIG device by CUDA; 0: what NVML says
  std::atomic<std::uint32_t> has_provider;                // ONNX Runtime computes on the device (onnx_provider.h)
  std::atomic<std::uint32_t> fail_after;                  // NVML: the process dies at its n-th change; 0: never
  std::atomic<std::uint32_t> refuse_changes;              // NVML: no permission
  std::atomic<std::uint32_t> hides_heat, slow_reasons;  // NVML: temperature and power are not known; why clocks are low
  std::atomic<std::uint32_t>
      mps_unreachable;  // processes find no daemon whatever their folder holds, and do not say so
  std::atomic<std::uint32_t> peer[kMaxGpus][kMaxGpus];  // [whose memory][who maps it]: Peer, of different GPUs
  std::atomic<std::uint32_t> in_place_lies;             // within one GPU
  Gpu gpus[kMaxGpus];
};

inline constexpr unsigned kWhole = 0xff;  // no instance of it: the whole one

// A UUID's 16 bytes from what it names; compute kWhole: the whole GPU.
void uuid_of(unsigned gpu, unsigned instance, unsigned compute, unsigned char out[16]) noexcept;
std::string uuid_text(unsigned gpu, unsigned instance = kWhole, unsigned compute = kWhole);  // "GPU-...", "MIG-..."

class Host {
 public:
  // A file with GPUs of these models, MIG off.
  static std::unique_ptr<Host> create(const std::string& path, std::initializer_list<std::string_view> gpus);
  // Of this process: LEAT_FAKE_GPUS, or one A100-40.
  static Host& mine();
  ~Host();

  State& state() noexcept { return *state_; }
  const Model& model(unsigned gpu) const noexcept { return models()[state_->gpus[gpu].model]; }
  // Under the lock of the file.
  template <class Act>
  auto locked(Act act) {
    const Lock lock(fd_);
    return act();
  }
  // Adds an instance whose slices `computes` compute instances share evenly; its index, -1: it does not fit there.
  int add_instance(unsigned gpu, unsigned profile, unsigned start, unsigned computes = 1);
  // Living processes with a context on this instance; 0xff: on any of the GPU.
  std::vector<int> users_of(unsigned gpu, unsigned instance, unsigned compute = 0xff) const;
  bool fits(unsigned gpu, unsigned profile, unsigned start) const noexcept;
  // A fault of one MPS client of this GPU: all of them are lost.
  void fault_group(unsigned gpu) noexcept { state_->gpus[gpu].fault_epoch.fetch_add(1); }

 private:
  struct Lock {
    explicit Lock(int fd) noexcept;
    ~Lock();
    int fd;
  };
  Host() = default;
  std::string made_;  // create(): the file, which goes with the process that made it
  pid_t maker_ = 0;
  int fd_ = -1;
  State* state_ = nullptr;
};

}  // namespace leat::fake
