#include "cuda/fake/state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace leat::fake {
namespace {

constexpr std::uint32_t kMagic = 0x6c656174;

State* map(int fd) {
  void* const at = ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) std::abort();
  return static_cast<State*>(at);
}

// All zero is a valid State: atomics of zeros.
void fill(State& s, std::initializer_list<std::string_view> gpus) {
  for (const std::string_view name : gpus) {
    const Model* const model = find_model(name);
    if (model == nullptr || s.gpu_count == kMaxGpus) std::abort();
    s.gpus[s.gpu_count++].model = static_cast<std::uint32_t>(model - models().data());
  }
  s.seed = 1;
  s.magic = kMagic;
}

}  // namespace

void uuid_of(unsigned gpu, unsigned instance, unsigned compute, unsigned char out[16]) noexcept {
  for (int i = 0; i < 16; ++i) out[i] = static_cast<unsigned char>(0x1e + 11 * i);
  out[0] = static_cast<unsigned char>(gpu);
  out[14] = static_cast<unsigned char>(instance);
  out[15] = static_cast<unsigned char>(compute);
}

std::string uuid_text(unsigned gpu, unsigned instance, unsigned compute) {
  unsigned char b[16];
  uuid_of(gpu, instance, compute, b);
  char text[64];
  std::snprintf(text, sizeof text, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                instance == kWhole ? "GPU" : "MIG", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
                b[11], b[12], b[13], b[14], b[15]);
  return text;
}

Host::Lock::Lock(int of) noexcept : fd(of) {
  while (::flock(fd, LOCK_EX) != 0) {
  }
}
Host::Lock::~Lock() { (void)::flock(fd, LOCK_UN); }

std::unique_ptr<Host> Host::create(const std::string& path, std::initializer_list<std::string_view> gpus) {
  std::unique_ptr<Host> out(new Host);
  out->made_ = path;
  out->maker_ = ::getpid();
  out->fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out->fd_ < 0 || ::ftruncate(out->fd_, sizeof(State)) != 0) std::abort();
  out->state_ = map(out->fd_);
  fill(*out->state_, gpus);
  return out;
}

Host& Host::mine() {
  static Host* const kHost = [] {
    auto* host = new Host;
    const char* const path = std::getenv("LEAT_FAKE_GPUS");
    const bool own = path == nullptr || *path == '\0';
    host->fd_ = own ? ::memfd_create("leat-fake-gpus", MFD_CLOEXEC) : ::open(path, O_RDWR | O_CLOEXEC);
    if (host->fd_ < 0 || (own && ::ftruncate(host->fd_, sizeof(State)) != 0)) std::abort();
    host->state_ = map(host->fd_);
    if (own) fill(*host->state_, {"A100-40"});
    if (host->state_->magic != kMagic) std::abort();
    return host;
  }();
  return *kHost;
}

Host::~Host() {
  if (state_ != nullptr) (void)::munmap(state_, sizeof(State));
  if (fd_ >= 0) (void)::close(fd_);
  if (maker_ == ::getpid()) (void)::unlink(made_.c_str());
}

bool Host::fits(unsigned gpu, unsigned profile, unsigned start) const noexcept {
  const Profile* const wanted = find_profile(model(gpu), profile);
  if (wanted == nullptr || (wanted->starts >> start & 1) == 0) return false;
  unsigned same = 0;
  for (const Instance& i : state_->gpus[gpu].instances) {
    if (i.there == 0) continue;
    const Profile& other = *find_profile(model(gpu), i.profile);
    same += other.id == profile ? 1 : 0;
    if (i.start < start + wanted->size && start < i.start + other.size) return false;
  }
  return same < wanted->count;
}

int Host::add_instance(unsigned gpu, unsigned profile, unsigned start, unsigned computes) {
  return locked([&] {
    if (!fits(gpu, profile, start)) return -1;
    for (Instance& i : state_->gpus[gpu].instances) {
      if (i.there != 0) continue;
      i.profile = profile;
      i.start = start;
      const unsigned slices = find_profile(model(gpu), profile)->slices / std::max(1u, computes);
      for (unsigned c = 0; c < kMaxCompute; ++c) {
        i.compute[c].slices = slices;
        i.compute[c].start = c * slices;
        i.compute[c].there = c < computes ? 1 : 0;
      }
      i.there = 1;
      return static_cast<int>(&i - state_->gpus[gpu].instances);
    }
    return -1;
  });
}

std::vector<int> Host::users_of(unsigned gpu, unsigned instance, unsigned compute) const {
  std::vector<int> out;
  for (const User& u : state_->gpus[gpu].users) {
    if (u.pid == 0 || (::kill(u.pid, 0) != 0 && errno != EPERM)) continue;
    if ((instance == kWhole || u.instance == instance) && (compute == kWhole || u.compute == compute))
      out.push_back(u.pid);
  }
  return out;
}

}  // namespace leat::fake
