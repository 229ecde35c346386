#include "engine/daemon/daemon.h"

#include <utility>

#include "engine/daemon/control_thread.h"

namespace leat::daemon {

Daemon::Daemon(std::unique_ptr<ControlThread> control) : control_(std::move(control)) {}
Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::create(Config config, DaemonOptions options) {
  auto control = std::make_unique<ControlThread>(std::move(config), std::move(options));
  if (auto status = control->create(); !status) return Error{status.error()};
  return std::unique_ptr<Daemon>(new Daemon(std::move(control)));
}

Status Daemon::run() { return control_->run(); }
const std::vector<std::vector<exec::Recognised>>& Daemon::recognised() const { return control_->recognised(); }
const std::vector<worker::Ready>& Daemon::measured() const { return control_->measured(); }

}  // namespace leat::daemon
