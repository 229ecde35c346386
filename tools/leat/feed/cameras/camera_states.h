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

namespace leat::tools {

// LEAT_CAMERA_STATES(X): X(name, text)
#define LEAT_CAMERA_STATES(X)                                         \
  X(opening, "its source is being opened")                            \
  X(running, "pictures come and are served")                          \
  X(late, "pictures come, each too old to be served")                 \
  X(unserved, "pictures come, and leatd does not take them")          \
  X(waiting, "its source broke off, and is opened again in a moment") \
  X(ended, "its source has ended, or a limit was reached")
#define X(name, text) name,
enum class CameraState : std::uint8_t { LEAT_CAMERA_STATES(X) };
#undef X
[[nodiscard]] const char* name_of(CameraState state);

struct CameraReport {
  std::string name, source, application;
  CameraState state = CameraState::opening;
  // Pictures that were submitted, or left out for another reason than their age: a second, of late; the last one
  // (CLOCK_MONOTONIC; 0: none yet); all.
  double rate = 0;
  std::int64_t last_picture_ns = 0;
  std::uint64_t pictures = 0, breaks = 0;
  std::uint64_t time_steps = 0;                   // of the source's times (source_clock.h)
  std::uint64_t damaged = 0, format_changes = 0;  // pictures that may show an error; of size or pixel format
  std::string last_error;                         // in one line; empty: none yet
  std::int64_t last_error_ns = 0;                 // when it was
};

class CameraStatesFile {
 public:
  // socket: of the leatd that the cameras go to. Errors: the folder cannot be made, or is another's.
  static Result<CameraStatesFile> create(const std::string& socket);
  CameraStatesFile(CameraStatesFile&& other) noexcept;
  CameraStatesFile& operator=(CameraStatesFile&&) = delete;
  ~CameraStatesFile();  // takes it away
  Status write(const std::vector<CameraReport>& cameras, std::int64_t now_ns) const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  CameraStatesFile(std::string path, std::string socket) : path_(std::move(path)), socket_(std::move(socket)) {}
  std::string path_, socket_;
};

// {"name", "source", "application", "state", "rate", "last_picture_s", "pictures", "breaks", "time_steps", "damaged",
//  "format_changes", "last_error", "last_error_s", "pid"} of each camera of this user's feeders on that socket (empty:
//  the default one); _s: seconds ago,
// null: never.
[[nodiscard]] Json read_camera_states(const std::string& socket);
// A line for each.
[[nodiscard]] std::string camera_states_text(const Json& cameras);

}  // namespace leat::tools
