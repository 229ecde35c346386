// The demo's application for benchmarks: tools/models/shapes/shapes.toml with its models found from anywhere and
// without its partitions. Errors: one line.
#pragma once

#include <string>

#include "leat/result.hpp"

namespace leat::bench {

struct ShapesOptions {
  std::string profiles = {};  // a folder with detect.json and classify.json; empty: leatd measures
  double slo_ms = 0;          // 0: as the file says
};
Result<std::string> shapes_application(const ShapesOptions& options = {});

}  // namespace leat::bench
