// shm::Segment and its kin over memory that is used again by the next input: to make, to fault in and to unmap segments
// is nearly all that an input of the scheduler's harness would cost. It is linked in the place of
// shm/src/segments/segment.cpp; what is tested is the code above. The numbers it gives for descriptors are its own;
// others are the kernel's.
//
// One thread.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "shm/src/segments/segment.h"

namespace leat::shm {
namespace {

constexpr int kFirst = 1 << 24;  // the number of piece 0; the kernel's stay far below
constexpr std::size_t kAlignment = 4096;

struct Piece {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t users = 0;  // descriptors and mappings
};

// Lives as long as the process: what an input leaves behind is given back after main().
std::vector<Piece>& pieces() {
  static auto& all = *new std::vector<Piece>;
  return all;
}
Piece& piece_of(int fd) { return pieces().at(static_cast<std::size_t>(fd - kFirst)); }

// A free piece of that size, zeroed; its number.
int take(std::uint64_t bytes) {
  auto& all = pieces();
  auto found = std::find_if(all.begin(), all.end(), [&](const Piece& p) { return p.users == 0 && p.bytes == bytes; });
  if (found == all.end()) {
    const std::uint64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    all.push_back({.data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole)), .bytes = bytes});
    if (all.back().data == nullptr) std::abort();
    found = all.end() - 1;
  }
  std::memset(found->data, 0, bytes);
  found->users = 1;
  return kFirst + static_cast<int>(found - all.begin());
}

}  // namespace

Result<Fd> duplicate(int fd) {
  if (fd < kFirst) return Fd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  ++piece_of(fd).users;
  return Fd(fd);
}

Mapping::Mapping() = default;
Mapping::~Mapping() {
  for (Piece& p : pieces())
    if (p.data == data_) --p.users;
}
Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<Mapping> Mapping::map(int fd, std::uint64_t bytes, Access, bool) {
  Piece& p = piece_of(fd);
  if (p.bytes != bytes) return Error{"another size"};
  ++p.users;
  Mapping m;
  m.data_ = p.data;
  m.bytes_ = bytes;
  return m;
}

Result<Segment> Segment::reserve(const char*, std::uint64_t bytes) {
  Segment s;
  s.fd_ = Fd(take(bytes));
  s.memory_ = std::move(Mapping::map(s.fd_.get(), bytes, Access::read_write, false)).value();
  return s;
}
Result<Segment> Segment::create(const char* label, std::uint64_t bytes, Seal) { return reserve(label, bytes); }
Status Segment::allocate(std::uint64_t, std::uint64_t) { return Done{}; }
Status Segment::secure() { return Done{}; }
void Segment::fault_in() {}
Result<Fd> Segment::share_read_only() const { return duplicate(fd_.get()); }

}  // namespace leat::shm

// In the C library's place for the whole program: an Fd closes what it holds, and that may be a piece.
extern "C" int close(int fd) {
  if (fd < leat::shm::kFirst) return static_cast<int>(syscall(SYS_close, fd));
  --leat::shm::piece_of(fd).users;
  return 0;
}
