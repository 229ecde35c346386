// Ground truth of a synthetic scene, and the judgement of a run's answers against it.
// Thread rule: Judge may be used by several threads at once; Truth is read-only once loaded.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "leat/leat.h"
#include "leat/result.hpp"
#include "tools/scene/accuracy.h"

namespace leat::tools {

struct Truth {
  std::uint32_t width = 0, height = 0;
  std::vector<std::vector<scene::Object>> pictures;  // in the order of the source
};

// JSON lines as `leat-scene --truth` writes them. Errors name file and line.
Result<Truth> load_truth(const std::string& path);

class Judge {
 public:
  void add(const std::vector<scene::Object>& truth, const leat_result& result) {
    const std::lock_guard lock(mutex_);
    meter_.add(truth, result);
  }
  [[nodiscard]] scene::Accuracy accuracy() const {
    const std::lock_guard lock(mutex_);
    return meter_.accuracy();
  }

 private:
  mutable std::mutex mutex_;
  scene::AccuracyMeter meter_;
};

}  // namespace leat::tools
