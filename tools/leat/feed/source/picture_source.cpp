#include "tools/leat/feed/source/picture_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

#include "shm/src/segments/segment_layout.h"

namespace leat::tools {

RawLayout raw_layout(leat_format format, std::uint32_t width, std::uint32_t height) {
  RawLayout layout;
  const auto plane = [&](std::uint32_t rows, std::uint32_t row_bytes) {
    layout.rows[layout.planes] = rows;
    layout.row_bytes[layout.planes++] = row_bytes;
    layout.bytes += std::uint64_t{rows} * row_bytes;
  };
  switch (format) {
    case LEAT_FORMAT_nv12:
      plane(height, width);
      plane(height / 2, width);
      break;
    case LEAT_FORMAT_i420:
      plane(height, width);
      plane(height / 2, width / 2);
      plane(height / 2, width / 2);
      break;
    case LEAT_FORMAT_rgb24:
    case LEAT_FORMAT_bgr24:
      plane(height, width * 3);
      break;
    case LEAT_FORMAT_gray8:
      plane(height, width);
      break;
    case LEAT_FORMAT_tensors:  // no picture
    case LEAT_FORMAT_unknown:
      break;
  }
  return layout;
}

leat_format format_of(const std::string& name) {
#define X(word, value, planes, text) \
  if (name == #word) return LEAT_FORMAT_##word;
  LEAT_FORMATS(X)
#undef X
  return LEAT_FORMAT_unknown;
}

const char* name_of(leat_format format) {
  switch (format) {
#define X(word, value, planes, text) \
  case LEAT_FORMAT_##word:           \
    return #word;
    LEAT_FORMATS(X)
#undef X
    case LEAT_FORMAT_unknown:
      break;
  }
  return "unknown";
}

Result<PictureFormat> parse_y4m_head(const std::string& line) {
  std::istringstream words(line);
  std::string word, chroma = "420";
  PictureFormat format;
  words >> word;
  if (word != "YUV4MPEG2")
    return Error{
        "standard input is not y4m (it does not begin with YUV4MPEG2); for raw pictures give --raw and --size"};
  const auto number = [](const std::string& text, std::size_t from, double& value) {
    const auto parsed = std::from_chars(text.data() + from, text.data() + text.size(), value);
    return parsed.ec == std::errc{} ? static_cast<std::size_t>(parsed.ptr - text.data()) : std::string::npos;
  };
  while (words >> word) {
    double value = 0, divisor = 1;
    if (word[0] == 'C') {
      chroma = word.substr(1);
      continue;
    }
    if (word.starts_with("XCOLORRANGE=")) {
      format.coding.color.range = word == "XCOLORRANGE=FULL"      ? LEAT_COLOR_RANGE_full
                                  : word == "XCOLORRANGE=LIMITED" ? LEAT_COLOR_RANGE_limited
                                                                  : LEAT_COLOR_RANGE_unspecified;
      if (format.coding.color.range != LEAT_COLOR_RANGE_unspecified) format.coding.from = Coding::From::stream;
    }
    if (word[0] != 'W' && word[0] != 'H' && word[0] != 'F') continue;
    const std::size_t end = number(word, 1, value);
    if (end == std::string::npos || value < 0 || value > 1e9)
      return Error{"the y4m head has a bad field '" + word + "'"};
    if (word[0] == 'W' && value <= 16384) format.width = static_cast<std::uint32_t>(value);
    if (word[0] == 'H' && value <= 16384) format.height = static_cast<std::uint32_t>(value);
    if (word[0] == 'F') {
      if (end < word.size() && word[end] == ':') (void)number(word, end + 1, divisor);
      format.rate = divisor > 0 ? value / divisor : 0;
    }
  }
  if (format.width == 0 || format.height == 0) return Error{"the y4m head lacks a width or height from 1 to 16384"};
  // Where colours lie between the pixels differs, and their layout does not; "420p10" and the like have more bits.
  static constexpr const char* kEightBits[] = {"420", "420jpeg", "420mpeg2", "420paldv"};
  if (std::find(std::begin(kEightBits), std::end(kEightBits), chroma) != std::end(kEightBits)) {
    format.format = LEAT_FORMAT_i420;
    if (format.width % 2 != 0 || format.height % 2 != 0)
      return Error{
          "4:2:0 pictures need an even width and height; scale them, e.g. with ffmpeg -vf scale=trunc(iw/2)*2:-2"};
  } else if (chroma == "mono") {
    format.format = LEAT_FORMAT_gray8;
    format.coding.family = Coding::Family::gray;
  } else {
    return Error{"y4m with chroma '" + chroma +
                 "' is not taken; make it 4:2:0 of 8 bits, e.g. with ffmpeg -pix_fmt yuv420p"};
  }
  return format;
}

std::string shown_name(const std::string& name) {
  const std::size_t scheme = name.find("://");
  if (scheme == std::string::npos) return name;
  const std::size_t from = scheme + 3, at = name.substr(0, name.find_first_of("/?#", from)).rfind('@');
  const std::size_t colon = name.find(':', from);
  return at == std::string::npos || colon >= at ? name : name.substr(0, colon) + name.substr(at);
}

bool may_come_back(const std::string& name) {
  struct stat info {};
  if (name.find("://") != std::string::npos) return !name.starts_with("file://");
  return ::stat(name.c_str(), &info) == 0 ? S_ISCHR(info.st_mode) : name.starts_with("/dev/");
}

namespace {

Result<std::unique_ptr<PictureSource>> open_any(const std::string& name, const SourceOptions& options) {
  if (name == "-") return open_pipe(STDIN_FILENO, options);
  if (!options.raw_format.empty()) return open_raw_file(name, options);
  struct stat info {};
  const bool url = name.find("://") != std::string::npos;
  if (!url && ::stat(name.c_str(), &info) != 0) return Error{"'" + name + "' cannot be opened: there is no such file"};
  if (!url && S_ISDIR(info.st_mode)) return Error{"'" + name + "' is a folder; name a video file, a device or a URL"};
  if (!url && S_ISREG(info.st_mode) && info.st_size == 0) return Error{"'" + name + "' is empty; name another file"};
  return options.bitstream ? open_bitstream(name, options) : open_video(name, options);
}

}  // namespace

Result<std::unique_ptr<PictureSource>> open_source(const std::string& name, const SourceOptions& options) {
  auto source = open_any(name, options);
  if (!source.ok()) return source;
  const PictureFormat& format = (*source)->format();
  if (std::max(format.width, format.height) > shm::kMaxDimension)
    return Error{"'" + shown_name(name) + "' has " + std::to_string(format.width) + "x" +
                 std::to_string(format.height) + " pixels, and a picture has at most " +
                 std::to_string(shm::kMaxDimension) + " a side; scale it down"};
  return source;
}

}  // namespace leat::tools
