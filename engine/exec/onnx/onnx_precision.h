// Which precisions a model computes in, read off its graph: nothing is run. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace leat::exec {

struct Precision {
  bool half = false;    // filters or matrices in float16 or bfloat16, or something made so
  bool single = false;  // filters or matrices in float32 that a layer takes as they are
  bool operator==(const Precision&) const = default;
};

// Neither where the file cannot be read: whoever opens it says so.
Precision precision_of(const std::string& path);
Precision precision_in(std::string_view model);

}  // namespace leat::exec
