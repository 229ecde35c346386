#include "bench/serving/leatd_child.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bench/micro/transport_peers.h"

namespace leat::bench {

Result<std::unique_ptr<LeatdChild>> LeatdChild::start(const std::string& leatd, const std::string& config,
                                                      const std::string& first) {
  std::error_code none;
  if (!std::filesystem::exists(leatd, none))
    return Error{"there is no " + leatd + "; build it, or name it with --leatd"};
  char folder[] = "/tmp/leat-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) return Error{"no folder can be made in /tmp"};
  std::unique_ptr<LeatdChild> d(new LeatdChild);
  d->folder_ = folder;
  const std::string file = d->folder_ + "/leat.toml";
  std::ofstream(file) << first << "[daemon]\nsocket = \"" << d->socket() << "\"\nlog_level = \"error\"\n" << config;
  d->pid_ = fork();
  if (d->pid_ == 0) {
    unpin();
    execl(leatd.c_str(), leatd.c_str(), file.c_str(), nullptr);
    _exit(127);
  }
  return d;
}

LeatdChild::~LeatdChild() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code none;
  std::filesystem::remove_all(folder_, none);
}

bool LeatdChild::alive() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

std::string built(const std::string& path) {
  std::error_code none;
  return (std::filesystem::read_symlink("/proc/self/exe", none).parent_path().parent_path() / path).string();
}

std::string leatd_beside() { return built("engine/daemon/leatd"); }

}  // namespace leat::bench
