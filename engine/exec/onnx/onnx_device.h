// What ONNX Runtime needs to run a session on a device: its provider, on our stream and over our memory, and which
// nodes it would leave to the host. Control plane; errors are exceptions with one line, as onnx.cpp's own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/device.h"
#include "engine/exec/onnx/onnx_precision.h"
#include "leat/result.hpp"

struct OrtApi;
struct OrtSessionOptions;
struct OrtRunOptions;

namespace leat::exec {

inline constexpr const char* kDeviceMemory = "Cuda";  // ONNX Runtime's names
inline constexpr const char* kPinnedMemory = "CudaPinned";

// graphs: its runs may be captured (device_run_options says which).
// extra: provider=cuda|tensorrt (default cuda): with TensorRT before it, where ONNX Runtime has that provider and the
// loader finds TensorRT's libraries; what it leaves goes to CUDA's. tf32=1 (default 0: float32 is computed as float32),
// search=heuristic|default|exhaustive (default heuristic: the others time every new shape), nhwc=0|1
// (channels last; default 1 where all is float16, which tensor cores take so: .64 to .82 of the time on an H100).
// Without ONNX Runtime's use_tf32 no plan with tensor cores is taken, whatever its type; so a model of float16 has it.
// Of one that computes in both, CUDA's libraries are told by NVIDIA_TF32_OVERRIDE, of the process, what it means for
// float32.
enum class DeviceProvider : std::uint8_t { cuda, tensorrt };
DeviceProvider device_provider_of(const char* extra);  // throws where the word is another
void add_device_provider(const OrtApi& api, OrtSessionOptions* options, void* stream, const char* extra,
                         const Precision& precision, bool graphs);

// Whether ONNX Runtime's CUDA provider loads here: its library, CUDA's, the driver, and the provider itself. Nothing
// runs on a device. For a process of its own: what is loaded stays, and a broken library may end it.
Status try_cuda_provider();

// waits false: a run only puts its work on the stream; whoever reads the outputs waits for it. graph: the run is
// captured under this number, 1 and more, or replayed; kNoGraph: neither.
inline constexpr int kNoGraph = -1;
OrtRunOptions* device_run_options(const OrtApi& api, bool waits, int graph);

// Listens to where a session's nodes go. ONNX Runtime puts arithmetic of shapes on the host on purpose: it reads
// nothing of the device's memory, and what is copied of its numbers is a few bytes. Around other nodes there a batch's
// data are copied.
class Placements {
 public:
  void listen(const OrtApi& api, OrtSessionOptions* options);  // this outlives the session
  void hear(std::string_view line);
  [[nodiscard]] bool copies_data() const;  // of a batch, between device and host, within a run
  // "Resize (/up/Resize), NonMaxSuppression (nms) and 3 more", shapes' arithmetic left out.
  [[nodiscard]] std::string left_behind() const;

 private:
  [[nodiscard]] std::vector<std::string> beside_shapes() const;

  bool on_host_ = false, copies_ = false;
  std::vector<std::string> nodes_;
};

// One input's row while a session is tried.
struct DeviceRow {
  DeviceRow(const leat_device_api* api, leat_device* device, std::uint64_t bytes);
  DeviceRow(DeviceRow&& other) noexcept;
  DeviceRow& operator=(DeviceRow&&) = delete;
  ~DeviceRow();
  const leat_device_api* api;
  leat_device* device;
  leat_device_memory memory{};
};

}  // namespace leat::exec
