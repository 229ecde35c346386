// A libcuda.so.1 on which nothing computes but what a test needs: streams are threads with seeded delays, device memory
// is memfds, the one kernel is a loop over cuda/device/picture_body.h. What it cannot show: a real driver's visibility
// rules, what MPS and MIG allow, the models' provider, and every speed.
//
//   CUDA_VISIBLE_DEVICES          UUIDs or ordinals, as the real driver reads it
//   CUDA_MPS_PIPE_DIRECTORY       a client of MPS where a file `control` is in it; else, silently, none
//   CUDA_MPS_ACTIVE_THREAD_PERCENTAGE   its share of the multiprocessors
//   LEAT_FAKE_GPUS                state.h
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/device/picture_body.h"
#include "cuda/fake/process.h"

namespace leat::fake {
namespace {

using cuda::Status;

constexpr unsigned kSmStep = 2;  // a share is rounded down to so many multiprocessors

// The wait that a test has asked to be left out, counted from then on; -1: none.
std::atomic<int> wait_to_forget{-1};
std::atomic<int> waits_seen{0};

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
    if (const std::uint32_t other = host().state().instance_multiprocessors; other != 0) all = other;
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
    room->marks = room->graphs = 0;
    p.client = room;
    p.epoch = epoch;
    return cuda::kSuccess;
  });
}

// Of a context that is to be made.
Status refusal() {
  std::atomic<std::uint32_t>& left = host().state().refused_opens;
  for (std::uint32_t now = left; now != 0;)
    if (left.compare_exchange_weak(now, now - 1)) return static_cast<Status>(host().state().refused_by.load());
  return cuda::kSuccess;
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

struct PictureFunction {
  bool linear;
};
PictureFunction picture_function{true}, picture_weighted_function{false};
char module_tag, context_tag;

void run_pictures(const leat_picture_job* jobs, const leat_picture_target& target, unsigned count) {
  for (unsigned z = 0; z < count; ++z)
    for (std::uint32_t y = 0; y < target.height; ++y)
      for (std::uint32_t x = 0; x < target.width; ++x)
        if (target.resize == LEAT_RESIZE_linear)
          cuda::picture_pixel<true>(jobs[z], target, x, y);
        else
          cuda::picture_pixel<false>(jobs[z], target, x, y);
}

// Of all streams, where time is counted and not spent.
std::atomic<std::int64_t> counted_ns{0};

std::int64_t now_ns() {
  if (host().state().counts_time != 0) return 1 + counted_ns;  // 0 is an event that has not been reached
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

bool counted(std::uint32_t us) {
  if (host().state().counts_time == 0) return false;
  counted_ns += std::int64_t{us} * 1000;
  return true;
}

void spend(std::uint32_t us) {
  if (counted(us)) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (us != 0 && std::chrono::steady_clock::now() < end) {
  }
}

fake::Stream* stream_of(cuda::Stream s) { return reinterpret_cast<fake::Stream*>(s); }

// What is captured costs nothing until it is launched.
template <class Work>
void put(cuda::Stream s, std::uint32_t us, Work work) {
  fake::Stream* const to = stream_of(s);
  if (to->capturing()) return (void)to->push(std::move(work));
  ++host().state().launches;
  (void)to->push([us, work = std::move(work)] {
    spend(us);
    work();
  });
}

}  // namespace
}  // namespace leat::fake

using namespace leat::fake;
using namespace leat::cuda;

LEAT_EXPORT int leat_stand_in_driver() { return 1; }
LEAT_EXPORT int leat_stand_in_provider() { return host().state().has_provider != 0 ? 1 : 0; }
// Of work that a library has on a stream: whether it need not take that long.
LEAT_EXPORT int leat_stand_in_counted(std::uint32_t us) { return counted(us) ? 1 : 0; }
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
  const std::uint32_t wanted = host().state().driver_version;
  *version = wanted != 0 ? static_cast<int>(wanted) : 13000;
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
      *value = 1;
      return kSuccess;
    case kReadOnlyRegistration:
      *value = host().state().pins_no_read_only == 0 ? 1 : 0;
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
    if (const Status refused = refusal(); refused != kSuccess) return refused;
    p.context_gpu = p.visible[static_cast<std::size_t>(device)].gpu;
    std::swap(p.visible[0], p.visible[static_cast<std::size_t>(device)]);  // current() is the device in use
    if (p.mps)
      if (const Status status = join(p.context_gpu); status != kSuccess) return status;
    enter(current());
    static std::uint32_t made = 0;
    p.context = ++made;
  }
  ++p.retained;
  *context = reinterpret_cast<Context>(&context_tag);
  return kSuccess;
}
LEAT_EXPORT Status cuDevicePrimaryCtxRelease_v2(Ordinal) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (--p.retained != 0) return kSuccess;
  p.context = 0;
  if (p.client != nullptr) p.client->pid = 0;
  if (p.user != nullptr) p.user->pid = 0;
  p.client = nullptr;
  p.user = nullptr;
  return kSuccess;
}
LEAT_EXPORT Status cuCtxSetCurrent(Context context) {
  make_current(context != nullptr);
  return kSuccess;
}

// ---- streams and events ----

LEAT_EXPORT Status cuStreamCreate(leat::cuda::Stream* stream, unsigned) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  *stream = reinterpret_cast<leat::cuda::Stream>(new leat::fake::Stream(host().state().seed, delay, lost));
  return kSuccess;
}
LEAT_EXPORT Status cuStreamDestroy_v2(leat::cuda::Stream stream) {
  LEAT_NEEDS_CONTEXT();
  end_if_lost();
  delete stream_of(stream);
  return kSuccess;
}
LEAT_EXPORT Status cuEventCreate(leat::cuda::Event* event, unsigned flags) {
  LEAT_NEEDS_CONTEXT();
  auto* const made = new leat::fake::Event;
  made->blocking = (flags & leat::cuda::kEventBlocking) != 0;
  *event = reinterpret_cast<leat::cuda::Event>(made);
  return kSuccess;
}
LEAT_EXPORT Status cuEventDestroy_v2(leat::cuda::Event event) {
  LEAT_NEEDS_CONTEXT();
  delete reinterpret_cast<leat::fake::Event*>(event);
  return kSuccess;
}
LEAT_EXPORT Status cuEventRecord(leat::cuda::Event event, leat::cuda::Stream stream) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  auto* const e = reinterpret_cast<leat::fake::Event*>(event);
  e->stream = stream_of(stream);
  e->at_ns = std::make_shared<std::atomic<std::int64_t>>(0);
  Client* const client = e->stream->capturing() ? nullptr : process().client;
  if (client != nullptr) ++client->marks;
  e->ticket = e->stream->push([at = e->at_ns, client] {
    *at = now_ns();
    if (client != nullptr) --client->marks;
  });
  return kSuccess;
}
LEAT_EXPORT Status cuEventSynchronize(leat::cuda::Event event) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  const auto* const e = reinterpret_cast<leat::fake::Event*>(event);
  if (e->stream != nullptr && e->ticket == 0) return kCapturedEvent;
  if (waits_seen++ == wait_to_forget) return kSuccess;
  // As a driver does where nobody asked it to sleep.
  while (e->stream != nullptr && !e->blocking && !e->stream->done(e->ticket) && !lost()) {
  }
  if (e->stream != nullptr && !e->stream->wait_for(e->ticket)) return fault();
  return settled_and_lost() ? fault() : kSuccess;
}
LEAT_EXPORT Status cuEventElapsedTime(float* milliseconds, leat::cuda::Event first, leat::cuda::Event second) {
  LEAT_NEEDS_CONTEXT();
  const auto at = [](leat::cuda::Event e) { return reinterpret_cast<leat::fake::Event*>(e)->at_ns->load(); };
  if (at(first) == 0 || at(second) == 0) return kNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(at(second) - at(first)) / 1e6);
  return kSuccess;
}
LEAT_EXPORT Status cuLaunchHostFunc(leat::cuda::Stream stream, void (*function)(void*), void* argument) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  put(stream, host().state().launch_us, [=] { function(argument); });
  return kSuccess;
}

// ---- graphs: what was collected is one piece of work when it is launched ----

LEAT_EXPORT Status cuStreamBeginCapture_v2(leat::cuda::Stream stream, int) {
  LEAT_UNLESS_LOST();
  if (host().state().refuse_capture != 0) return kCaptureUnsupported;
  return stream_of(stream)->begin_capture() ? kSuccess : kCaptureUnsupported;
}
LEAT_EXPORT Status cuStreamIsCapturing(leat::cuda::Stream stream, int* status) {
  *status = stream_of(stream)->capturing() ? 1 : 0;
  return kSuccess;
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
  if (stream_of(stream)->capturing()) return kCaptureUnsupported;
  Client* const client = process().client;
  if (client != nullptr) ++client->graphs;
  put(stream, host().state().graph_launch_us, [client, work = reinterpret_cast<const leat::fake::Graph*>(run)->work] {
    for (const auto& piece : work) piece();
    if (client != nullptr) --client->graphs;
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
  LEAT_UNLESS_LOST_IN_CONTEXT();
  if (is_pageable(from)) host().state().pageable_bytes += bytes;
  put(stream, host().state().put_us,
      [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
  return kSuccess;
}
LEAT_EXPORT Status cuMemsetD8Async(Address at, unsigned char byte, std::size_t bytes, leat::cuda::Stream stream) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  put(stream, host().state().put_us, [=] { std::memset(reinterpret_cast<void*>(at), byte, bytes); });
  return kSuccess;
}

// ---- the kernel ----

LEAT_EXPORT Status cuModuleLoadData(Module* module, const void*) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  *module = reinterpret_cast<Module>(&module_tag);
  return kSuccess;
}
LEAT_EXPORT Status cuModuleUnload(Module) {
  LEAT_NEEDS_CONTEXT();
  return kSuccess;
}
LEAT_EXPORT Status cuModuleGetFunction(Function* function, Module, const char* name) {
  LEAT_NEEDS_CONTEXT();
  PictureFunction* const found = std::strcmp(name, "leat_picture") == 0            ? &picture_function
                                 : std::strcmp(name, "leat_picture_weighted") == 0 ? &picture_weighted_function
                                                                                   : nullptr;
  if (found == nullptr) return kNotFound;
  *function = reinterpret_cast<Function>(found);
  return kSuccess;
}
LEAT_EXPORT Status cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned, unsigned, leat::cuda::Stream stream,
                                  void** arguments, void**) {
  LEAT_UNLESS_LOST_IN_CONTEXT();
  const auto* const picture = reinterpret_cast<PictureFunction*>(function);
  if ((picture != &picture_function && picture != &picture_weighted_function) || grid_z == 0 || grid_z > 65535)
    return kInvalidValue;
  const auto* const jobs = *static_cast<leat_picture_job* const*>(arguments[0]);
  const auto target = *static_cast<leat_picture_target*>(arguments[1]);
  if (picture->linear != (target.resize == LEAT_RESIZE_linear)) return kInvalidValue;
  if (grid_x * block_x < target.width || grid_y * block_y < target.height || block_x * block_y > 1024)
    return kInvalidValue;
  put(stream, host().state().put_us, [=] { run_pictures(jobs, target, grid_z); });
  return kSuccess;
}
