// How the cameras of feeders are, for whoever asks while they run: each feeder writes a file once a second, in a folder
// that is its user's alone ($XDG_RUNTIME_DIR/leat-feed, else /tmp/leat-feed-UID), and takes it away at its end. leatd
// has no part in it, so that it can be asked while leatd is down, and no client can fill leatd's memory with text.
//
// A reader takes what is his own user's alone, no more than a megabyte of it, checks every member, and leaves out what
// nobody has written for ten seconds. Thread rule: one thread for each object. Errors: one line; a feeder goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/json/json.h"
#include "tools/leat/feed/cameras/camera.h"

namespace leat::tools {

class CameraStatesFile {
 public:
  // socket: of the leatd that the cameras go to. Errors: the folder cannot be made, or is another's.
  static Result<CameraStatesFile> create(const std::string& socket);
  CameraStatesFile(CameraStatesFile&& other) noexcept;
  CameraStatesFile& operator=(CameraStatesFile&&) = delete;
  ~CameraStatesFile();  // takes it away
  Status write(const std::vector<CameraReport>& cameras, std::int64_t now_ns) const;

 private:
  CameraStatesFile(std::string path, std::string socket) : path_(std::move(path)), socket_(std::move(socket)) {}
  std::string path_, socket_;
};

// {"name", "source", "application", "state", "rate", "last_picture_s", "pictures", "breaks", "last_error",
//  "last_error_s", "pid"} of each camera of this user's feeders on that socket (empty: the default one); _s: seconds
//  ago,
// null: never.
[[nodiscard]] Json read_camera_states(const std::string& socket);
// A line for each.
[[nodiscard]] std::string camera_states_text(const Json& cameras);

}  // namespace leat::tools
