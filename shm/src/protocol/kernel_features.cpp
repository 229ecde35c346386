#include "shm/src/protocol/kernel_features.h"

#include <sys/socket.h>

#include <cstdlib>
#include <string_view>

#include "shm/src/segments/segment.h"

namespace leat::shm {
namespace {

#ifdef SO_PASSRIGHTS
constexpr int kPassRights = SO_PASSRIGHTS;
#else
constexpr int kPassRights = 83;  // Linux 6.16, on every architecture that Leat runs on
#endif

bool set_pass_rights(int socket, int to) noexcept {
  return ::setsockopt(socket, SOL_SOCKET, kPassRights, &to, sizeof to) == 0;
}

}  // namespace

bool told_old_kernel() noexcept {
  static const bool told = [] {
    const char* value = std::getenv("LEAT_OLD_KERNEL");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return told;
}

bool can_refuse_descriptors() noexcept {
  static const bool can = [] {
    const Fd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    return !told_old_kernel() && probe && set_pass_rights(probe.get(), 0);
  }();
  return can;
}

void refuse_descriptors(int socket) noexcept {
  if (can_refuse_descriptors()) (void)set_pass_rights(socket, 0);
}

}  // namespace leat::shm
