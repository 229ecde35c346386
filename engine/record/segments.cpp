#include "engine/record/segments.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "tools/base/text/fd.h"

namespace leat::record {
namespace {

constexpr int kTries = 8;  // a ring that comes round while its newest segment is copied

bool read_at(int file, std::uint64_t place, void* to, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::pread(file, static_cast<char*>(to) + done, count - done, static_cast<off_t>(place + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

struct Place {
  std::uint64_t sequence = 0, at = 0;
};

// Those that follow one another up to the newest, the oldest first.
std::vector<Place> run_of(int file, std::uint64_t bytes, std::uint64_t segment_bytes) {
  std::vector<Place> out;
  SegmentHeader h;
  for (std::uint64_t at = 0; at < bytes; at += segment_bytes)  // one that was cut is whole if its entries are there
    if (read_at(file, at, &h, sizeof h) && usable(h, segment_bytes) && at + sizeof h + h.used <= bytes)
      out.push_back({h.sequence, at});
  std::ranges::sort(out, {}, &Place::sequence);
  std::size_t from = out.empty() ? 0 : out.size() - 1;
  while (from > 0 && out[from - 1].sequence + 1 == out[from].sequence) --from;
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(from));
  return out;
}

// What leatd writes over a segment it announces in its header first: where the header is the same afterwards, what was
// read between is the segment's.
bool copy(int file, const Place& from, std::uint64_t segment_bytes, std::byte* to) {
  SegmentHeader before, after;
  if (!read_at(file, from.at, &before, sizeof before) || !usable(before, segment_bytes) ||
      before.sequence != from.sequence || !read_at(file, from.at + sizeof before, to + sizeof before, before.used) ||
      !read_at(file, from.at, &after, sizeof after) || after.sequence != from.sequence)
    return false;
  std::memcpy(to, &before, sizeof before);
  return true;
}

}  // namespace

Result<std::uint64_t> segment_bytes_of(const SegmentHeader& first, std::uint64_t bytes) {
  static constexpr SegmentHeader kNothing{};
  if (bytes < sizeof first || std::memcmp(&first, &kNothing, sizeof first) == 0) return Error{kEmpty};
  if (first.magic != kMagic) return Error{"it is no record of leatd's: it begins otherwise"};
  if (first.format != kFormat) {
    const std::string by(first.version.data(), strnlen(first.version.data(), first.version.size()));
    const bool plain = !by.empty() && std::ranges::all_of(by, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
    return Error{"it is a record of format " + std::to_string(first.format) + ", and this leat reads format " +
                 std::to_string(kFormat) + "; use the release that wrote it" + (plain ? ", " + by : std::string())};
  }
  if (first.segment_bytes < kMinSegmentBytes || first.segment_bytes > std::max(bytes, kSegmentBytes))
    return Error{"it is damaged: its segments have an impossible length"};
  return first.segment_bytes;
}

bool usable(const SegmentHeader& h, std::uint64_t segment_bytes) noexcept {
  return h.magic == kMagic && h.format == kFormat && h.header_bytes == sizeof(SegmentHeader) &&
         h.segment_bytes == segment_bytes && h.sequence > 0 && h.sequence < UINT64_MAX / 2 &&
         h.used <= segment_bytes - sizeof(SegmentHeader) && h.begin_ns >= 0 && h.begin_ns < kLatestNs;
}

Result<std::vector<std::byte>> read_segments(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0)
    return Error{std::string("cannot be read: ") + std::strerror(errno) + "; name a record of leatd's"};
  if (!S_ISREG(about.st_mode)) return Error{"it is no record of leatd's: it is no file"};
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  if (bytes > kMaxBytes) return Error{"it is larger than any record of leatd's"};
  SegmentHeader first;
  if (bytes >= sizeof first && !read_at(file.get(), 0, &first, sizeof first))
    return Error{"it cannot be read; it is being replaced, try again"};
  const auto segment_bytes = segment_bytes_of(first, bytes);
  if (!segment_bytes.ok()) return Error{segment_bytes.error()};
  for (int i = 0; i < kTries; ++i) {
    const std::vector<Place> run = run_of(file.get(), bytes, *segment_bytes);
    if (run.empty()) return Error{kEmpty};
    std::vector<std::byte> out(run.size() * *segment_bytes);
    // The newest first: those before it are complete, and the oldest may be overwritten meanwhile.
    std::size_t left = run.size();
    while (left > 0 && copy(file.get(), run[left - 1], *segment_bytes, out.data() + (left - 1) * *segment_bytes))
      --left;
    if (left == run.size()) continue;
    out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(left * *segment_bytes));
    return out;
  }
  return Error{"it is overwritten faster than it can be read; make recorder_mib larger"};
}

}  // namespace leat::record
