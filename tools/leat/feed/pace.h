// How far a feeder lags behind, and what it leaves out to stay live. Pure: times come in, and decisions go out, so that
// tests can walk them. When pictures are due says source_clock.h.
#pragma once

#include <cstdint>

namespace leat::tools {

// How long submissions have taken to be completed of late: the least, below which a deadline cannot be reached, and the
// usual. Both are forgotten after two seconds without an answer, so that a stall cannot be believed for ever.
class AnswerTime {
 public:
  void add(std::int64_t now_ns, std::int64_t took_ns) noexcept;
  [[nodiscard]] std::int64_t min_ns(std::int64_t now_ns) const noexcept;
  [[nodiscard]] std::int64_t usual_ns(std::int64_t now_ns) const noexcept;

 private:
  static constexpr std::int64_t kInterval = 1'000'000'000, kNone = INT64_MAX;
  [[nodiscard]] bool fresh(std::int64_t now_ns) const noexcept { return now_ns - since_ < 2 * kInterval; }
  std::int64_t since_ = INT64_MIN / 2, min_ = kNone, min_before_ = kNone, usual_ = 0;
};

// What a feeder that lags behind leaves out. thin: pictures to which no other refers; jump: everything up to a key
// frame that is due about now, where the lag is not made good by decoding alone.
enum class CatchUp : std::uint8_t { nothing, thin, jump };

// How much lag a stream bears before it jumps is drawn anew after each jump: streams that share a processor lag alike,
// and would all give up at once, and leave it idle until their next key frames, where it is enough that some do.
class Liveness {
 public:
  explicit Liveness(std::uint64_t seed = 0) noexcept : state_(seed) { draw(); }
  // lag_ns: how long ago the next picture was due. room_ns: how old a picture may be when it is submitted and still be
  // answered in time, as answers usually go. jump_ends: a jump would leave out all that the source has left, so that
  // whoever catches up at all goes on decoding.
  CatchUp decide(std::int64_t lag_ns, std::int64_t room_ns, bool jump_ends = false) noexcept;
  [[nodiscard]] std::int64_t borne_permille() const noexcept { return borne_permille_; }  // of the room

 private:
  static constexpr std::int64_t kHopelessly = 4;  // times the lag that is borne: it jumps at once
  static constexpr std::int64_t kTrialPictures = 3,
                                kMaxPictures = 12,  // to see whether it catches up; to have done so
      kMaxBeforeEnd = 250;                          // and where nothing follows the jump
  void draw() noexcept;
  bool catches_up(std::int64_t lag_ns, std::int64_t borne_ns, std::int64_t max_pictures) noexcept;
  std::int64_t over_ = 0, first_lag_ns_ = 0;  // decisions since the lag was last borne, and the first lag of those
  std::uint64_t state_;
  std::int64_t borne_permille_ = 0;
  bool thin_ = false;
};

}  // namespace leat::tools
