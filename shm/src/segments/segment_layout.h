// Where everything lies in the shared segments. One constexpr function per segment computes all offsets; creating,
// checking and mapping use the same numbers. Sizes that matter for addressing are never read from a segment: they
// travel over the control socket and each side computes the layout from them.
//
// Segments (all memfd, all made by the daemon):
//   uplink    one per client; client and daemon write. Submission ring, client's consumer index, client's sleep word,
//             slot words and offer cells of all its streams
//   downlink  one per client; daemon writes, client reads. Completion ring, daemon's consumer index, daemon's sleep
//   word, a schedule page of each stream frames    one per stream; client writes, workers read. Pixels; the daemon
//   itself never looks at it results one per stream; workers write, client reads. One result slot per slot features one
//   per edge between two stages; the workers before it write, those behind it read (feature_slots.h)
// Fixed-width, trivially copyable, host byte order (both ends are on one host); change kLayoutVersion with any of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "leat/frame_format.h"
#include "leat/result_types.h"
#include "shm/src/segments/offer_cell.h"
#include "shm/src/segments/schedule_page.h"

namespace leat::shm {

inline constexpr std::size_t kLine = 64;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint32_t kLayoutVersion = 10;
inline constexpr std::uint64_t kMagic = 0x3174'7661'656cull << 16;  // "leat" and room for the version

// Named maxima of this room.
inline constexpr std::uint32_t kMaxStreamsPerClient = 64;
inline constexpr std::uint32_t kMaxDepth = 64;
inline constexpr std::uint32_t kMaxSlotsPerStream = 96;
inline constexpr std::uint32_t kMaxSlotsPerClient = 512;  // requests in flight or unread, all streams
inline constexpr std::uint32_t kSubmissionRing =
    2048;  // every slot, a cancel for each, and what the consumer has not published yet
inline constexpr std::uint32_t kCompletionRing =
    1024;  // every slot and what the consumer has not published yet: never full for an honest client
inline constexpr std::uint32_t kMaxDimension = 16384;
inline constexpr std::uint32_t kMaxStride = kMaxDimension * 4;
inline constexpr std::uint32_t kMaxItems = 64;
inline constexpr std::uint32_t kMaxResultBytes = 64u << 20;               // of one result slot, head and parts
inline constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{1} << 30;  // of one tensor of a frame slot
inline constexpr std::uint32_t kMaxFeatureRows = 4096;                    // of one edge between two stages

enum class SegmentKind : std::uint32_t {
  uplink = 1,
  downlink = 2,
  frames = 3,
  results = 4,
  counters = 5,
  features = 6
};

// First line of every segment. The maker writes everything else first and publish()es last.
struct alignas(kLine) SegmentHeader {
  std::uint64_t magic;  // kMagic | kLayoutVersion, release-stored by publish(); partner: the acquire in published()
  SegmentKind kind;
  std::uint32_t reserved0;
  std::uint64_t bytes;  // of the whole segment; information only, never used for addressing
  std::uint64_t reserved[5];

  void publish(SegmentKind k, std::uint64_t size) noexcept {
    kind = k;
    bytes = size;
    atomic_ref(magic).store(kMagic | kLayoutVersion, std::memory_order_release);  // partner: published()
  }
  // True when the segment is complete and of this version and kind.
  bool published(SegmentKind k) noexcept {
    return atomic_ref(magic).load(std::memory_order_acquire) == (kMagic | kLayoutVersion) && kind == k;
  }
};
static_assert(sizeof(SegmentHeader) == kLine);

// A ring's consumer index, in a line of its own, written by the consumer only. Free-running.
struct alignas(kLine) IndexLine {
  std::uint32_t value;
  std::uint32_t reserved[15];
};
static_assert(sizeof(IndexLine) == kLine);

// See doorbell.h. Even: awake; odd: asleep. Written by the sleeper only.
struct alignas(kLine) SleepWord {
  std::uint32_t value;
  std::uint32_t reserved[15];
};
static_assert(sizeof(SleepWord) == kLine);

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept { return (value + to - 1) / to * to; }
constexpr bool is_power_of_two(std::uint32_t v) noexcept { return v != 0 && (v & (v - 1)) == 0; }

// ---- uplink and downlink ----
inline constexpr std::uint64_t kSlotWordBytes = 8;  // frame_slots.h; a stream's words have lines of their own
static_assert(kMaxSlotsPerStream * kSlotWordBytes % kLine == 0);

struct LinkLayout {
  std::uint64_t
      index_offset;  // IndexLine of the *opposite* ring's consumer: uplink holds the client's, downlink the daemon's
  std::uint64_t sleep_offset;  // SleepWord of the segment's writer: uplink the client's, downlink the daemon's
  std::uint64_t cells_offset;  // ring of 64-byte descriptors
  std::uint64_t words_offset;  // uplink: SlotWord[kMaxStreamsPerClient][kMaxSlotsPerStream], side by side, and
                               // OfferCell[kMaxStreamsPerClient]; downlink: SchedulePage[kMaxStreamsPerClient]
  std::uint32_t capacity;      // cells, a power of two
  std::uint64_t bytes;

  constexpr std::uint64_t stream_words(std::uint32_t stream) const noexcept {
    return words_offset + std::uint64_t{stream} * kMaxSlotsPerStream * kSlotWordBytes;
  }
  constexpr std::uint64_t offer(std::uint32_t stream) const noexcept {
    return stream_words(kMaxStreamsPerClient) + std::uint64_t{stream} * sizeof(OfferCell);
  }
  constexpr std::uint64_t schedule(std::uint32_t stream) const noexcept {
    return words_offset + std::uint64_t{stream} * sizeof(SchedulePage);
  }
};
constexpr LinkLayout link_layout(std::uint32_t capacity, std::uint64_t words_bytes) noexcept {
  LinkLayout l{};
  l.index_offset = sizeof(SegmentHeader);
  l.sleep_offset = l.index_offset + sizeof(IndexLine);
  l.cells_offset = kPage;  // the cells' pages are touched by the rings alone
  l.capacity = capacity;
  l.words_offset = round_up(l.cells_offset + std::uint64_t{capacity} * kLine, kPage);
  l.bytes = round_up(l.words_offset + words_bytes, kPage);
  return l;
}
constexpr LinkLayout uplink_layout() noexcept {
  return link_layout(kSubmissionRing, kMaxStreamsPerClient * (kMaxSlotsPerStream * kSlotWordBytes + sizeof(OfferCell)));
}
constexpr LinkLayout downlink_layout() noexcept {
  return link_layout(kCompletionRing, kMaxStreamsPerClient * sizeof(SchedulePage));
}
static_assert(is_power_of_two(kSubmissionRing) && is_power_of_two(kCompletionRing));
static_assert(kCompletionRing >= kMaxSlotsPerClient + kCompletionRing / 4);
static_assert(kSubmissionRing >= 2 * kMaxSlotsPerClient + kSubmissionRing / 4);

// ---- a stream's pool of frame and result slots ----
// What a pool is made from: sent by the daemon to client and workers, never read from a segment.
struct PoolSpec {
  std::uint32_t format = 0;  // leat_format
  std::uint32_t width = 0, height = 0;
  std::uint32_t strides[LEAT_MAX_PLANES] = {};  // 0: default_stride()
  std::uint32_t slots = 0;
  std::uint32_t memory = LEAT_SLOT_HOST;  // leat_slot_memory
  std::uint32_t tensor_count = 0;         // format tensors: 1..8
  leat_tensor_shape tensors[LEAT_MAX_TENSORS] = {};
  std::uint32_t result_bytes = 0;  // of one result slot; 0: the head alone. The daemon's to say, never the client's
  std::uint32_t codec = 0;         // leat_codec of a bitstream, whose slots have strides[0] bytes (0: default_room())

  [[nodiscard]] constexpr bool bitstream() const noexcept { return memory == LEAT_SLOT_BITSTREAM; }
};

inline constexpr std::uint32_t kMaxBitstreamSlots = 32;  // a decoder has as many surfaces for pictures to come
inline constexpr std::uint32_t kMaxAccessUnit = 64u << 20;
inline constexpr std::uint64_t kMaxDecodedBytes = 1ull << 30;  // of a stream's slots' pictures, on the device

constexpr std::uint32_t format_of_codec(std::uint32_t codec) noexcept {
  switch (codec) {
#define X(name, value, format, text) \
  case value:                        \
    return LEAT_FORMAT_##format;
    LEAT_CODECS(X)
#undef X
  }
  return LEAT_FORMAT_unknown;
}
// What H.264's and HEVC's levels allow a picture to take at most, and its headers.
constexpr std::uint32_t default_room(std::uint32_t width, std::uint32_t height) noexcept {
  const std::uint32_t room = width * height / 4 * 3 + (64u << 10);
  return room < kMaxAccessUnit ? room : kMaxAccessUnit;
}

struct PlaneShape {
  std::uint32_t rows, row_bytes;
};
constexpr std::uint32_t plane_count(std::uint32_t format) noexcept {
  switch (format) {
#define X(name, value, planes, text) \
  case value:                        \
    return planes;
    LEAT_FORMATS(X)
#undef X
  }
  return 0;
}
constexpr PlaneShape plane_shape(std::uint32_t format, std::uint32_t plane, std::uint32_t width,
                                 std::uint32_t height) noexcept {
  switch (format) {
    case LEAT_FORMAT_nv12:
      return plane == 0 ? PlaneShape{height, width} : PlaneShape{height / 2, width};
    case LEAT_FORMAT_i420:
      return plane == 0 ? PlaneShape{height, width} : PlaneShape{height / 2, width / 2};
    case LEAT_FORMAT_rgb24:
    case LEAT_FORMAT_bgr24:
      return {height, width * 3};
    case LEAT_FORMAT_gray8:
      return {height, width};
    default:
      return {0, 0};
  }
}
constexpr std::uint32_t default_stride(std::uint32_t row_bytes) noexcept {
  return static_cast<std::uint32_t>(round_up(row_bytes, kLine));
}

// Bytes of a dense tensor; 0: an unknown type, too many dimensions, an empty one, or more than kMaxTensorBytes.
constexpr std::uint64_t tensor_bytes(const leat_tensor_shape& t) noexcept {
  std::uint64_t bytes = 0;
#define X(name, value, size, text) \
  if (t.dtype == (value)) bytes = size;
  LEAT_DTYPES(X)
#undef X
  if (t.rank > LEAT_MAX_TENSOR_RANK) return 0;
  for (std::uint32_t d = 0; d < t.rank; ++d) {
    if (t.dims[d] == 0 || bytes > kMaxTensorBytes / t.dims[d]) return 0;
    bytes *= t.dims[d];
  }
  return bytes;
}

struct PoolLayout {
  std::uint32_t planes = 0;
  std::uint32_t strides[LEAT_MAX_PLANES] = {};
  std::uint32_t rows[LEAT_MAX_PLANES] = {};
  std::uint32_t row_bytes[LEAT_MAX_PLANES] = {};
  std::uint64_t plane_offset[LEAT_MAX_PLANES] = {};    // within a slot
  std::uint64_t tensor_offset[LEAT_MAX_TENSORS] = {};  // within a slot
  std::uint64_t frame_bytes = 0;                       // pixels, or tensors, and padding of one frame
  std::uint64_t slots_offset = 0;                      // frames segment: first slot
  std::uint64_t slot_stride = 0;                       // frames segment: from slot to slot, whole pages
  std::uint64_t frames_bytes = 0;                      // size of the frames segment
  std::uint64_t results_offset = 0;                    // results segment: first result slot
  std::uint64_t result_stride = 0;                     // results segment: from slot to slot, whole pages
  std::uint64_t results_bytes = 0;                     // size of the results segment

  constexpr std::uint64_t frame_offset(std::uint32_t slot) const noexcept { return slots_offset + slot * slot_stride; }
  constexpr std::uint64_t result_offset(std::uint32_t slot) const noexcept {
    return results_offset + slot * result_stride;
  }
};

constexpr const char* problem_of_bitstream(const PoolSpec& s) noexcept {
  if (format_of_codec(s.codec) == LEAT_FORMAT_unknown) return "unknown codec";
  if (s.format != format_of_codec(s.codec)) return "a bitstream's format is nv12, of JPEG rgb24";
  if (s.tensor_count != 0) return "the format 'tensors' needs 1..8 tensors, other formats none";
  if (s.width == 0 || s.height == 0 || s.width > kMaxDimension || s.height > kMaxDimension)
    return "width and height must be 1..16384";
  if (s.format == LEAT_FORMAT_nv12 && (s.width % 2 != 0 || s.height % 2 != 0))
    return "nv12 and i420 need an even width and height";
  if (s.slots == 0 || s.slots > kMaxBitstreamSlots) return "a bitstream's slots must be 1..32";
  if (std::uint64_t{s.slots} * s.width * s.height * 3 > kMaxDecodedBytes)
    return "a bitstream's pictures take more than 1 GiB on the device; open it with fewer slots";
  if (s.result_bytes > kMaxResultBytes) return "a result slot has at most 64 MiB";
  if (s.strides[0] > kMaxAccessUnit || s.strides[1] != 0 || s.strides[2] != 0)
    return "a bitstream's slots have at most 64 MiB, said in strides[0] alone";
  return nullptr;
}

// nullptr: a pool can be made of it. Otherwise one line that says what is wrong.
constexpr const char* problem(const PoolSpec& s) noexcept {
  if (plane_count(s.format) == 0) return "unknown pixel format";
  if (s.memory != LEAT_SLOT_HOST && !s.bitstream()) return "slots hold pixels or access units, not device memory";
  if (s.bitstream() != (s.codec != 0)) return "a codec is given for pixels, or none for a bitstream";
  if (s.bitstream()) return problem_of_bitstream(s);
  const bool tensors = s.format == LEAT_FORMAT_tensors;
  if (tensors != (s.tensor_count != 0) || s.tensor_count > LEAT_MAX_TENSORS)
    return "the format 'tensors' needs 1..8 tensors, other formats none";
  for (std::uint32_t i = 0; i < s.tensor_count; ++i)
    if (tensor_bytes(s.tensors[i]) == 0)
      return "a tensor has an unknown type, more than 8 dimensions, an empty one, or more than 1 GiB";
  const bool sized = !tensors || s.width != 0 || s.height != 0;
  if (sized && (s.width == 0 || s.height == 0 || s.width > kMaxDimension || s.height > kMaxDimension))
    return "width and height must be 1..16384";
  const bool subsampled = s.format == LEAT_FORMAT_nv12 || s.format == LEAT_FORMAT_i420;
  if (subsampled && (s.width % 2 != 0 || s.height % 2 != 0)) return "nv12 and i420 need an even width and height";
  if (s.slots == 0 || s.slots > kMaxSlotsPerStream) return "slots must be 1..96";
  if (s.result_bytes > kMaxResultBytes) return "a result slot has at most 64 MiB";
  for (std::uint32_t p = 0; p < LEAT_MAX_PLANES; ++p) {
    if ((tensors || p >= plane_count(s.format)) && s.strides[p] != 0)
      return "a stride is given for a plane the format does not have";
    if (!tensors && p < plane_count(s.format) && s.strides[p] != 0 &&
        (s.strides[p] < plane_shape(s.format, p, s.width, s.height).row_bytes || s.strides[p] > kMaxStride))
      return "a stride is shorter than its row or longer than 65536 bytes";
  }
  return nullptr;
}

// Precondition: problem(spec) == nullptr.
constexpr PoolLayout pool_layout(const PoolSpec& s) noexcept {
  PoolLayout l{};
  l.planes = s.bitstream() ? 1 : plane_count(s.format);
  std::uint64_t at = 0;
  if (s.bitstream()) {
    l.rows[0] = 1;
    l.strides[0] = l.row_bytes[0] = s.strides[0] != 0 ? s.strides[0] : default_room(s.width, s.height);
    at = round_up(l.strides[0], kLine);
  }
  for (std::uint32_t i = 0; i < s.tensor_count; ++i) {
    l.tensor_offset[i] = at;
    at = round_up(at + tensor_bytes(s.tensors[i]), kLine);
  }
  for (std::uint32_t p = 0; p < (s.tensor_count != 0 || s.bitstream() ? 0 : l.planes); ++p) {
    const PlaneShape shape = plane_shape(s.format, p, s.width, s.height);
    l.rows[p] = shape.rows;
    l.row_bytes[p] = shape.row_bytes;
    l.strides[p] = s.strides[p] != 0 ? s.strides[p] : default_stride(shape.row_bytes);
    l.plane_offset[p] = at;
    at = round_up(at + std::uint64_t{l.strides[p]} * shape.rows, kLine);
  }
  l.frame_bytes = at;
  l.slots_offset = kPage;
  l.slot_stride = round_up(l.frame_bytes, kPage);
  l.frames_bytes = l.slots_offset + s.slots * l.slot_stride;
  l.results_offset = kPage;
  l.result_stride = round_up(s.result_bytes > sizeof(leat_result) ? s.result_bytes : sizeof(leat_result), kPage);
  l.results_bytes = l.results_offset + s.slots * l.result_stride;
  return l;
}

static_assert(pool_layout({LEAT_FORMAT_nv12, 1280, 720, {}, 4, LEAT_SLOT_HOST}).frame_bytes == 1280 * 720 * 3 / 2);
static_assert(pool_layout({LEAT_FORMAT_gray8, 100, 10, {}, 1, LEAT_SLOT_HOST}).strides[0] == 128);
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free &&
              std::atomic_ref<std::uint64_t>::is_always_lock_free);

}  // namespace leat::shm
