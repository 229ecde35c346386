#include "tools/leat/doctor_workers.h"

#include <optional>

#include "engine/worker/sandbox/kernel_features.h"
#include "leat/leat.h"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/json/json.h"

namespace leat::tools {

Finding finding_from_status(const std::string& text, const std::string& socket) {
  Finding finding{.subject = "workers' user"};
  if (text.empty()) {
    finding.found = "no daemon yet; one that root starts needs [workers] user";
    return finding;
  }
  const std::optional<Json> status = Json::try_parse(text);
  if (!status || !status->is_object() || !status->value("workers_are_root", false)) {
    finding.found = "leatd at " + socket + " runs its workers as a user other than root";
    return finding;
  }
  finding.health = Health::note;
  finding.found = "leatd at " + socket + " runs its workers as root";
  finding.cause = "root started it, and its configuration names no [workers] user";
  finding.cure = "make a user for them (useradd --system leat-worker), and set [workers] user = \"leat-worker\"";
  return finding;
}

Finding workers_user() {
  const std::string path = ::leat_default_socket();
  leat_error error{};
  auto observer = shm::Observer::connect(path, &error);
  const auto text = observer.ok() ? observer->status(&error) : Result<std::string>(Error{observer.error()});
  return finding_from_status(text.ok() ? *text : std::string(), path);
}

Finding landlock() {
  Finding finding{.subject = "Landlock"};
  if (const int abi = worker::landlock_abi(); abi > 0) {
    finding.found = "version " + std::to_string(abi) + ": workers reach no other process";
    return finding;
  }
  finding.health = Health::note;
  finding.found = "not there; workers can see which other processes run";
  finding.cause = "the kernel is older than 5.13, or was booted without it (lsm=)";
  finding.cure =
      "add landlock to lsm= on the kernel's command line; meanwhile [workers] user keeps workers from the rest";
  return finding;
}

}  // namespace leat::tools
