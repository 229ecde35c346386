// A video as a client sees it: its pictures in grey, as small as trackers look at them, and what is detected on each.
// Nobody says what is really there. Errors: one line. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "leat/tracking.hpp"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/try/model_config.h"
#include "tools/scene/tracking/drop_table.h"

namespace leat::tools {

// What is detected on the pictures of one video, asked for in their order; boxes in pixels of the picture.
using Detect = std::function<Result<std::vector<TrackedBox>>(const leat_frame& picture)>;

// `most` pictures at most. Both of the footage's lists of boxes are what was detected.
[[nodiscard]] Result<scene::Footage> read_footage(const std::string& video, const SourceOptions& options,
                                                  std::uint64_t most, const Detect& detect);

// From a file of answers as `leat feed --answers` writes it (docs/reference/answers.md), of one stream.
[[nodiscard]] Result<Detect> detections_of(const std::string& answers);

// By a leatd of one's own. `model`: an ONNX file with its words, or a configuration of leatd (.toml).
class ModelDetector {
 public:
  // application: of a configuration with several; empty: the first.
  static Result<std::unique_ptr<ModelDetector>> start(ModelWords model, std::string application);
  ~ModelDetector();
  // For a video of pictures like its first. The detector outlives it.
  [[nodiscard]] Detect detect();

 private:
  ModelDetector();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat::tools
