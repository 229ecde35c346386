#include "engine/exec/device_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include "engine/exec/plugin_search.h"

namespace leat::exec {

DeviceBuffer::~DeviceBuffer() {
  if (device_ != nullptr) device_->api()->release(device_->handle(), &memory_);
}
PinnedBuffer::~PinnedBuffer() {
  if (device_ != nullptr) device_->api()->host_release(device_->handle(), at_);
}

Result<const leat_device_api*> find_device(const std::string& plugin) {
  std::string why;
  for (const std::string& path : plugin_candidates("device", plugin)) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* text = ::dlerror();
      // Of several places, the reason of the one that exists says more than "no such file".
      if (why.empty() || ::access(path.c_str(), F_OK) == 0) why = text != nullptr ? text : "the loader gives no reason";
      continue;
    }
    const auto entry = reinterpret_cast<const leat_device_api* (*)()>(::dlsym(library, "leat_device_entry"));
    const leat_device_api* const api = entry != nullptr ? entry() : nullptr;
    if (api == nullptr || api->abi != LEAT_DEVICE_ABI)
      return Error{path + ": is no device plug-in of this release of Leat; install the same release of both"};
    return api;
  }
  return Error{"the device plug-in '" + plugin + "' cannot be loaded: " + why +
               "; install Leat whole, or name it by path"};
}

Result<std::unique_ptr<Device>> Device::open(const std::string& plugin, const std::string& uuid, bool* lost) {
  const auto api = find_device(plugin);
  if (!api) return Error{api.error()};
  const leat_device_options options{uuid.empty() ? nullptr : uuid.c_str(), LEAT_PICTURE_MEASURED};
  leat_device* device = nullptr;
  char error[512] = "";
  const int status = (*api)->open(&options, &device, error, sizeof error);
  if (lost != nullptr) *lost = status == LEAT_DEVICE_LOST;
  if (status != LEAT_DEVICE_OK) return Error{error};
  return std::unique_ptr<Device>(new Device(*api, device));
}

Device::~Device() { api_->close(device_); }

Result<DeviceBuffer> Device::allocate(std::uint64_t bytes, bool shared) {
  leat_device_memory memory{};
  if (!good(api_->allocate(device_, bytes, shared, &memory, error_, sizeof error_))) return Error{error_};
  return DeviceBuffer(this, memory);
}

Result<DeviceBuffer> Device::import_memory(int fd, std::uint64_t bytes) {
  leat_device_memory memory{};
  if (!good(api_->import_memory(device_, fd, bytes, &memory, error_, sizeof error_))) return Error{error_};
  return DeviceBuffer(this, memory);
}

Result<int> Device::export_memory(const DeviceBuffer& buffer) {
  int fd = -1;
  if (!good(api_->export_memory(device_, &buffer.memory(), &fd, error_, sizeof error_))) return Error{error_};
  return fd;
}

Result<PinnedBuffer> Device::pinned(std::uint64_t bytes) {
  void* at = nullptr;
  if (!good(api_->host_allocate(device_, bytes, &at, error_, sizeof error_))) return Error{error_};
  return PinnedBuffer(this, at);
}

Result<std::unique_ptr<Decoder>> Device::decoder(const leat_decoder_options& options) {
  leat_decoder* made = nullptr;
  if (!good(api_->decoder_open(device_, &options, &made, error_, sizeof error_))) return Error{error_};
  return std::make_unique<Decoder>(this, made);
}

Decoder::~Decoder() { device_.api_->decoder_close(device_.device_, decoder_); }
bool Decoder::decode(const leat_access_unit& unit) noexcept {
  device_.error_[0] = '\0';
  return device_.good(device_.api_->decode(device_.device_, decoder_, &unit, device_.error_, sizeof device_.error_));
}
bool Decoder::picture(std::uint32_t place, leat_decoded* out) noexcept {
  device_.error_[0] = '\0';
  return device_.good(
      device_.api_->decoded(device_.device_, decoder_, place, out, device_.error_, sizeof device_.error_));
}

Status Device::register_host(void* at, std::uint64_t bytes, bool read_only) {
  if (!good(api_->host_register(device_, at, bytes, read_only, error_, sizeof error_))) return Error{error_};
  return Done{};
}

bool Device::pictures(const leat_picture_target& target, std::span<const leat_picture_job> jobs) noexcept {
  return good(
      api_->pictures(device_, &target, jobs.data(), static_cast<std::uint32_t>(jobs.size()), error_, sizeof error_));
}
bool Device::ready_pictures(std::span<const leat_picture_job> jobs) noexcept {
  return good(
      api_->ready_pictures(device_, jobs.data(), static_cast<std::uint32_t>(jobs.size()), error_, sizeof error_));
}
bool Device::put_pictures(std::uint32_t set, const leat_picture_target& target, std::uint32_t count) noexcept {
  return good(api_->put_pictures(device_, set, &target, count, error_, sizeof error_));
}
bool Device::copy(void* to, const void* from, std::uint64_t bytes) noexcept {
  return good(api_->copy(device_, to, from, bytes, error_, sizeof error_));
}
bool Device::wait() noexcept { return good(api_->wait(device_, error_, sizeof error_)); }
bool Device::use_set(std::uint32_t set) noexcept { return good(api_->use_set(device_, set, error_, sizeof error_)); }
bool Device::mark(std::uint32_t set) noexcept { return good(api_->mark(device_, set, error_, sizeof error_)); }

}  // namespace leat::exec
