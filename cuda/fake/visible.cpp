#include "cuda/fake/visible.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace leat::fake {
namespace {

// Every device there is: whole GPUs without MIG, and every compute instance with it.
std::vector<Visible> everything() {
  Host& host = Host::mine();
  std::vector<Visible> out;
  for (unsigned g = 0; g < host.state().gpu_count; ++g) {
    const Gpu& gpu = host.state().gpus[g];
    if (gpu.mig == 0) {
      out.push_back({g, kWhole, kWhole});
      continue;
    }
    for (unsigned i = 0; i < kMaxInstances; ++i)
      for (unsigned c = 0; gpu.instances[i].there != 0 && c < kMaxCompute; ++c)
        if (gpu.instances[i].compute[c].there != 0) out.push_back({g, i, c});
  }
  return out;
}

}  // namespace

std::vector<Visible> visible_devices() {
  const auto all = everything();
  const char* const wanted = std::getenv("CUDA_VISIBLE_DEVICES");
  if (wanted == nullptr) return all;
  std::vector<Visible> out;
  std::string rest = wanted;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string word = rest.substr(0, comma);
    rest.erase(0, std::min(comma + 1, rest.size()));
    bool found = false;
    for (std::size_t i = 0; i < all.size() && !found; ++i) {
      found = word == std::to_string(i) || word == uuid_text(all[i].gpu, all[i].instance, all[i].compute);
      if (found) out.push_back(all[i]);
    }
    if (!found) break;  // as the driver: what follows a wrong entry is not visible
  }
  return out;
}

}  // namespace leat::fake
