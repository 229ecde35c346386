// Cameras beside their streams: a stream of a camera's name is that camera's, and one that no stream has is a row of
// its own, whose figures are not known. Thread rule: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

class CameraRows {
 public:
  // Of a second that has its streams; the new ones come behind them. Cameras that have ended have none.
  void add(const std::vector<CameraFigures>& cameras, Second* second);

 private:
  std::map<std::string, std::shared_ptr<const StreamIdentity>> rows_;  // of cameras without a stream, by name
};

// Its last error without whose it is: "cannot be opened: Connection refused".
[[nodiscard]] std::string short_error(const CameraFigures& camera);

}  // namespace leat::tools::top
