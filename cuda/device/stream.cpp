// The device itself: which one, its primary context (shared with the libraries of this process), the stream, the wait.
#include <chrono>
#include <cstring>
#include <thread>

#include "cuda/decode/libraries.h"
#include "cuda/device/device.h"

namespace leat::cuda {
namespace {

constexpr int kOpenAgain = 20;
constexpr std::chrono::milliseconds kBetweenOpens{50};

template <std::size_t kRoom>
void put(char (&to)[kRoom], const std::string& text) {
  to[text.copy(to, kRoom - 1)] = '\0';
}

}  // namespace

void Device::lose(const char* call, Status status) const {
  throw Failed(LEAT_DEVICE_LOST, "the device is lost: " + cuda_->text(call, status));
}

void Device::check(const char* call, Status status) const {
  if (status == kSuccess) return;
  if (is_lost(status)) lose(call, status);
  std::string text = cuda_->text(call, status);
  if (status == kOutOfMemory) text += "; lower batches, or give the partition fewer models";
  if (status == kMpsMaxClientsReached) text += "; use fewer partitions on this GPU";
  throw Failed(LEAT_DEVICE_FAILED, text);
}

void Device::choose(const char* uuid) {
  int count = 0;
  check("cuDeviceGetCount", cuda_->device_count(&count));
  std::string seen;
  for (int i = 0; i < count; ++i) {
    Uuid id{};
    char name[96] = "";
    check("cuDeviceGet", cuda_->device_get(&ordinal_, i));
    check("cuDeviceGetUuid", cuda_->device_uuid(&id, ordinal_));
    check("cuDeviceGetName", cuda_->device_name(name, sizeof name, ordinal_));
    // The driver does not say whether it is a MIG device's; whoever asks for one says so by the prefix.
    const bool mig = uuid != nullptr && std::strncmp(uuid, "MIG-", 4) == 0;
    const std::string here = text_of(id, mig ? "MIG-" : "GPU-");
    if (uuid == nullptr || here == uuid) {
      put(info_.uuid, here);
      put(info_.name, name);
      return;
    }
    seen += (seen.empty() ? "" : ", ") + here;
  }
  throw Failed(LEAT_DEVICE_FAILED, std::string("there is no device ") + (uuid != nullptr ? uuid : "at all") +
                                       (seen.empty() ? "" : " among " + seen) + "; `leat-gpu list` shows them");
}

// A daemon that cannot be reached yet is this process's trouble alone: no neighbour has lost anything. One that is not
// ready is left by a fault, and waits for all of them to end.
void Device::retain() {
  Status status = cuda_->context_retain(&context_, ordinal_);
  for (int again = 0; again < kOpenAgain && (status == kMpsConnectionFailed || status == kMpsRpcFailure); ++again) {
    std::this_thread::sleep_for(kBetweenOpens);
    status = cuda_->context_retain(&context_, ordinal_);
  }
  if (status == kMpsConnectionFailed || status == kMpsRpcFailure)
    throw Failed(LEAT_DEVICE_FAILED, cuda_->text("cuDevicePrimaryCtxRetain", status) + "; see the MPS daemon's log");
  check("cuDevicePrimaryCtxRetain", status);
}

Device::Device(const leat_device_options& options) {
  const auto loaded = driver();
  if (!loaded) throw Failed(LEAT_DEVICE_FAILED, loaded.error());
  cuda_ = *loaded;
  int version = 0;
  check("cuDriverGetVersion", cuda_->driver_version(&version));
  if (version < LEAT_CUDA_MAJOR * 1000)
    throw Failed(LEAT_DEVICE_FAILED, "the NVIDIA driver serves CUDA " + std::to_string(version / 1000) + "." +
                                         std::to_string(version % 1000 / 10) + ", this build's kernels need CUDA " +
                                         std::to_string(LEAT_CUDA_MAJOR) + ": install driver " +
                                         std::to_string(driver_for(LEAT_CUDA_MAJOR)) +
                                         " or later, or build with an older CUDA toolkit");
  choose(options.uuid);
  int multiprocessors = 0, virtual_memory = 0, descriptors = 0, read_only = 0;
  std::size_t memory = 0;
  (void)cuda_->context_flags(ordinal_, kBlockingSync);  // refused where the process has used the context before
  retain();
  try {
    check("cuCtxSetCurrent", cuda_->context_set(context_));
    // After the context: a share's own number.
    check("cuDeviceGetAttribute", cuda_->device_attribute(&multiprocessors, kMultiprocessors, ordinal_));
    check("cuDeviceGetAttribute", cuda_->device_attribute(&virtual_memory, kVirtualMemory, ordinal_));
    check("cuDeviceGetAttribute", cuda_->device_attribute(&descriptors, kDescriptorHandles, ordinal_));
    if (cuda_->device_attribute(&read_only, kReadOnlyRegistration, ordinal_) != kSuccess) read_only = 0;
    check("cuDeviceTotalMem", cuda_->device_memory(&memory, ordinal_));
    if (virtual_memory == 0 || descriptors == 0)
      throw Failed(LEAT_DEVICE_FAILED, std::string(info_.name) +
                                           " has no virtual memory management with descriptors; "
                                           "a GPU of compute capability 7.5 or later is needed");
    info_.multiprocessors = static_cast<std::uint32_t>(multiprocessors);
    info_.reads_read_only = read_only != 0;
    info_.memory_bytes = memory;
    info_.has_provider = cuda_->provider;
    check("cuStreamCreate", cuda_->stream_create(&stream_, kNonBlockingStream));
    check("cuEventCreate", cuda_->event_create(&event_, kEventBlocking | kEventNoTiming));
    for (Event& stamp : stamps_) check("cuEventCreate", cuda_->event_create(&stamp, kEventBlocking));
    for (Set& set : sets_) check("cuEventCreate", cuda_->event_create(&set.passed, kEventBlocking | kEventNoTiming));
    info_.stream = stream_;
    const AllocationProperties p = properties(true);
    check("cuMemGetAllocationGranularity", cuda_->granularity(&granularity_, &p, kRecommendedGranularity));
    load_kernels();
    info_.codecs = decoded_codecs();
    info_.picture_source = options.picture_source;
    if (options.picture_source == LEAT_PICTURE_MEASURED) measure_picture_source();
  } catch (...) {
    (void)cuda_->context_release(ordinal_);  // takes what was made on it along
    throw;
  }
}

Device::~Device() {
  try {
    wait();
  } catch (const Failed&) {  // lost: nothing runs any more
  }
  for (const Set& set : sets_) {
    if (set.jobs != nullptr) host_release(set.jobs);
    if (set.staging != nullptr) host_release(set.staging);
    (void)cuda_->event_destroy(set.passed);
  }
  release(device_jobs_);
  release(uploads_);
  if (module_ != nullptr) (void)cuda_->module_unload(module_);
  for (std::uint32_t graph = 1; graph <= graphs_.size(); ++graph) release_graph(graph);
  for (const Event stamp : stamps_) (void)cuda_->event_destroy(stamp);
  (void)cuda_->event_destroy(event_);
  (void)cuda_->stream_destroy(stream_);
  (void)cuda_->context_release(ordinal_);
}

void Device::copy(void* to, const void* from, std::uint64_t bytes) {
  const Registered* const pages = registered(static_cast<const std::uint8_t*>(from), bytes);
  copy_pinned(to, pages != nullptr && pages->address == 0 ? staged(from, bytes) : from, bytes);
}

void Device::copy_pinned(void* to, const void* from, std::uint64_t bytes) {
  check("cuMemcpyAsync", cuda_->copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream_));
}

void Device::fill(void* at, std::uint8_t byte, std::uint64_t bytes) {
  check("cuMemsetD8Async", cuda_->fill(reinterpret_cast<Address>(at), byte, bytes, stream_));
}

void Device::enqueue(void (*function)(void*), void* argument) {
  check("cuLaunchHostFunc", cuda_->host_function(stream_, function, argument));
}

// By a blocking event: the thread sleeps until the driver's interrupt, whatever flags the context has by others.
void Device::wait() {
  // Whatever these say is said of work that has run: the context has nothing to offer any more.
  if (const Status status = cuda_->event_record(event_, stream_); status != kSuccess) lose("cuEventRecord", status);
  if (const Status status = cuda_->event_wait(event_); status != kSuccess) lose("cuEventSynchronize", status);
  for (Set& set : sets_) {
    set.job_count = 0;
    set.staging_end = 0;
  }
  uploaded_.clear();
  upload_end_ = 0;
}

void Device::use_set(std::uint32_t set) {
  if (set >= sets_.size()) throw Failed(LEAT_DEVICE_FAILED, "a device has two sets of buffers");
  if (set == set_ && !now().marked) return;
  set_ = set;
  now().marked = false;
  now().job_count = 0;
  now().staging_end = 0;
  uploaded_.clear();
  upload_end_ = 0;
}

void Device::mark(std::uint32_t set) {
  if (set != set_) throw Failed(LEAT_DEVICE_FAILED, "a set is marked that is not in use");
  now().marked = true;
  if (const Status status = cuda_->event_record(now().passed, stream_); status != kSuccess)
    lose("cuEventRecord", status);
}

void Device::wait_for(std::uint32_t set) const {
  check("cuCtxSetCurrent", cuda_->context_set(context_));  // of whichever thread this is
  if (const Status status = cuda_->event_wait(sets_.at(set).passed); status != kSuccess)
    lose("cuEventSynchronize", status);
}

}  // namespace leat::cuda
