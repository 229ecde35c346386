// What leatd asks of leat-gpu, a program of its own, so that no driver is loaded here: which devices there are, and one
// MPS daemon for each GPU that is shared out. Control thread; start() and locate() block for seconds at most.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/daemon/deployment/deployment.h"
#include "engine/worker/link/protocol.h"
#include "leat/result.hpp"
#include "tools/base/subprocess/process.h"

namespace leat::daemon {

// Fills in place and multiprocessors of the partitions that have a GPU. Error: one names a device that is not there.
Status locate_gpus(std::vector<PartitionConfig>& partitions);

// The deployment with what leat-gpu measures of the devices that its features pass between, which is logged; as it is
// where they pass between none.
Deployment with_device_pairs(const Config& config, std::span<const std::uint32_t> cores, Deployment deployment);

// An MPS daemon in a private folder. It ends with this object, and with this process however that ends.
class MpsKeeper {
 public:
  // user: whose processes its clients are; empty: this one's.
  static Result<std::unique_ptr<MpsKeeper>> start(const std::string& uuid, const std::string& user);
  MpsKeeper(const MpsKeeper&) = delete;
  MpsKeeper& operator=(const MpsKeeper&) = delete;
  ~MpsKeeper();

  [[nodiscard]] std::string pipe_directory() const { return folder_ + "/pipe"; }
  [[nodiscard]] std::string log_directory() const { return folder_ + "/log"; }
  [[nodiscard]] const std::string& uuid() const noexcept { return uuid_; }
  [[nodiscard]] const std::string& user() const noexcept { return user_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  [[nodiscard]] bool ended() {  // without having been asked
    (void)process_.ended();
    return !process_;
  }

 private:
  MpsKeeper() = default;
  std::string uuid_, user_, folder_;
  subprocess::Process process_;
  Fd input_;  // its standard input: closed, it ends
};

// One for each GPU that is shared out.
class MpsKeepers {
 public:
  // Starts them, and says in the workers' environment where they are.
  Status start(std::vector<worker::Setup>& setups);
  // A GPU whose MPS daemon has died gets another; its workers have to start again with these settings.
  struct Replaced {
    std::string uuid;
    std::vector<std::pair<std::string, std::string>> environment;
  };
  std::vector<Replaced> replace_ended();

 private:
  std::vector<std::unique_ptr<MpsKeeper>> keepers_;
};

}  // namespace leat::daemon
