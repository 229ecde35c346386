// The plug-in's door: the C ABI of engine/exec/device.h over Device.
#include <cstring>
#include <memory>
#include <new>

#include "cuda/decode/decoder.h"
#include "cuda/device/device.h"

struct leat_decoder {
  std::unique_ptr<leat::cuda::Decoder> decoder;
};
struct leat_device {
  explicit leat_device(const leat_device_options& options) : device(options) {}
  leat::cuda::Device device;
};

namespace leat::cuda {
namespace {

// Runs `act`; what it throws becomes a status and a line.
template <class Act>
int guarded(char* error, std::size_t room, Act act) noexcept {
  const auto say = [&](const char* text) {
    if (error == nullptr || room == 0) return;
    std::strncpy(error, text, room - 1);
    error[room - 1] = '\0';
    for (char* c = error; *c != '\0'; ++c)
      if (*c == '\n') *c = ' ';
  };
  try {
    act();
    return LEAT_DEVICE_OK;
  } catch (const Failed& e) {
    say(e.what());
    return e.status;
  } catch (const std::exception& e) {
    say(e.what());
    return LEAT_DEVICE_FAILED;
  }
}

int open(const leat_device_options* options, leat_device** out, char* error, std::size_t room) {
  return guarded(error, room, [&] { *out = new leat_device(*options); });
}
void close(leat_device* d) { delete d; }
void info(leat_device* d, leat_device_info* out) { *out = d->device.info(); }
int allocate(leat_device* d, std::uint64_t bytes, int shared, leat_device_memory* out, char* error, std::size_t room) {
  return guarded(error, room, [&] { *out = d->device.allocate(bytes, shared != 0); });
}
int export_memory(leat_device* d, const leat_device_memory* memory, int* fd, char* error, std::size_t room) {
  return guarded(error, room, [&] { *fd = d->device.export_memory(*memory); });
}
int import_memory(leat_device* d, int fd, std::uint64_t bytes, leat_device_memory* out, char* error, std::size_t room) {
  return guarded(error, room, [&] { *out = d->device.import_memory(fd, bytes); });
}
void release(leat_device* d, leat_device_memory* memory) { d->device.release(*memory); }
int host_allocate(leat_device* d, std::uint64_t bytes, void** out, char* error, std::size_t room) {
  return guarded(error, room, [&] { *out = d->device.host_allocate(bytes); });
}
void host_release(leat_device* d, void* at) { d->device.host_release(at); }
int host_register(leat_device* d, void* at, std::uint64_t bytes, int read_only, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.host_register(at, bytes, read_only != 0); });
}
void host_unregister(leat_device* d, void* at) { d->device.host_unregister(at); }
int pictures(leat_device* d, const leat_picture_target* target, const leat_picture_job* jobs, std::uint32_t count,
             char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.pictures(*target, {jobs, count}); });
}
int ready_pictures(leat_device* d, const leat_picture_job* jobs, std::uint32_t count, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.ready_pictures({jobs, count}); });
}
int put_pictures(leat_device* d, std::uint32_t set, const leat_picture_target* target, std::uint32_t count, char* error,
                 std::size_t room) {
  return guarded(error, room, [&] { d->device.put_pictures(set, *target, 0, count); });
}
int copy(leat_device* d, void* to, const void* from, std::uint64_t bytes, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.copy(to, from, bytes); });
}
int enqueue(leat_device* d, void (*function)(void*), void* argument, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.enqueue(function, argument); });
}
int begin_capture(leat_device* d, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.begin_capture(); });
}
int end_capture(leat_device* d, std::uint32_t* graph, char* error, std::size_t room) {
  return guarded(error, room, [&] {
    if (graph == nullptr) return d->device.drop_capture();
    *graph = d->device.end_capture();
  });
}
int launch(leat_device* d, std::uint32_t graph, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.launch(graph); });
}
void release_graph(leat_device* d, std::uint32_t graph) { d->device.release_graph(graph); }
int stamp(leat_device* d, std::uint32_t which, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.stamp(which); });
}
int elapsed(leat_device* d, std::uint64_t* nanoseconds, char* error, std::size_t room) {
  return guarded(error, room, [&] { *nanoseconds = d->device.elapsed_ns(); });
}
int usage(leat_device* d, leat_device_usage* out, char* error, std::size_t room) {
  return guarded(error, room, [&] { *out = d->device.usage(); });
}
int decoder_open(leat_device* d, const leat_decoder_options* options, leat_decoder** out, char* error,
                 std::size_t room) {
  return guarded(error, room, [&] { *out = new leat_decoder{make_decoder(d->device, *options)}; });
}
void decoder_close(leat_device*, leat_decoder* decoder) { delete decoder; }
int decode(leat_device*, leat_decoder* decoder, const leat_access_unit* unit, char* error, std::size_t room) {
  return guarded(error, room, [&] { decoder->decoder->decode(*unit); });
}
int decoded(leat_device*, leat_decoder* decoder, std::uint32_t place, leat_decoded* out, char* error,
            std::size_t room) {
  return guarded(error, room, [&] { *out = decoder->decoder->picture(place); });
}
int wait(leat_device* d, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.wait(); });
}
int use_set(leat_device* d, std::uint32_t set, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.use_set(set); });
}
int mark(leat_device* d, std::uint32_t set, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.mark(set); });
}
int wait_for(leat_device* d, std::uint32_t set, char* error, std::size_t room) {
  return guarded(error, room, [&] { d->device.wait_for(set); });
}

}  // namespace
}  // namespace leat::cuda

extern "C" __attribute__((visibility("default"))) const leat_device_api* leat_device_entry(void) {
  using namespace leat::cuda;
  static constexpr leat_device_api kApi = {
      LEAT_DEVICE_ABI, "cuda",       open,          close,        info,          allocate,        export_memory,
      import_memory,   release,      host_allocate, host_release, host_register, host_unregister, pictures,
      ready_pictures,  put_pictures, copy,          enqueue,      begin_capture, end_capture,     launch,
      release_graph,   stamp,        wait,          use_set,      mark,          wait_for,        elapsed,
      usage,           decoder_open, decoder_close, decode,       decoded};
  return &kApi;
}
