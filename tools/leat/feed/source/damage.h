// Which pictures may show an error of the stream: from a damaged picture on every one until the next key picture, since
// each may refer to it. Packets go in in decoding order, pictures are asked about in the order in which they are shown.
// Pure; one thread.
#pragma once

#include <cstdint>
#include <deque>

namespace leat::tools {

class Damage {
 public:
  // Of a packet without one.
  static constexpr std::int64_t kNoTime = INT64_MIN;

  // The next packet for the decoder. Its number, from 1.
  std::uint64_t packet(bool key, std::int64_t time);
  // The packet, or the picture that was decoded from it, has an error.
  void damaged(std::uint64_t packet);
  // What follows refers to nothing before.
  void flush();

  [[nodiscard]] bool reaches(std::uint64_t packet, std::int64_t time) const;
  // All pictures to which this packet's may refer are shown, or decoded to be shown, once one of this time is.
  [[nodiscard]] std::int64_t known_from(std::uint64_t packet) const;

 private:
  static constexpr std::size_t kKept = 64;  // packets: over twice what a decoder holds back
  struct Run {                              // a key picture and what follows it
    std::uint64_t first, damaged_from;
    std::int64_t key_time;
    bool before_is_damaged;  // of use to pictures shown before the key picture, which may refer to both runs
  };
  struct Sent {
    std::uint64_t number;
    std::int64_t latest;  // time of its run's packets so far
  };
  [[nodiscard]] std::size_t run_of(std::uint64_t packet) const;  // runs_.size(): it is forgotten

  std::deque<Run> runs_;
  std::deque<Sent> sent_;
  std::uint64_t number_ = 0;
};

}  // namespace leat::tools
