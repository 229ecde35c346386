#include "tools/leat/gateway/kserve/shared_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace leat::gateway {
namespace {

uid_t owner_of(const Peer& peer) { return peer.by_unix ? peer.uid : ::geteuid(); }

// "/name" as shm_open takes it: one name, below /dev/shm.
bool is_key(const std::string& key) {
  const std::string name = key.starts_with('/') ? key.substr(1) : key;
  return !name.empty() && name.size() < 250 && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

std::string SharedMemory::add(const std::string& name, const std::string& key, std::uint64_t offset,
                              std::uint64_t bytes, const Peer& peer) {
  if (!peer.local) return "shared memory is for clients of this host";
  if (name.empty() || name.size() > 128) return "a region's name has 1 to 128 bytes";
  if (!is_key(key)) return "the key is no name of a shared memory object";
  if (regions_.contains({peer.who, name})) return "region '" + name + "' is registered already; unregister it first";
  if (regions_.size() >= kMaxRegions) return "all " + std::to_string(kMaxRegions) + " regions are taken";
  const Fd folder(::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string file = key.starts_with('/') ? key.substr(1) : key;
  Fd fd(::openat(folder.get(), file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (!fd || ::fstat(fd.get(), &found) != 0) return "shared memory '" + key + "' cannot be opened";
  if (!S_ISREG(found.st_mode) || found.st_uid != owner_of(peer))
    return "shared memory '" + key + "' does not belong to the client's user";
  if (offset > static_cast<std::uint64_t>(found.st_size) ||
      bytes > static_cast<std::uint64_t>(found.st_size) - offset || bytes == 0)
    return "shared memory '" + key + "' has " + std::to_string(found.st_size) + " bytes";
  regions_[{peer.who, name}] = {
      .key = key, .owner = found.st_uid, .offset = offset, .bytes = bytes, .fd = std::move(fd)};
  return {};
}

void SharedMemory::remove(const std::string& name, const Peer& peer) {
  std::erase_if(regions_, [&](const auto& entry) {
    return entry.first.first == peer.who && (name.empty() || entry.first.second == name);
  });
}

Json SharedMemory::listed(const std::string& name, const Peer& peer) const {
  Json out = Json::array();
  for (const auto& [key, region] : regions_)
    if (key.first == peer.who && (name.empty() || key.second == name))
      out.push_back(
          {{"name", key.second}, {"key", region.key}, {"offset", region.offset}, {"byte_size", region.bytes}});
  return out;
}

const SharedMemory::Region* SharedMemory::find(const std::string& name, const Peer& peer, std::uint64_t offset,
                                               std::uint64_t bytes, std::string* why) const {
  const auto found = regions_.find({peer.who, name});
  if (found == regions_.end()) {
    *why = "there is no shared memory region '" + name + "'; register it first";
    return nullptr;
  }
  const Region& region = found->second;
  struct stat now {};
  if (offset > region.bytes || bytes > region.bytes - offset || ::fstat(region.fd.get(), &now) != 0 ||
      region.offset + offset + bytes > static_cast<std::uint64_t>(now.st_size)) {
    *why = "region '" + name + "' is shorter than that";
    return nullptr;
  }
  return &region;
}

std::string SharedMemory::read(const std::string& name, std::uint64_t offset, std::span<std::byte> to,
                               const Peer& peer) const {
  std::string why;
  const Region* const region = find(name, peer, offset, to.size(), &why);
  if (region == nullptr) return why;
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t got = ::pread(region->fd.get(), to.data() + done, to.size() - done,
                                static_cast<off_t>(region->offset + offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "region '" + name + "' became shorter";
    done += static_cast<std::size_t>(got);
  }
  return {};
}

std::string SharedMemory::write(const std::string& name, std::uint64_t offset, std::span<const std::byte> from,
                                const Peer& peer) const {
  std::string why;
  const Region* const region = find(name, peer, offset, from.size(), &why);
  if (region == nullptr) return why;
  for (std::size_t done = 0; done < from.size();) {
    const ssize_t put = ::pwrite(region->fd.get(), from.data() + done, from.size() - done,
                                 static_cast<off_t>(region->offset + offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return "region '" + name + "' cannot be written";
    done += static_cast<std::size_t>(put);
  }
  return {};
}

}  // namespace leat::gateway
