// System shared memory that clients name (KServe's extension). Off unless the operator allows it, because the key is a
// name the client chooses: a region is opened below /dev/shm only, never through a link, belongs to the user at the
// other end of the Unix socket (or, over loopback, to the gateway's own), is looked at anew for each use, and is
// copied, never mapped: it could be cut short under a reader. Thread rule: the gateway's thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "tools/base/json/json.h"
#include "tools/base/text/fd.h"
#include "tools/leat/gateway/http/job.h"

namespace leat::gateway {

class SharedMemory {
 public:
  static constexpr std::size_t kMaxRegions = 64;
  // Each: empty, or one line about what is wrong.
  std::string add(const std::string& name, const std::string& key, std::uint64_t offset, std::uint64_t bytes,
                  const Peer& peer);
  void remove(const std::string& name, const Peer& peer);                      // empty: all of that peer's
  [[nodiscard]] Json listed(const std::string& name, const Peer& peer) const;  // empty: all of that peer's
  std::string read(const std::string& name, std::uint64_t offset, std::span<std::byte> to, const Peer& peer) const;
  std::string write(const std::string& name, std::uint64_t offset, std::span<const std::byte> from,
                    const Peer& peer) const;

 private:
  struct Region {
    std::string key;
    uid_t owner = 0;
    std::uint64_t offset = 0, bytes = 0;
    Fd fd;
  };
  const Region* find(const std::string& name, const Peer& peer, std::uint64_t offset, std::uint64_t bytes,
                     std::string* why) const;
  std::map<std::pair<std::string, std::string>, Region> regions_;  // by peer and name
};

}  // namespace leat::gateway
