// Ground truth of a synthetic scene, and the judgement of a run's answers against it.
// Thread rule: Judge may be used by several threads at once; Truth is read-only once loaded.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/leat.h"
#include "leat/result.hpp"
#include "tools/scene/tracking/accuracy.h"
#include "tools/scene/tracking/identity.h"

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
  // Identities of what an answer found; `stream`: any address that is that stream's alone.
  void add(const void* stream, const std::vector<scene::Object>& truth, std::span<const leat_detection> found,
           std::span<const std::uint64_t> ids) {
    const std::lock_guard lock(mutex_);
    identities_[stream].add(truth, found, ids);
  }
  // IDF1 over all streams; none: nothing had an identity.
  [[nodiscard]] std::optional<double> idf1() const;
  [[nodiscard]] scene::Accuracy accuracy() const {
    const std::lock_guard lock(mutex_);
    return meter_.accuracy();
  }

 private:
  mutable std::mutex mutex_;
  scene::AccuracyMeter meter_;
  std::map<const void*, scene::IdentityMeter> identities_;
};

}  // namespace leat::tools
