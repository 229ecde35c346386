// A test's case in a process of its own, over a stand-in of ONNX Runtime's CUDA provider.
#pragma once

#include <functional>

#include "cuda/device/own_process.h"
#include "cuda/device/stand_in_provider.h"

namespace leat {

// before: the device is opened.
inline int over_the_provider(const std::function<bool(fake::ProviderState&, exec::Device&)>& act,
                             const std::function<void(fake::Host&)>& before = {}) {
  return in_own_process([&act](fake::Host&, exec::Device& device) { return act(provider(), device); },
                        [&before](fake::Host& host) {
                          if (before) before(host);
                          with_provider(host);
                        });
}

}  // namespace leat
