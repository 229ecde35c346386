// The cameras that there are: some stay as the command line named them, those of a file come and go as it says.
//
// Thread rule: one thread. Errors: none of its own; each camera has its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/leat/feed/cameras/camera.h"
#include "tools/leat/feed/cameras/camera_config.h"

namespace leat::tools {

class CameraList {
 public:
  explicit CameraList(Camera::Say say) : say_(std::move(say)) {}
  ~CameraList() { end(); }

  // `comes_back`: Camera's. The camera has not been started.
  Camera& add(FeederOptions options, bool comes_back);
  // All that have not been started.
  void start(std::int64_t start_ns);
  // The file's cameras are these now: those it no longer has end, those it has in other words begin anew, and nobody
  // touches the others. What came of it, in words.
  // annotated: the camera of that name is drawn into the file `annotate`.
  std::string apply(const std::vector<CameraConfig>& wanted, const FeederOptions& all,
                    const std::string& annotated = {}, const std::string& annotate = {});
  void stop();  // asks all to
  void end();   // and waits for them
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::vector<CameraReport> reports(std::int64_t now_ns);
  [[nodiscard]] FeedReport report() const;                // of those that have gone too
  [[nodiscard]] std::vector<std::string> errors() const;  // of those that have ended
  [[nodiscard]] std::size_t size() const noexcept { return cameras_.size(); }

 private:
  struct Entry {
    std::unique_ptr<Camera> camera;
    CameraConfig config;  // of the file's
    bool of_file = false, started = false;
  };
  void remove(std::vector<Entry> gone);

  const Camera::Say say_;
  std::vector<Entry> cameras_;
  std::uint32_t number_ = 0;  // of those there have been
  Ledger gone_;               // of those removed
  bool any_gone_ = false;
  std::int64_t gone_first_ns_ = 0, gone_last_ns_ = 0;
};

}  // namespace leat::tools
