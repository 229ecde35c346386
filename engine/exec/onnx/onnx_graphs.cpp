#include "engine/exec/onnx/onnx_graphs.h"

#include <algorithm>
#include <stdexcept>

namespace leat::exec {

std::vector<std::uint64_t> time_on_device(const leat_device_api& api, leat_device* device,
                                          std::span<const TimedWay> ways) {
  constexpr std::size_t kRuns = 5;
  constexpr std::uint64_t kClear = 3;  // so many times slower needs no second look
  char error[512] = "";
  const auto need = [&](int status) {
    if (status != LEAT_DEVICE_OK) throw std::runtime_error(error);
  };
  std::vector<std::vector<std::uint64_t>> times(ways.size());
  for (const TimedWay& way : ways) way.run();  // stamps take their turn on the stream, so it is not in the first's time
  std::vector<bool> runs(ways.size(), true);
  const auto decided = [&] { return ways.size() > 1 && std::count(runs.begin(), runs.end(), true) == 1; };
  for (std::size_t turn = 0; turn < kRuns && !decided(); ++turn) {
    std::uint64_t fastest = UINT64_MAX;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      if (!runs[w]) continue;
      if (ways[w].before) ways[w].before();
      need(api.stamp(device, 0, error, sizeof error));
      ways[w].run();
      need(api.stamp(device, 1, error, sizeof error));
      need(api.wait(device, error, sizeof error));
      std::uint64_t ns = 0;
      need(api.elapsed(device, &ns, error, sizeof error));
      times[w].push_back(std::max<std::uint64_t>(1, ns));
      fastest = std::min(fastest, times[w].back());
    }
    for (std::size_t w = 0; turn != 0 && w < ways.size(); ++w) runs[w] = runs[w] && times[w].back() / kClear <= fastest;
  }
  std::vector<std::uint64_t> out;
  for (auto& of : times) {
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::nth_element(of.begin(), middle, of.end());
    out.push_back(*middle);
  }
  return out;
}

}  // namespace leat::exec
