// A device (device.h) as the rest of a worker uses it: found, loaded and opened, with buffers that give themselves
// back. Thread rule: the thread that opened it. Ownership: buffers must go before their Device. Errors: one line;
// lost() says whether the process has to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/exec/device.h"
#include "leat/result.hpp"

namespace leat::exec {

class Device;

// Dense memory on the device, zeroed.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Device* device, const leat_device_memory& memory) : device_(device), memory_(memory) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), memory_(std::exchange(other.memory_, {})) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~DeviceBuffer();
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(memory_.address); }
  [[nodiscard]] const leat_device_memory& memory() const noexcept { return memory_; }
  explicit operator bool() const noexcept { return memory_.address != nullptr; }

 private:
  Device* device_ = nullptr;
  leat_device_memory memory_{};
};

// Pinned memory of the host.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(Device* device, void* at) : device_(device), at_(at) {}
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), at_(std::exchange(other.at_, nullptr)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(at_, other.at_);
    return *this;
  }
  ~PinnedBuffer();
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(at_); }

 private:
  Device* device_ = nullptr;
  void* at_ = nullptr;
};

// A stream's decoder, with its pictures on the device. False: the device's error() says why.
class Decoder {
 public:
  Decoder(Device* device, leat_decoder* decoder) : device_(*device), decoder_(decoder) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder();
  bool decode(const leat_access_unit& unit) noexcept;
  bool picture(std::uint32_t place, leat_decoded* out) noexcept;

 private:
  Device& device_;
  leat_decoder* decoder_;
};

class Device {
 public:
  // plugin: "cuda", or a plug-in's path (it holds a '/'). uuid: empty for the first that is visible.
  // *lost, where it is asked for: it cannot be had until every process that shares it has ended.
  static Result<std::unique_ptr<Device>> open(const std::string& plugin, const std::string& uuid, bool* lost = nullptr);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const leat_device_info& info() const noexcept { return info_; }
  [[nodiscard]] const leat_device_api* api() const noexcept { return api_; }
  [[nodiscard]] leat_device* handle() const noexcept { return device_; }
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  void note(int status) noexcept { lost_ = lost_ || status == LEAT_DEVICE_LOST; }  // of a call made past this class

  Result<DeviceBuffer> allocate(std::uint64_t bytes, bool shared = false);
  Result<DeviceBuffer> import_memory(int fd, std::uint64_t bytes);
  Result<int> export_memory(const DeviceBuffer& buffer);  // a descriptor, the caller's
  Result<PinnedBuffer> pinned(std::uint64_t bytes);
  Result<std::unique_ptr<Decoder>> decoder(const leat_decoder_options& options);
  Status register_host(void* at, std::uint64_t bytes, bool read_only);
  void unregister_host(void* at) noexcept { api_->host_unregister(device_, at); }

  // On the stream; false: error() says why.
  bool pictures(const leat_picture_target& target, std::span<const leat_picture_job> jobs) noexcept;
  bool ready_pictures(std::span<const leat_picture_job> jobs) noexcept;
  bool put_pictures(std::uint32_t set, const leat_picture_target& target, std::uint32_t count) noexcept;
  bool copy(void* to, const void* from, std::uint64_t bytes) noexcept;
  bool wait() noexcept;
  // Batches that overlap (device.h). What wait_for() returns is for note(), on the device's own thread.
  bool use_set(std::uint32_t set) noexcept;
  bool mark(std::uint32_t set) noexcept;
  int wait_for(std::uint32_t set, std::span<char> error) const noexcept {
    return api_->wait_for(device_, set, error.data(), error.size());
  }
  [[nodiscard]] const char* error() const noexcept { return error_; }

 private:
  friend class Decoder;
  Device(const leat_device_api* api, leat_device* device) : api_(api), device_(device) { api->info(device, &info_); }
  bool good(int status) noexcept {
    note(status);
    return status == LEAT_DEVICE_OK;
  }

  const leat_device_api* api_;
  leat_device* device_;
  leat_device_info info_{};
  bool lost_ = false;
  char error_[512] = {};
};

// The plug-in's table, loaded once a process and path. Error: every place that was looked at, with the loader's reason.
Result<const leat_device_api*> find_device(const std::string& plugin);

}  // namespace leat::exec
