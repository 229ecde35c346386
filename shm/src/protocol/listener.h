// leatd's end of the control socket: who holds its path, and who connects. Transport of messages: control_protocol.h.
// Thread rule: none of its own; leatd's control thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "shm/src/segments/segment.h"

namespace leat::shm {

// Where leatd listens and clients look when nothing else is said. leatd makes the folder if it may.
inline constexpr char kSystemSocket[] = "/run/leat/leat.sock";

// What the kernel knew of the other side when it connected (SO_PEERCRED, SO_PEERGROUPS).
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary; empty where the kernel does not tell
  bool in_group(gid_t group) const noexcept;
};
Result<Peer> peer_of(int socket);

enum class Accepted : std::uint8_t { connection, nobody, no_descriptor, failed };

class Listener {
 public:
  Listener() = default;  // holds nothing
  // Takes `path` for as long as it lives. A lock file beside it (PATH.lock, flock) decides between daemons that start
  // at once; the file of a daemon that was killed is replaced, and one that still answers is left alone. `mode` and
  // `group` (none: the process's own) say who may connect; nobody may before they are set.
  static Result<Listener> open(const std::string& path, mode_t mode, std::optional<gid_t> group = std::nullopt);
  // A socket that is bound and listens already, of a service manager's: nothing of it is created or removed here, its
  // modes are the manager's, and it outlives whoever serves. Error: it is no such socket, or another than `path`.
  static Result<Listener> adopt(Fd socket, const std::string& path);
  // What keeps a daemon from `path` whoever else serves there: its length, its folder. Creates nothing.
  static Status possible(const std::string& path);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();  // removes the socket's file and the lock's, where it made them

  int fd() const noexcept { return socket_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  // One connection, non-blocking on both ends. no_descriptor: this process or the system has none left (EMFILE, ENFILE,
  // ENOBUFS, ENOMEM), and the connection goes on waiting; failed: *text says why.
  Accepted accept(Fd* connection, std::string* text) const;
  // Nobody connects any more; the lock is still held. To close what it returns is to close, with all that they have
  // sent, the connections that nobody has accepted: it takes as long as they like.
  Fd retire() noexcept;

 private:
  std::string path_;
  Fd lock_, socket_;
};

}  // namespace leat::shm
