// A leatd of this program's own: in a private folder, heard by nobody else, ended and removed with this object.
// Thread rule: one thread.
#pragma once

#include <memory>
#include <string>

#include "leat/result.hpp"
#include "tools/base/subprocess/process.h"

namespace leat::tools {

// The leatd of this installation or build: beside leat, or where the build leaves it; else "leatd" of the PATH.
[[nodiscard]] std::string leatd_program();

// A path that reads `text`, kept open by this process (and by what it executes) alone.
[[nodiscard]] Result<std::string> text_behind_descriptor(const std::string& text);

class PrivateDaemon {
 public:
  // Starts leatd on `config`, a file, with --trial (engine/daemon/deployment/trial.h), and returns when it serves.
  // Errors: the lines that it ended with. `model`: what a command line made the configuration from; empty: the user
  // wrote it.
  static Result<std::unique_ptr<PrivateDaemon>> start(const std::string& config, const std::string& model = {});
  ~PrivateDaemon();
  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;

  [[nodiscard]] std::string socket() const { return folder_ + "/leat.sock"; }
  // Its last warning or error: why a frame failed is said there. Empty: none.
  [[nodiscard]] std::string last_complaint() const;

 private:
  PrivateDaemon() = default;
  std::string folder_;
  subprocess::Process process_;
};

}  // namespace leat::tools
