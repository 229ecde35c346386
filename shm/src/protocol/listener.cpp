#include "shm/src/protocol/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shm/src/protocol/control_protocol.h"
#include "shm/src/protocol/kernel_features.h"
#include "shm/src/protocol/system_text.h"

namespace leat::shm {
namespace {

constexpr int kBacklog = 128;
constexpr int kAcceptAttempts = 16;  // connections that ended before they were accepted

// A killed leatd's listening socket may outlive it for a moment: the kernel ends its io_uring, which holds the socket,
// after the process. Whoever is really there keeps the connection; a dead one's is reset, and the next attempt is
// refused.
bool somebody_serves(const std::string& path) {
  constexpr int kPatienceMs = 250, kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    leat_error error = LEAT_ERROR_ok;
    const Result<Fd> fd = connect_to(path, &error);
    if (!fd) return error != LEAT_ERROR_daemon_absent && error != LEAT_ERROR_system;
    pollfd p{fd->get(), POLLIN, 0};
    const int ready = ::poll(&p, 1, kPatienceMs);
    if (ready == 0 || (ready > 0 && (p.revents & (POLLHUP | POLLERR)) == 0)) return true;
  }
  return true;
}

constexpr const char* kChooseAnother =
    "; choose a socket in a directory that exists and is writable (--socket, LEAT_SOCKET or socket in [daemon])";

std::string lock_path(const std::string& path) { return path + ".lock"; }

std::string cannot_create(const std::string& path, int error) {
  return system_text("cannot create " + lock_path(path) + " beside the socket " + path, error) + kChooseAnother;
}

// The lock is only good while its file has the name: who ended last removed it.
Result<Fd> take_lock(const std::string& path) {
  const std::string file = lock_path(path);
  constexpr int kAttempts = 16;
  if (path == kSystemSocket)
    (void)::mkdir(path.substr(0, path.rfind('/')).c_str(), 0755);  // or it is there, or open says
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return Error{cannot_create(path, errno)};
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) break;
    struct stat ours {
    }, named{};
    if (::fstat(fd.get(), &ours) == 0 && ::lstat(file.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
        ours.st_dev == named.st_dev)
      return fd;
  }
  return Error{"another leatd already serves at " + path + "; stop it or choose another socket"};
}

Status nothing_else_at(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode))
    return Error{path + " exists and is not a socket; choose another socket path"};
  return Done{};
}

Result<Fd> listen_at(const std::string& path, mode_t mode, std::optional<gid_t> group) {
  if (auto status = nothing_else_at(path); !status) return Error{status.error()};
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) {
    if (somebody_serves(path))
      return Error{"another leatd already serves at " + path + "; stop it or choose another socket"};
    ::unlink(path.c_str());  // of a leatd that was killed: nobody answers there
  }
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error{system_text("cannot create a socket", errno)};
  refuse_descriptors(fd.get());  // what it accepts refuses them from the moment they connect
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  // Nobody may connect between bind and chmod, so the file is made with the narrowest mode first.
  const mode_t before = umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int why = errno;
  umask(before);
  if (bound != 0) return Error{system_text("cannot create the socket " + path, why) + kChooseAnother};
  std::string trouble;
  if (::listen(fd.get(), kBacklog) != 0) trouble = system_text("cannot listen at " + path, errno);
  if (trouble.empty() && group && ::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0)
    trouble = system_text("cannot give the socket " + path + " to group " + std::to_string(*group), errno) +
              "; start leatd as root or as a member of that group";
  if (trouble.empty() && ::chmod(path.c_str(), mode) != 0)
    trouble = system_text("cannot set the mode of the socket " + path, errno);
  if (trouble.empty()) return fd;
  ::unlink(path.c_str());
  return Error{trouble};
}

}  // namespace

bool Peer::in_group(gid_t group) const noexcept {
  return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return Error{system_text("cannot tell who connected (SO_PEERCRED)", errno)};
  Peer peer{credentials.pid, credentials.uid, credentials.gid, {}};
#ifdef SO_PEERGROUPS
  peer.groups.resize(64);
  for (int attempt = 0; attempt < 2; ++attempt) {  // the kernel tells the size it wants
    size = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
    const bool told = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size) == 0;
    const bool larger = !told && errno == ERANGE;
    peer.groups.resize(told || larger ? size / sizeof(gid_t) : 0);
    if (!larger) break;
  }
#endif
  return peer;
}

Status Listener::possible(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path))
    return Error{"socket path '" + path + "' is empty or longer than " +
                 std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes; choose a shorter one"};
  std::string folder = path.substr(0, path.rfind('/') + 1);
  if (path == kSystemSocket && ::access(folder.c_str(), F_OK) != 0) folder = "/run/";  // take_lock makes it
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) return Error{cannot_create(path, errno)};
  return nothing_else_at(path);
}

Result<Listener> Listener::open(const std::string& path, mode_t mode, std::optional<gid_t> group) {
  if (auto status = possible(path); !status) return Error{status.error()};
  Listener out;
  Result<Fd> lock = take_lock(path);
  if (!lock) return Error{lock.error()};
  out.lock_ = std::move(*lock);
  out.path_ = path;
  Result<Fd> socket = listen_at(path, mode, group);
  if (!socket) return Error{socket.error()};
  out.socket_ = std::move(*socket);
  return out;
}

Result<Listener> Listener::adopt(Fd socket, const std::string& path) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  int type = 0, listens = 0;
  socklen_t type_size = sizeof type, listens_size = sizeof listens;
  const bool fits = ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                    ::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
                    ::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) == 0 &&
                    address.sun_family == AF_UNIX && type == SOCK_SEQPACKET && listens != 0;
  if (!fits)
    return Error{
        "the descriptor that the service manager passes is no listening SOCK_SEQPACKET Unix socket; write "
        "ListenSequentialPacket="};
  const std::string_view name(address.sun_path, strnlen(address.sun_path, sizeof address.sun_path));
  if (name != path)
    return Error{"the service manager listens at '" + std::string(name) + "', and leatd is to serve at '" + path +
                 "'; give both the same"};
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0)
    return Error{system_text("cannot use the socket that the service manager passes", errno)};
  refuse_descriptors(socket.get());
  Listener out;
  out.socket_ = std::move(socket);
  return out;
}

Listener::Listener(Listener&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)), socket_(std::move(other.socket_)) {}
Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  std::swap(socket_, other.socket_);
  return *this;
}

Fd Listener::retire() noexcept {
  if (socket_ && !path_.empty()) ::unlink(path_.c_str());
  return std::move(socket_);
}

Listener::~Listener() {
  (void)retire();
  if (lock_) ::unlink(lock_path(path_).c_str());  // while it is held: who waits for it looks whether it has the name
}

Accepted Listener::accept(Fd* connection, std::string* text) const {
  for (int attempt = 0; attempt < kAcceptAttempts; ++attempt) {
    const int fd = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      *connection = Fd(fd);
      return Accepted::connection;
    }
    switch (errno) {
      case EINTR:
      case ECONNABORTED:
        continue;
      case EAGAIN:
        return Accepted::nobody;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return Accepted::no_descriptor;
      default:
        *text = system_text("cannot accept a connection", errno);
        return Accepted::failed;
    }
  }
  return Accepted::nobody;
}

}  // namespace leat::shm
