// Where pictures come from: a video file, a device or a URL (libavformat), a raw file, standard input. A source makes a
// picture ready, and then writes it into a frame slot: that is the only write of the frame.
// Thread rule: one thread per source. Errors: one line of text, with what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "leat/leat.h"
#include "leat/result.hpp"
#include "tools/leat/feed/source/coding.h"
#include "tools/leat/feed/source/frame_time.h"

namespace leat::tools {

struct PictureFormat {
  leat_format format = LEAT_FORMAT_unknown;
  leat_codec codec = LEAT_CODEC_none;  // of access units: `format` is what they become
  std::uint32_t width = 0, height = 0;
  double rate = 0;             // pictures per second; 0: unknown
  bool live = false;           // a device or a live stream: it keeps its own time and cannot be rewound
  std::uint64_t pictures = 0;  // in all; 0: unknown
  Coding coding = {};          // of the pictures in the source, which `format` may not have

  // Of the pixels in the slot.
  [[nodiscard]] shm::Color color() const noexcept { return shm::has_range(format) ? coding.color : shm::Color{}; }
  // Whether slots of one stream can hold pictures of both.
  [[nodiscard]] bool same_slots(const PictureFormat& other) const noexcept {
    return format == other.format && codec == other.codec && width == other.width && height == other.height;
  }
};

class PictureSource {
 public:
  virtual ~PictureSource() = default;
  // Once next() has made a picture ready, that picture's: size, pixel format and colors may change between pictures.
  [[nodiscard]] virtual const PictureFormat& format() const = 0;
  // Told of each stream before its first picture: every slot that it has, for sources that register their memory.
  virtual void use_slots(std::span<const leat_frame> slots) { (void)slots; }
  // Waits for the next picture's data where they have yet to come. What is wrong with them next() says.
  virtual void await() {}
  // Of a live source: when what it read last was there (CLOCK_MONOTONIC), and for how long it has waited since it made
  // a picture ready.
  [[nodiscard]] virtual FrameArrival arrival() const { return {}; }
  // Makes the next picture ready. Its time in nanoseconds since the first one as the source says it, which may step
  // (source_clock.h), kNoTime, or nothing at the end. A picture made ready before that nobody wrote is left out.
  virtual Result<std::optional<std::int64_t>> next() = 0;
  // Which picture next() made ready, counted from the source's beginning, those left out too. Times have no part in it.
  [[nodiscard]] virtual std::uint64_t index() const = 0;
  // Writes the picture made ready by next() into `slot`, once. False: the source ended inside the picture.
  virtual Result<bool> write(const leat_frame& slot) = 0;
  // Whether the picture made ready may show an error: its decoder concealed one in it, or in one that it may refer to.
  [[nodiscard]] virtual bool damaged() const { return false; }
  // Of the access unit made ready; 0: it is a picture.
  [[nodiscard]] virtual std::uint32_t unit_bytes() const { return 0; }
  virtual Status rewind() = 0;

  // ---- for a feeder that lags behind; a source to which every picture is as cheap as none does nothing ----
  // From now on pictures to which no other refers are left undecoded, or are no longer.
  virtual void thin_out(bool on) { (void)on; }
  // Passes over pictures, undecoded, up to the first not before `time_ns` at which decoding can begin; where times step
  // on the way, or a live source has no more yet, up to the first one.
  struct Passed {
    std::uint64_t pictures = 0;      // since the picture made ready last
    std::int64_t last_ns = kNoTime;  // time of the last of them
  };
  virtual Result<Passed> jump(std::int64_t time_ns) {
    (void)time_ns;
    return Passed{};
  }
  // Whether a jump there is known to pass over all that is left.
  [[nodiscard]] virtual bool jump_ends(std::int64_t time_ns) const {
    (void)time_ns;
    return false;
  }
};

struct SourceOptions {
  std::string raw_format;               // "": not raw; "nv12", "i420", "rgb24", "bgr24", "gray8"
  std::uint32_t width = 0, height = 0;  // of raw pictures
  shm::Color color;                     // of all pictures, whatever the source says of itself; unspecified: as it says
  double rate = 0;                      // pictures per second of raw and y4m pictures; 0: as the head says, else 30
  bool as_stored = false;               // pictures and videos are not turned as their files say (upright.h)
  std::string transport = "tcp";        // of RTSP: "tcp", "udp"
  bool bitstream = false;               // access units, which leatd decodes
  std::string decoder = "cpu";          // "vaapi", "cuda"; "auto": the first that is there, else "cpu"
  // Asked ten times a second and more while the source waits for what has yet to come, on its thread, also while it
  // opens: true: it gives up, with an error. Empty: it waits as long as it takes.
  std::function<bool()> give_up;
  // Told in one line of what was done in another way than it was asked for. Empty: nobody is.
  std::function<void(const std::string&)> say;
};

// `name`: a path, a device (/dev/video0), a URL, or "-" for standard input (y4m, or raw when raw_format is given).
Result<std::unique_ptr<PictureSource>> open_source(const std::string& name, const SourceOptions& options);

// As it may be shown to others: a URL without its password.
[[nodiscard]] std::string shown_name(const std::string& name);
// Whether it is a device or a URL: what may come back when it has broken off, other than a file.
[[nodiscard]] bool may_come_back(const std::string& name);

// The parts open_source chooses from.
Result<std::unique_ptr<PictureSource>> open_video(const std::string& name, const SourceOptions& options);
Result<std::unique_ptr<PictureSource>> open_bitstream(const std::string& name, const SourceOptions& options);
Result<std::unique_ptr<PictureSource>> open_raw_file(const std::string& path, const SourceOptions& options);
Result<std::unique_ptr<PictureSource>> open_pipe(int fd, const SourceOptions& options);

// ---- raw pictures: where the bytes of each plane are, without padding ----
struct RawLayout {
  std::uint32_t planes = 0;
  std::uint32_t rows[LEAT_MAX_PLANES] = {};
  std::uint32_t row_bytes[LEAT_MAX_PLANES] = {};
  std::uint64_t bytes = 0;  // of one picture
};
[[nodiscard]] RawLayout raw_layout(leat_format format, std::uint32_t width, std::uint32_t height);
[[nodiscard]] leat_format format_of(const std::string& name);  // LEAT_FORMAT_unknown: no such format
[[nodiscard]] const char* name_of(leat_format format);

// The head of a y4m stream, "YUV4MPEG2 W1280 H720 F30:1 C420jpeg XCOLORRANGE=FULL ...". Only 8-bit 4:2:0 and mono are
// taken.
Result<PictureFormat> parse_y4m_head(const std::string& line);

}  // namespace leat::tools
