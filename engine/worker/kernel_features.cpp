#include "engine/worker/kernel_features.h"

#include <linux/landlock.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace leat::worker {
namespace {

#ifdef SO_PASSRIGHTS
constexpr int kPassRights = SO_PASSRIGHTS;
#else
constexpr int kPassRights = 83;  // asm-generic/socket.h of Linux 6.16
#endif

bool seems_old() noexcept {
  static const bool kOld = [] {
    const char* const word = std::getenv("LEAT_OLD_KERNEL");
    return word != nullptr && std::string_view(word) == "1";
  }();
  return kOld;
}

}  // namespace

int landlock_abi() noexcept {
  static const int kAbi =
      seems_old() ? 0
                  : static_cast<int>(std::max<long>(
                        0, ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION)));
  return kAbi;
}

bool refuse_descriptors(int socket) noexcept {
  const int no = 0;
  return !seems_old() && ::setsockopt(socket, SOL_SOCKET, kPassRights, &no, sizeof no) == 0;
}

}  // namespace leat::worker
