#include "engine/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace leat::daemon {

ServiceManager ServiceManager::from_environment() {
  ServiceManager out;
  const char* const name = getenv("NOTIFY_SOCKET");
  if (name == nullptr) return out;
  out.address_ = name;
  unsetenv("NOTIFY_SOCKET");
  const bool known = out.address_.size() > 1 && (out.address_[0] == '/' || out.address_[0] == '@') &&
                     out.address_.size() < sizeof(sockaddr_un::sun_path);
  if (known) out.socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return out;
}

Fd passed_socket() {
  constexpr int kFirst = 3;
  const char* const pid = getenv("LISTEN_PID");
  const char* const count = getenv("LISTEN_FDS");
  const bool ours = pid != nullptr && count != nullptr && pid == std::to_string(getpid()) && std::atoi(count) > 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  return ours ? Fd(kFirst) : Fd();
}

void ServiceManager::tell(std::string_view state, std::string_view status) {
  if (!socket_) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (address_[0] == '@') to.sun_path[0] = '\0';  // an abstract name
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  std::string text(state);
  if (!text.empty()) text += '\n';
  text += "STATUS=" + std::string(status) + "\n";
  (void)sendto(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), length);
}

}  // namespace leat::daemon
