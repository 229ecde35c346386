// An errno as the cause in a message about something that cannot be opened or started, with what to do where a limit is
// reached. Any thread.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace leat::text {

[[nodiscard]] inline std::string system_reason(int why) {
  std::string out = std::strerror(why);
  if (why == EMFILE || why == ENFILE) out += "; raise the limit of open files (ulimit -n, LimitNOFILE)";
  if (why == EAGAIN) out += "; raise the limit of processes (ulimit -u, TasksMax, the container's pids limit)";
  return out;
}

}  // namespace leat::text
