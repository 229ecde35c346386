// A device behind the C ABI of engine/exec/device.h, on the driver's interface alone: its primary context and stream
// (stream.cpp), memory (memory.cpp), pictures (pictures.cpp), graphs and times (graphs.cpp). Thread rule and ownership:
// as the ABI's. Inside, a failed call throws Failed; entry.cpp turns it into a status and one line.
#pragma once

#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver/driver.h"
#include "engine/exec/device.h"

namespace leat::cuda {

struct Failed : std::runtime_error {
  Failed(leat_device_status s, const std::string& text) : std::runtime_error(text), status(s) {}
  leat_device_status status;
};

class Device {
 public:
  explicit Device(const leat_device_options& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const leat_device_info& info() const noexcept { return info_; }
  // For decoders (cuda/decode): what they put work on, and what becomes of a failed call.
  [[nodiscard]] const Driver& cuda() const noexcept { return *cuda_; }
  [[nodiscard]] Stream stream() const noexcept { return stream_; }
  void check(const char* call, Status status) const;

  leat_device_memory allocate(std::uint64_t bytes, bool shared);
  int export_memory(const leat_device_memory& memory);
  leat_device_memory import_memory(int fd, std::uint64_t bytes);
  void release(leat_device_memory& memory) noexcept;
  void* host_allocate(std::uint64_t bytes);
  void host_release(void* at) noexcept;
  void host_register(void* at, std::uint64_t bytes, bool read_only);
  void host_unregister(void* at) noexcept;

  void pictures(const leat_picture_target& target, std::span<const leat_picture_job> jobs);
  void ready_pictures(std::span<const leat_picture_job> jobs);
  void put_pictures(std::uint32_t set, const leat_picture_target& target, std::uint32_t first, std::uint32_t count);
  void copy(void* to, const void* from, std::uint64_t bytes);
  void fill(void* at, std::uint8_t byte, std::uint64_t bytes);
  void enqueue(void (*function)(void*), void* argument);
  void begin_capture();
  std::uint32_t end_capture();
  void drop_capture() noexcept;
  void launch(std::uint32_t graph);
  void release_graph(std::uint32_t graph) noexcept;
  void stamp(std::uint32_t which);
  void wait();
  void use_set(std::uint32_t set);
  void mark(std::uint32_t set);
  void wait_for(std::uint32_t set) const;
  std::uint64_t elapsed_ns() const;
  leat_device_usage usage() const;

 private:
  struct Registered {
    const std::uint8_t* at;
    std::uint64_t bytes;
    Address address;  // as the device reads it; 0: it cannot, and what is read here goes by way of staging_
  };
  struct Upload {
    const std::uint8_t* slot;
    std::uint64_t bytes, offset;  // in uploads_
  };

  [[noreturn]] void lose(const char* call, Status status) const;
  void retain();
  void choose(const char* uuid);
  leat_device_memory map(Handle handle, std::uint64_t bytes, bool imported);
  AllocationProperties properties(bool shared) const noexcept;
  void load_kernels();
  void measure_picture_source();
  void reserve_uploads(std::span<const leat_picture_job> jobs);
  std::uint32_t note_pictures(std::span<const leat_picture_job> jobs);  // the place of the first among the set's
  const std::uint8_t* readable(const leat_picture_job& job);            // the slot's first byte as the device reads it
  const Registered* registered(const std::uint8_t* at, std::uint64_t bytes) const noexcept;
  [[nodiscard]] bool in_place(const Registered* slot) const noexcept {
    return slot != nullptr && slot->address != 0 && info_.picture_source == LEAT_PICTURE_IN_PLACE;
  }
  void reserve_staging(std::uint64_t bytes);  // nothing on the stream uses it any more
  const void* staged(const void* from, std::uint64_t bytes);
  void copy_pinned(void* to, const void* from, std::uint64_t bytes);

  const Driver* cuda_ = nullptr;
  Ordinal ordinal_ = 0;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Event event_ = nullptr;
  std::array<Event, 2> stamps_{};
  std::vector<GraphRun> graphs_;  // [name - 1]; null: released
  std::size_t granularity_ = 0;
  leat_device_info info_{};
  struct Mapped {
    Handle handle;
    std::uint64_t bytes;
    bool imported;
  };
  std::vector<Mapped> mapped_;
  std::vector<std::pair<void*, std::uint64_t>> pinned_;
  std::vector<Registered> registered_;
  Module module_ = nullptr;
  Function picture_ = nullptr, picture_weighted_ = nullptr;
  // What a batch reads of the host, up to its mark.
  struct Set {
    leat_picture_job* jobs = nullptr;  // pinned, copied to the device's own
    std::uint32_t job_count = 0;
    // Pinned, for pages that cannot be: a copy from those would make this thread wait for it.
    std::uint8_t* staging = nullptr;
    std::uint64_t staging_bytes = 0, staging_end = 0;
    Event passed = nullptr;
    bool marked = false;
  };
  [[nodiscard]] Set& now() noexcept { return sets_[set_]; }
  std::array<Set, LEAT_DEVICE_SETS> sets_;
  std::uint32_t set_ = 0;  // in force
  // The device's, one for all: its stream has read them for one batch before it writes them for the next.
  leat_device_memory device_jobs_{}, uploads_{};
  std::vector<Upload> uploaded_;  // of the set in force
  std::uint64_t upload_end_ = 0;
};

}  // namespace leat::cuda
