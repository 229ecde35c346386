// A leatd of a benchmark's own: in a private folder, ended and removed with this object. Thread rule: one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "leat/client.hpp"
#include "leat/result.hpp"
#include "tools/base/cli/command.h"
#include "tools/base/subprocess/process.h"

namespace leat::bench {

class LeatdChild {
 public:
  // config: TOML behind "[daemon]", its socket and log level, so it begins with keys of [daemon]. first: TOML before
  // it. Returns before leatd serves.
  static Result<std::unique_ptr<LeatdChild>> start(const std::string& leatd, const std::string& config,
                                                   const std::string& first = "");
  ~LeatdChild();
  LeatdChild(const LeatdChild&) = delete;
  LeatdChild& operator=(const LeatdChild&) = delete;

  std::string folder() const { return folder_; }  // for files that are to go with it
  std::string socket() const { return folder_ + "/leat.sock"; }
  // Waits until it serves; an error where it ended or the limit is over.
  Status serves(std::chrono::seconds limit);
  bool alive() { return process_ && !process_.ended(); }
  pid_t pid() const { return process_.pid(); }

 private:
  LeatdChild() = default;
  std::string folder_;
  subprocess::Process process_;
};

// A client with one stream.
struct Connection {
  Client client;
  Stream stream;
};
// Tries until leatd, which may still be starting, has opened the stream; an error where it ended or the limit is over.
Result<Connection> connect(LeatdChild& daemon, const std::string& name, const leat_stream_options& options,
                           std::chrono::seconds limit);

// A program that the build left for this one: "engine/daemon/leatd", ...
std::string built(const std::string& path);
// The leatd that the build left for this program.
std::string leatd_beside();

// --leatd, and what it comes to.
inline constexpr cli::Option kLeatdOption = {.name = "leatd",
                                             .type = cli::Type::path,
                                             .value = "FILE",
                                             .help = "the daemon; default: the one built beside this program"};
inline std::string leatd_of(const cli::Arguments& args) {
  return args.given("leatd") ? args.text("leatd") : leatd_beside();
}

}  // namespace leat::bench
