// A libcuda.so.1 on which nothing computes but what a test needs: streams are threads with seeded delays, device memory
// is memfds, the one kernel is a loop over cuda/device/picture_body.h. What it cannot show: a real driver's visibility
// rules, what MPS and MIG allow, the models' provider, and every speed.
//
//   CUDA_VISIBLE_DEVICES          UUIDs or ordinals, as the real driver reads it
//   CUDA_MPS_PIPE_DIRECTORY       a client of MPS where a file `control` is in it; else, silently, none
//   CUDA_MPS_ACTIVE_THREAD_PERCENTAGE   its share of the multiprocessors
//   LEAT_FAKE_GPUS                state.h
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/device/picture_body.h"
#include "cuda/driver/api.h"
#include "cuda/fake/state.h"
#include "cuda/fake/stream.h"
#include "cuda/fake/visible.h"

namespace leat::fake {
namespace {

using cuda::Address;
using cuda::Handle;
using cuda::Ordinal;
using cuda::Status;

constexpr std::size_t kGranularity = std::size_t{2} << 20;
constexpr unsigned kSmStep = 2;  // a share is rounded down to so many multiprocessors

struct Memory {
  int fd = -1;
  std::uint64_t bytes = 0;
};
struct Event {
  fake::Stream* stream = nullptr;
  std::uint64_t ticket = 0;
  bool blocking = false;
  // Written when the stream comes to it; shared with that, since the event may be gone by then.
  std::shared_ptr<std::atomic<std::int64_t>> at_ns = std::make_shared<std::atomic<std::int64_t>>(0);
};
struct Graph {
  std::vector<std::function<void()>> work;
};

struct Process {
  std::mutex mutex;
  bool initialised = false;
  std::vector<Visible> visible;
  bool mps = false;
  int retained = 0;
  unsigned context_gpu = 0;
  std::uint32_t epoch = 0;
  Client* client = nullptr;
  User* user = nullptr;
  std::map<Handle, Memory> memory;
  Handle next_handle = 1;
  std::map<const void*, std::size_t> registered;
};
Process& process() {
  static Process* const kProcess = new Process;  // outlives every stream of the process
  return *kProcess;
}
Host& host() { return Host::mine(); }

// The wait that a test has asked to be left out, counted from then on; -1: none.
std::atomic<int> wait_to_forget{-1};
std::atomic<int> waits_seen{0};

bool lost() {
  const Process& p = process();
  if (host().state().fault_pid == ::getpid()) return true;
  return p.client != nullptr && host().state().gpus[p.context_gpu].fault_epoch != p.epoch;
}
// Whoever is told so takes what the streams use away.
bool settled_and_lost() {
  if (!lost()) return false;
  fake::Stream::settle();
  return true;
}
#define LEAT_UNLESS_LOST()                                          \
  if (!process().initialised) return ::leat::cuda::kNotInitialized; \
  if (settled_and_lost()) return ::leat::cuda::kLaunchFailed

std::uint32_t delay() { return host().state().longest_delay_us; }

bool is_client_of_mps() {
  const char* pipe = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return host().state().mps_unreachable == 0 && pipe != nullptr && *pipe != '\0' &&
         ::access((std::string(pipe) + "/control").c_str(), F_OK) == 0;
}

unsigned multiprocessors(const Visible& v) {
  const Gpu& gpu = host().state().gpus[v.gpu];
  const Model& model = host().model(v.gpu);
  unsigned all = model.multiprocessors;
  if (v.instance != kWhole) {
    const Profile& profile = *find_profile(model, gpu.instances[v.instance].profile);
    all = profile.multiprocessors * gpu.instances[v.instance].compute[v.compute].slices / profile.slices;
  }
  const char* const percent = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  if (!process().mps || percent == nullptr) return all;
  const auto share = static_cast<unsigned>(all * std::strtod(percent, nullptr) / 100);
  return std::max(kSmStep, share / kSmStep * kSmStep);
}

// Room among the GPU's MPS clients; entries of processes that are gone are taken over.
Status join(unsigned gpu) {
  Process& p = process();
  Gpu& shared = host().state().gpus[gpu];
  return host().locked([&]() -> Status {
    const std::uint32_t epoch = shared.fault_epoch;
    Client* room = nullptr;
    for (Client& c : shared.clients) {
      const bool alive = c.pid != 0 && (::kill(c.pid, 0) == 0 || errno == EPERM);
      if (alive && c.epoch != epoch) {  // until everybody of before has left
        ++shared.refused_joins;
        return cuda::kMpsServerNotReady;
      }
      if (!alive && room == nullptr) room = &c;
    }
    if (room == nullptr) return cuda::kMpsMaxClientsReached;
    room->pid = ::getpid();
    room->epoch = epoch;
    p.client = room;
    p.epoch = epoch;
    return cuda::kSuccess;
  });
}

// Shown by NVML among the device's processes; entries of processes that are gone are taken over.
void enter(const Visible& device) {
  host().locked([&] {
    for (User& u : host().state().gpus[device.gpu].users) {
      if (u.pid != 0 && (::kill(u.pid, 0) == 0 || errno == EPERM)) continue;
      u.instance = device.instance;
      u.compute = device.compute;
      u.pid = ::getpid();
      process().user = &u;
      return;
    }
  });
}

// Which GPU and GPU instance a descriptor's memory lies on: its memfd's name says so.
bool origin_of(int fd, unsigned* gpu, unsigned* instance) {
  char path[64], target[128] = "";
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (::readlink(path, target, sizeof target - 1) <= 0) return false;
  return std::sscanf(target, "/memfd:leat-fake-%u-%u-", gpu, instance) == 2;
}

// Whose memory it is: the memfd's name ends with it.
pid_t maker_of(int fd) {
  char path[64], target[128] = "";
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  unsigned gpu = 0, instance = 0;
  int pid = 0;
  if (::readlink(path, target, sizeof target - 1) <= 0) return 0;
  return std::sscanf(target, "/memfd:leat-fake-%u-%u-%d", &gpu, &instance, &pid) == 3 ? pid : 0;
}
int somewhere_else(off_t bytes) {
  const int fd = ::memfd_create("leat-fake-elsewhere", MFD_CLOEXEC);
  return fd >= 0 && ::ftruncate(fd, bytes) == 0 ? fd : -1;
}

const Visible& current() { return process().visible[0]; }

struct PictureFunction {};
PictureFunction picture_function;
char module_tag, context_tag;

void run_pictures(const leat_picture_job* jobs, const leat_picture_target& target, unsigned count) {
  for (unsigned z = 0; z < count; ++z)
    for (std::uint32_t y = 0; y < target.height; ++y)
      for (std::uint32_t x = 0; x < target.width; ++x) cuda::picture_pixel(jobs[z], target, x, y);
}

void spend(std::uint32_t us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (us != 0 && std::chrono::steady_clock::now() < end) {
  }
}

fake::Stream* stream_of(cuda::Stream s) { return reinterpret_cast<fake::Stream*>(s); }

}  // namespace
}  // namespace leat::fake

using namespace leat::fake;
using namespace leat::cuda;

// Our own declarations stand in for the driver's header, and so does the calling convention of C.
#define LEAT_EXPORT extern "C" __attribute__((visibility("default")))

LEAT_EXPORT int leat_stand_in_driver() { return 1; }
// The wait after `obeyed` more returns at once, without waiting; -1: none. For the test of the waits.
LEAT_EXPORT void leat_stand_in_forget_wait(int obeyed) {
  waits_seen = 0;
  wait_to_forget = obeyed;
}
LEAT_EXPORT int leat_stand_in_waits() { return waits_seen; }

LEAT_EXPORT Status cuInit(unsigned) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (!p.initialised) p.visible = visible_devices();
  p.mps = is_client_of_mps();
  p.initialised = true;
  return p.visible.empty() ? kNoDevice : kSuccess;
}
LEAT_EXPORT Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
LEAT_EXPORT Status cuGetErrorName(Status status, const char** name) {
  static const std::map<Status, const char*> kNames = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
      {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED"},
      {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
      {kMpsServerNotReady, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
      {kMpsMaxClientsReached, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"},
      {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {kHostMemoryAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"}};
  const auto found = kNames.find(status);
  *name = found != kNames.end() ? found->second : "CUDA_ERROR_OF_THE_STAND_IN";
  return kSuccess;
}
LEAT_EXPORT Status cuGetErrorString(Status, const char** text) {
  *text = "stand-in driver";
  return kSuccess;
}

// ---- devices and contexts ----

LEAT_EXPORT Status cuDeviceGetCount(int* count) {
  *count = static_cast<int>(process().visible.size());
  return process().initialised ? kSuccess : kNotInitialized;
}
LEAT_EXPORT Status cuDeviceGet(Ordinal* device, int ordinal) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= process().visible.size()) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}
LEAT_EXPORT Status cuDeviceGetName(char* name, int bytes, Ordinal device) {
  const Visible& v = process().visible[static_cast<std::size_t>(device)];
  const Model& model = host().model(v.gpu);
  const auto* const profile =
      v.instance == kWhole ? nullptr : find_profile(model, host().state().gpus[v.gpu].instances[v.instance].profile);
  std::snprintf(name, static_cast<std::size_t>(bytes), "stand-in %s%s%s", model.name, profile ? " MIG " : "",
                profile ? profile->name : "");
  return kSuccess;
}
LEAT_EXPORT Status cuDeviceGetUuid_v2(Uuid* uuid, Ordinal device) {
  const Visible& v = process().visible[static_cast<std::size_t>(device)];
  uuid_of(v.gpu, v.instance, v.compute, uuid->bytes);
  return kSuccess;
}
LEAT_EXPORT Status cuDeviceGetAttribute(int* value, int attribute, Ordinal device) {
  switch (attribute) {
    case kMultiprocessors:
      *value = static_cast<int>(multiprocessors(process().visible[static_cast<std::size_t>(device)]));
      return kSuccess;
    case kVirtualMemory:
    case kDescriptorHandles:
    case kReadOnlyRegistration:
      *value = 1;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}
LEAT_EXPORT Status cuDeviceTotalMem_v2(std::size_t* bytes, Ordinal device) {
  const Visible& v = process().visible[static_cast<std::size_t>(device)];
  const Model& model = host().model(v.gpu);
  const std::uint64_t mib =
      v.instance == kWhole ? model.memory_mib
                           : find_profile(model, host().state().gpus[v.gpu].instances[v.instance].profile)->memory_mib;
  *bytes = mib << 20;
  return kSuccess;
}
LEAT_EXPORT Status cuDevicePrimaryCtxSetFlags_v2(Ordinal, unsigned) { return kSuccess; }
LEAT_EXPORT Status cuDevicePrimaryCtxRetain(Context* context, Ordinal device) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (p.retained == 0) {
    p.context_gpu = p.visible[static_cast<std::size_t>(device)].gpu;
    std::swap(p.visible[0], p.visible[static_cast<std::size_t>(device)]);  // current() is the device in use
    if (p.mps)
      if (const Status status = join(p.context_gpu); status != kSuccess) return status;
    enter(current());
  }
  ++p.retained;
  *context = reinterpret_cast<Context>(&context_tag);
  return kSuccess;
}
LEAT_EXPORT Status cuDevicePrimaryCtxRelease_v2(Ordinal) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (--p.retained != 0) return kSuccess;
  if (p.client != nullptr) p.client->pid = 0;
  if (p.user != nullptr) p.user->pid = 0;
  p.client = nullptr;
  p.user = nullptr;
  return kSuccess;
}
LEAT_EXPORT Status cuCtxSetCurrent(Context) { return kSuccess; }

// ---- streams and events ----

LEAT_EXPORT Status cuStreamCreate(leat::cuda::Stream* stream, unsigned) {
  LEAT_UNLESS_LOST();
  *stream = reinterpret_cast<leat::cuda::Stream>(new leat::fake::Stream(host().state().seed, delay, lost));
  return kSuccess;
}
LEAT_EXPORT Status cuStreamDestroy_v2(leat::cuda::Stream stream) {
  delete stream_of(stream);
  return kSuccess;
}
LEAT_EXPORT Status cuEventCreate(leat::cuda::Event* event, unsigned flags) {
  auto* const made = new leat::fake::Event;
  made->blocking = (flags & leat::cuda::kEventBlocking) != 0;
  *event = reinterpret_cast<leat::cuda::Event>(made);
  return kSuccess;
}
LEAT_EXPORT Status cuEventDestroy_v2(leat::cuda::Event event) {
  delete reinterpret_cast<leat::fake::Event*>(event);
  return kSuccess;
}
LEAT_EXPORT Status cuEventRecord(leat::cuda::Event event, leat::cuda::Stream stream) {
  LEAT_UNLESS_LOST();
  auto* const e = reinterpret_cast<leat::fake::Event*>(event);
  e->stream = stream_of(stream);
  e->ticket = e->stream->push(
      [at = e->at_ns] { *at = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); });
  return kSuccess;
}
LEAT_EXPORT Status cuEventSynchronize(leat::cuda::Event event) {
  LEAT_UNLESS_LOST();
  const auto* const e = reinterpret_cast<leat::fake::Event*>(event);
  if (waits_seen++ == wait_to_forget) return kSuccess;
  // As a driver does where nobody asked it to sleep.
  while (e->stream != nullptr && !e->blocking && !e->stream->done(e->ticket) && !lost()) {
  }
  if (e->stream != nullptr && !e->stream->wait_for(e->ticket)) return kLaunchFailed;
  return settled_and_lost() ? kLaunchFailed : kSuccess;
}
LEAT_EXPORT Status cuEventElapsedTime(float* milliseconds, leat::cuda::Event first, leat::cuda::Event second) {
  const auto at = [](leat::cuda::Event e) { return reinterpret_cast<leat::fake::Event*>(e)->at_ns->load(); };
  if (at(first) == 0 || at(second) == 0) return kNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(at(second) - at(first)) / 1e6);
  return kSuccess;
}
LEAT_EXPORT Status cuLaunchHostFunc(leat::cuda::Stream stream, void (*function)(void*), void* argument) {
  LEAT_UNLESS_LOST();
  leat::fake::Stream* const to = stream_of(stream);
  (void)to->push([=, us = to->capturing() ? 0 : host().state().launch_us.load()] {
    spend(us);
    function(argument);
  });
  return kSuccess;
}

// ---- graphs: what was collected is one piece of work when it is launched ----

LEAT_EXPORT Status cuStreamBeginCapture_v2(leat::cuda::Stream stream, int) {
  LEAT_UNLESS_LOST();
  if (host().state().refuse_capture != 0) return kCaptureUnsupported;
  return stream_of(stream)->begin_capture() ? kSuccess : kCaptureUnsupported;
}
LEAT_EXPORT Status cuStreamEndCapture(leat::cuda::Stream stream, leat::cuda::Graph* graph) {
  auto collected = std::make_unique<leat::fake::Graph>();
  if (!stream_of(stream)->end_capture(&collected->work)) return kInvalidValue;
  *graph = reinterpret_cast<leat::cuda::Graph>(collected.release());
  return kSuccess;
}
LEAT_EXPORT Status cuGraphInstantiateWithFlags(leat::cuda::GraphRun* run, leat::cuda::Graph graph, unsigned long long) {
  LEAT_UNLESS_LOST();
  *run =
      reinterpret_cast<leat::cuda::GraphRun>(new leat::fake::Graph(*reinterpret_cast<const leat::fake::Graph*>(graph)));
  return kSuccess;
}
LEAT_EXPORT Status cuGraphLaunch(leat::cuda::GraphRun run, leat::cuda::Stream stream) {
  LEAT_UNLESS_LOST();
  (void)stream_of(stream)->push(
      [work = reinterpret_cast<const leat::fake::Graph*>(run)->work, us = host().state().graph_launch_us.load()] {
        spend(us);
        for (const auto& piece : work) piece();
      });
  return kSuccess;
}
LEAT_EXPORT Status cuGraphExecDestroy(leat::cuda::GraphRun run) {
  delete reinterpret_cast<leat::fake::Graph*>(run);
  return kSuccess;
}
LEAT_EXPORT Status cuGraphDestroy(leat::cuda::Graph graph) {
  delete reinterpret_cast<leat::fake::Graph*>(graph);
  return kSuccess;
}
LEAT_EXPORT Status cuMemcpyAsync(Address to, Address from, std::size_t bytes, leat::cuda::Stream stream) {
  LEAT_UNLESS_LOST();
  (void)stream_of(stream)->push(
      [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
  return kSuccess;
}
LEAT_EXPORT Status cuMemsetD8Async(Address at, unsigned char byte, std::size_t bytes, leat::cuda::Stream stream) {
  LEAT_UNLESS_LOST();
  (void)stream_of(stream)->push([=] { std::memset(reinterpret_cast<void*>(at), byte, bytes); });
  return kSuccess;
}

// ---- memory ----

LEAT_EXPORT Status cuMemGetAllocationGranularity(std::size_t* bytes, const AllocationProperties*, int) {
  *bytes = kGranularity;
  return kSuccess;
}
LEAT_EXPORT Status cuMemGetInfo_v2(std::size_t* free, std::size_t* all) {
  LEAT_UNLESS_LOST();
  (void)cuDeviceTotalMem_v2(all, 0);
  std::uint64_t taken = 0;
  const std::lock_guard lock(process().mutex);
  for (const auto& [handle, memory] : process().memory) taken += memory.bytes;
  *free = *all - std::min<std::uint64_t>(*all, taken);
  return kSuccess;
}
LEAT_EXPORT Status cuMemCreate(Handle* handle, std::size_t bytes, const AllocationProperties* p, unsigned long long) {
  LEAT_UNLESS_LOST();
  if (bytes == 0 || bytes % kGranularity != 0 || p->type != kPinnedAllocation) return kInvalidValue;
  std::size_t all = 0;
  (void)cuDeviceTotalMem_v2(&all, 0);
  if (bytes > all) return kOutOfMemory;
  char name[64];
  std::snprintf(name, sizeof name, "leat-fake-%u-%u-%d", current().gpu, current().instance, ::getpid());
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return kOutOfMemory;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    (void)::close(fd);
    return kOutOfMemory;
  }
  const std::lock_guard lock(process().mutex);
  *handle = process().next_handle++;
  process().memory[*handle] = {fd, bytes};
  return kSuccess;
}
LEAT_EXPORT Status cuMemRelease(Handle handle) {
  const std::lock_guard lock(process().mutex);
  const auto found = process().memory.find(handle);
  if (found == process().memory.end()) return kInvalidValue;
  (void)::close(found->second.fd);
  process().memory.erase(found);
  return kSuccess;
}
LEAT_EXPORT Status cuMemExportToShareableHandle(void* out, Handle handle, int type, unsigned long long) {
  LEAT_UNLESS_LOST();
  const std::lock_guard lock(process().mutex);
  const auto found = process().memory.find(handle);
  if (found == process().memory.end() || type != kFileDescriptor) return kInvalidValue;
  const int fd = ::fcntl(found->second.fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return kOutOfMemory;
  std::memcpy(out, &fd, sizeof fd);
  return kSuccess;
}
LEAT_EXPORT Status cuMemImportFromShareableHandle(Handle* handle, void* os_handle, int type) {
  LEAT_UNLESS_LOST();
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  unsigned gpu = 0, instance = 0;
  struct stat facts {};
  if (type != kFileDescriptor || ::fstat(fd, &facts) != 0 || !origin_of(fd, &gpu, &instance)) return kInvalidValue;
  bool lies = false;
  if (gpu != current().gpu) {
    const auto& all = process().visible;
    const bool seen = std::any_of(all.begin(), all.end(), [&](const Visible& v) { return v.gpu == gpu; });
    const std::uint32_t peer = gpu < kMaxGpus ? host().state().peer[gpu][current().gpu].load() : kPeerRefused;
    if (!seen || peer == kPeerRefused) return kInvalidDevice;
    lies = peer == kPeerLies;
  } else if (instance != current().instance) {
    return kNotSupported;  // never across GPU instances
  } else {
    lies = host().state().in_place_lies != 0 && ::getpid() != maker_of(fd);
  }
  const int copy = lies ? somewhere_else(facts.st_size) : ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return kOutOfMemory;
  const std::lock_guard lock(process().mutex);
  *handle = process().next_handle++;
  process().memory[*handle] = {copy, static_cast<std::uint64_t>(facts.st_size)};
  return kSuccess;
}
LEAT_EXPORT Status cuMemAddressReserve(Address* out, std::size_t bytes, std::size_t, Address, unsigned long long) {
  void* const at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return kOutOfMemory;
  *out = reinterpret_cast<Address>(at);
  return kSuccess;
}
LEAT_EXPORT Status cuMemUnmap(Address at, std::size_t bytes) {
  void* const got = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return got == MAP_FAILED ? kInvalidValue : kSuccess;
}
// An address is never given out again, so that work that comes too late faults and does not find something else there.
LEAT_EXPORT Status cuMemAddressFree(Address at, std::size_t bytes) { return cuMemUnmap(at, bytes); }
LEAT_EXPORT Status cuMemMap(Address at, std::size_t bytes, std::size_t offset, Handle handle, unsigned long long) {
  LEAT_UNLESS_LOST();
  const std::lock_guard lock(process().mutex);
  const auto found = process().memory.find(handle);
  if (found == process().memory.end() || offset + bytes > found->second.bytes) return kInvalidValue;
  void* const got = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.fd,
                           static_cast<off_t>(offset));
  return got == MAP_FAILED ? kOutOfMemory : kSuccess;
}
LEAT_EXPORT Status cuMemSetAccess(Address at, std::size_t bytes, const AccessDescription* access, std::size_t) {
  if (access->flags != kReadWrite) return kNotSupported;
  return ::mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE) == 0 ? kSuccess : kInvalidValue;
}
LEAT_EXPORT Status cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
  LEAT_UNLESS_LOST();
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *out != nullptr ? kSuccess : kOutOfMemory;
}
LEAT_EXPORT Status cuMemFreeHost(void* at) {
  std::free(at);
  return kSuccess;
}
LEAT_EXPORT Status cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned) {
  LEAT_UNLESS_LOST();
  if (bytes == 0 || reinterpret_cast<std::uintptr_t>(at) % 4096 != 0) return kInvalidValue;
  const std::lock_guard lock(process().mutex);
  for (const auto& [other, length] : process().registered)
    if (at<static_cast<const char*>(other) + length&& static_cast<char*>(at) + bytes> other)
      return kHostMemoryAlreadyRegistered;
  process().registered[at] = bytes;
  return kSuccess;
}
LEAT_EXPORT Status cuMemHostUnregister(void* at) {
  const std::lock_guard lock(process().mutex);
  return process().registered.erase(at) == 1 ? kSuccess : kHostMemoryNotRegistered;
}
LEAT_EXPORT Status cuMemHostGetDevicePointer_v2(Address* out, void* at, unsigned) {
  *out = reinterpret_cast<Address>(at);
  return kSuccess;
}

// ---- the kernel ----

LEAT_EXPORT Status cuModuleLoadData(Module* module, const void*) {
  LEAT_UNLESS_LOST();
  *module = reinterpret_cast<Module>(&module_tag);
  return kSuccess;
}
LEAT_EXPORT Status cuModuleUnload(Module) { return kSuccess; }
LEAT_EXPORT Status cuModuleGetFunction(Function* function, Module, const char* name) {
  if (std::strcmp(name, "leat_picture") != 0) return kNotFound;
  *function = reinterpret_cast<Function>(&picture_function);
  return kSuccess;
}
LEAT_EXPORT Status cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned, unsigned, leat::cuda::Stream stream,
                                  void** arguments, void**) {
  LEAT_UNLESS_LOST();
  if (reinterpret_cast<PictureFunction*>(function) != &picture_function || grid_z == 0 || grid_z > 65535)
    return kInvalidValue;
  const auto* const jobs = *static_cast<leat_picture_job* const*>(arguments[0]);
  const auto target = *static_cast<leat_picture_target*>(arguments[1]);
  if (grid_x * block_x < target.width || grid_y * block_y < target.height || block_x * block_y > 1024)
    return kInvalidValue;
  (void)stream_of(stream)->push([=] { run_pictures(jobs, target, grid_z); });
  return kSuccess;
}
