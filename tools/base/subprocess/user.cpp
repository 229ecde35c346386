#include "tools/base/subprocess/user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace leat::subprocess {
namespace {

constexpr const char* kNoSuchUser = "there is no such user; make it, or name another";

Error as_root() { return Error{std::string(std::strerror(errno)) + "; start leatd as root, or leave the key out"}; }

}  // namespace

Status become_user(const std::string& name) {
  const passwd* const user = getpwnam(name.c_str());
  if (user == nullptr) return Error{kNoSuchUser};
  if (user->pw_uid == geteuid()) return Done{};
  if (initgroups(user->pw_name, user->pw_gid) != 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
      setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
    return as_root();
  return Done{};
}

Status give_to_user(const std::string& path, const std::string& name) {
  const passwd* const user = getpwnam(name.c_str());
  if (user == nullptr) return Error{kNoSuchUser};
  if (user->pw_uid != geteuid() && chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) return as_root();
  return Done{};
}

}  // namespace leat::subprocess
