// Raw pictures: a file of them, read straight into the slots, and standard input (raw, or y4m).
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/source/slot_reader.h"

namespace leat::tools {
namespace {

constexpr double kDefaultRate = 30;

// Where the bytes of one picture go in a slot: one part per plane where rows lie tight, one per row otherwise.
void parts_of(const leat_frame& slot, std::uint64_t offset, std::vector<ReadPart>& parts) {
  parts.clear();
  for (std::uint32_t p = 0; p < slot.plane_count; ++p) {
    const bool tight = slot.strides[p] == slot.row_bytes[p];
    const std::uint32_t pieces = tight ? 1 : slot.rows[p];
    const std::uint64_t bytes = tight ? std::uint64_t{slot.rows[p]} * slot.row_bytes[p] : slot.row_bytes[p];
    for (std::uint32_t i = 0; i < pieces; ++i) {
      parts.push_back({.to = slot.planes[p] + std::uint64_t{i} * slot.strides[p], .bytes = bytes, .offset = offset});
      offset += bytes;
    }
  }
}

Result<PictureFormat> raw_format(const SourceOptions& options) {
  PictureFormat format{.format = format_of(options.raw_format), .width = options.width, .height = options.height};
  format.rate = options.rate > 0 ? options.rate : kDefaultRate;
  if (format.format == LEAT_FORMAT_unknown)
    return Error{"'" + options.raw_format + "' is no pixel format; nv12, i420, rgb24, bgr24 and gray8 are"};
  if (format.width == 0 || format.height == 0) return Error{"raw pictures need --size WIDTHxHEIGHT"};
  const bool halved = format.format == LEAT_FORMAT_nv12 || format.format == LEAT_FORMAT_i420;
  if (halved && (format.width % 2 != 0 || format.height % 2 != 0))
    return Error{"nv12 and i420 need an even width and height"};
  format.coding.family = halved                               ? Coding::Family::yuv
                         : format.format == LEAT_FORMAT_gray8 ? Coding::Family::gray
                                                              : Coding::Family::rgb;
  format.coding = overridden(format.coding, options.color);
  return format;
}

class RawFile : public PictureSource {
 public:
  RawFile(int fd, PictureFormat format, std::uint64_t picture_bytes)
      : fd_(fd), format_(format), picture_bytes_(picture_bytes), reader_(fd) {}
  ~RawFile() override { ::close(fd_); }
  const PictureFormat& format() const override { return format_; }

  void use_slots(std::span<const leat_frame> slots) override {
    std::vector<iovec> memory;
    for (const leat_frame& slot : slots) memory.push_back({.iov_base = slot.planes[0], .iov_len = slot.bytes});
    reader_.register_memory(memory);
  }
  Result<std::optional<std::int64_t>> next() override {
    if (at_ >= format_.pictures) return std::optional<std::int64_t>{};
    return std::optional<std::int64_t>(std::llround(static_cast<double>(at_++) * 1e9 / format_.rate));
  }
  [[nodiscard]] std::uint64_t index() const override { return at_ - 1; }
  Result<Passed> jump(std::int64_t time_ns) override {
    const auto wanted = static_cast<std::int64_t>(std::ceil(static_cast<double>(time_ns) * format_.rate / 1e9));
    const auto to = std::clamp(wanted, static_cast<std::int64_t>(at_), static_cast<std::int64_t>(format_.pictures));
    const std::uint64_t passed = static_cast<std::uint64_t>(to) - at_;
    at_ += passed;
    return Passed{passed, passed == 0 ? kNoTime : std::llround(static_cast<double>(at_ - 1) * 1e9 / format_.rate)};
  }
  Result<bool> write(const leat_frame& slot) override {
    parts_of(slot, (at_ - 1) * picture_bytes_, parts_);
    return reader_.read(parts_);
  }
  Status rewind() override {
    at_ = 0;
    return Done{};
  }

 private:
  int fd_;
  PictureFormat format_;
  std::uint64_t picture_bytes_, at_ = 0;
  SlotReader reader_;
  std::vector<ReadPart> parts_;
};

class Pipe : public PictureSource {
 public:
  Pipe(int fd, PictureFormat format, bool y4m, std::function<bool()> give_up)
      : fd_(fd), format_(format), y4m_(y4m), give_up_(std::move(give_up)) {}
  const PictureFormat& format() const override { return format_; }

  [[nodiscard]] std::uint64_t index() const override { return at_ - 1; }
  Result<std::optional<std::int64_t>> next() override {
    if (unwritten_) {  // its bytes are still in the pipe
      unwritten_ = false;
      std::vector<std::uint8_t> nowhere(raw_layout(format_.format, format_.width, format_.height).bytes -
                                        (y4m_ ? 0 : 1));
      auto got = read_whole(nowhere.data(), nowhere.size());
      if (!got.ok()) return Error{got.error()};
      if (!*got) return std::optional<std::int64_t>{};
    }
    if (y4m_) {
      std::string line;
      auto got = read_line(fd_, line, give_up_);
      if (!got.ok()) return Error{got.error()};
      if (!*got) return std::optional<std::int64_t>{};
      if (!line.starts_with("FRAME"))
        return Error{"standard input lost its y4m framing after picture " + std::to_string(at_) +
                     "; was the sender ended?"};
    } else {
      // A picture begins where one more byte comes; it is kept for write().
      auto got = read_whole(&first_byte_, 1);
      if (!got.ok()) return Error{got.error()};
      if (!*got) return std::optional<std::int64_t>{};
    }
    unwritten_ = true;
    return std::optional<std::int64_t>(std::llround(static_cast<double>(at_++) * 1e9 / format_.rate));
  }
  Result<bool> write(const leat_frame& slot) override {
    unwritten_ = false;
    parts_of(slot, 0, parts_);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      auto* to = static_cast<std::uint8_t*>(parts_[i].to);
      std::uint64_t bytes = parts_[i].bytes;
      if (i == 0 && !y4m_) {
        *to++ = first_byte_;
        --bytes;
      }
      auto got = read_whole(to, bytes);
      if (!got.ok() || !*got) return got;
    }
    return true;
  }
  Status rewind() override { return Error{"standard input cannot be played again; leave --loop out"}; }

  // False: the input ended before the first byte of the line.
  static Result<bool> read_line(int fd, std::string& line, const std::function<bool()>& give_up) {
    line.clear();
    for (char c = 0; line.size() < 512;) {
      if (!readable(fd, give_up)) return Error{kGivenUp};
      const ssize_t got = ::read(fd, &c, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error{std::string("reading standard input failed: ") + std::strerror(errno)};
      if (got == 0) return false;
      if (c == '\n') return true;
      line += c;
    }
    return Error{"standard input is not y4m (no line end within 512 bytes); for raw pictures give --raw and --size"};
  }

 private:
  static constexpr const char* kGivenUp = "standard input was given up";
  // False: it was given up before anything came.
  static bool readable(int fd, const std::function<bool()>& give_up) {
    pollfd input{fd, POLLIN, 0};
    while (give_up && ::poll(&input, 1, 100) == 0)
      if (give_up()) return false;
    return true;
  }
  Result<bool> read_whole(std::uint8_t* to, std::uint64_t bytes) const {
    while (bytes > 0) {
      if (!readable(fd_, give_up_)) return Error{kGivenUp};
      const ssize_t got = ::read(fd_, to, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error{std::string("reading standard input failed: ") + std::strerror(errno)};
      if (got == 0) return false;
      to += got;
      bytes -= static_cast<std::uint64_t>(got);
    }
    return true;
  }
  int fd_;
  PictureFormat format_;
  bool y4m_, unwritten_ = false;
  std::function<bool()> give_up_;
  std::uint8_t first_byte_ = 0;
  std::uint64_t at_ = 0;
  std::vector<ReadPart> parts_;
};

}  // namespace

Result<std::unique_ptr<PictureSource>> open_raw_file(const std::string& path, const SourceOptions& options) {
  auto format = raw_format(options);
  if (!format.ok()) return Error{format.error()};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{"'" + path + "' cannot be opened: " + std::strerror(errno)};
  struct stat info {};
  ::fstat(fd, &info);
  const std::uint64_t bytes = raw_layout(format->format, format->width, format->height).bytes;
  format->pictures = static_cast<std::uint64_t>(info.st_size) / bytes;
  if (format->pictures == 0) {
    ::close(fd);
    return Error{"'" + path + "' is smaller than one picture of " + std::to_string(bytes) +
                 " bytes; check --size and --raw"};
  }
  return std::unique_ptr<PictureSource>(new RawFile(fd, *format, bytes));
}

Result<std::unique_ptr<PictureSource>> open_pipe(int fd, const SourceOptions& options) {
  if (!options.raw_format.empty()) {
    auto format = raw_format(options);
    if (!format.ok()) return Error{format.error()};
    return std::unique_ptr<PictureSource>(new Pipe(fd, *format, false, options.give_up));
  }
  std::string line;
  auto got = Pipe::read_line(fd, line, options.give_up);
  if (!got.ok()) return Error{got.error()};
  auto format = parse_y4m_head(line);
  if (!format.ok()) return Error{format.error()};
  if (options.rate > 0) format->rate = options.rate;
  if (format->rate <= 0) format->rate = kDefaultRate;
  format->coding = overridden(format->coding, options.color);
  return std::unique_ptr<PictureSource>(new Pipe(fd, *format, true, options.give_up));
}

}  // namespace leat::tools
