// To which login a uid belongs: subordinate uids, which /etc/subuid gives to users for their user namespaces, count as
// the login that owns their range. Otherwise whoever has one would have as many users' limits as it has uids.
//
// Trust is not handed on: a range of root's, or of leatd's own user's, counts as one user beside them, named by its
// first uid, and so does one whose owner has no number here. Names are looked up with the system's means (getpwnam)
// when leatd starts; when the file changes later, only in /etc/passwd and among those known, because a directory on the
// network could make its caller wait. Of both files the first MiB is read; the first of two ranges that overlap counts.
//
// Thread rule: the control thread. Files are looked at once a second at most, and only when somebody connects.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace leat::daemon {

// Who is held to account for a connection.
struct Login {
  uid_t uid = 0;
  std::string who;  // for messages: "1001", or "alice (subordinate uid 100999)"
};

class SubordinateUids {
 public:
  // `file`: of the form of /etc/subuid; empty: no uid is anybody's subordinate. `trusted`: leatd's own user.
  SubordinateUids(std::string file, uid_t trusted, std::string passwd = "/etc/passwd");
  void look(std::int64_t now_ns);  // reads it again if it has changed
  [[nodiscard]] Login login_of(uid_t uid) const;

 private:
  struct Range {
    std::uint64_t first, end;
    uid_t owner;
    std::string name;
  };
  struct Seen {
    timespec changed{};
    std::uint64_t inode = 0, bytes = 0;
    bool operator==(const Seen& other) const noexcept {
      return changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec &&
             inode == other.inode && bytes == other.bytes;
    }
  };
  void read(bool at_start);
  void add(const std::string& line, bool at_start);
  void read_names();

  std::string file_, passwd_;
  uid_t trusted_;
  Seen seen_;
  std::int64_t look_ns_ = 0;            // not before
  std::map<std::string, uid_t> names_;  // known so far
  std::vector<Range> ranges_;           // in the order of the file
};

}  // namespace leat::daemon
