#include "engine/exec/onnx/onnx_graphs.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace leat::exec {

std::uint64_t time_on_device(const leat_device_api& api, leat_device* device, const std::function<void()>& run) {
  constexpr std::size_t kRuns = 5;
  char error[512] = "";
  const auto need = [&](int status) {
    if (status != LEAT_DEVICE_OK) throw std::runtime_error(error);
  };
  std::array<std::uint64_t, kRuns> times{};
  run();  // stamps take their turn on the stream, so it is not in the first one's time
  for (std::uint64_t& t : times) {
    need(api.stamp(device, 0, error, sizeof error));
    run();
    need(api.stamp(device, 1, error, sizeof error));
    need(api.wait(device, error, sizeof error));
    need(api.elapsed(device, &t, error, sizeof error));
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return std::max<std::uint64_t>(1, times[kRuns / 2]);
}

}  // namespace leat::exec
