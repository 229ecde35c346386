// The sentence: which of thirteen states is in force, who is meant, since when, and why. A state comes with the next
// second and goes only after its time, so that it does not flap; figures in it change every five seconds at most.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/leat/top/facts/figures.h"
#include "tools/leat/top/facts/latch.h"
#include "tools/leat/top/facts/reading.h"

namespace leat::tools::top {

inline constexpr std::int64_t kSettleNs = 5 * kSecondNs;  // a better state, or other figures, at most so often

class Health {
 public:
  // Fills in the marks of streams and the sentence. The second is new, later than the one before.
  void judge(const Reading& reading, Second* second);
  // leatd is not there.
  void judge_gone(Second* second);

 private:
  struct StreamMemory {
    Latch failing, dropping, late, silent, near;
    Latch away;                       // its camera has no pictures, or is not served
    std::int64_t known_since_ns = 0;  // its camera
    std::int64_t steady_since_ns = 0, last_came_ns = 0;
    float steady_rate = kUnknownFigure;
    bool quiet = false;  // silent for so long that it is idle
  };
  struct PartitionMemory {
    Latch down, full;
    std::int64_t full_since_ns = 0;
    bool been_up = false;
    float restarts = kUnknownFigure;
    struct Ends {
      float count = 0;
      std::int64_t since_ns = 0;
    } ends;
  };
  void judge_stream(const StreamReading& reading, std::int64_t now, StreamFigures* stream);
  void judge_partition(std::int64_t now, const PartitionFigures& partition);
  static void judge_camera(std::int64_t now, const StreamFigures& stream, StreamMemory* memory);
  void judge_silence(std::int64_t now, const StreamFigures& stream, StreamMemory* memory);
  void judge_all(const Reading& reading, const Second& second);
  [[nodiscard]] bool in_force(State state) const;
  [[nodiscard]] std::int64_t since_of(State state) const;
  void show(const Reading& reading, Second* second);
  [[nodiscard]] std::string text_of(State state, const Reading& reading, const Second& second) const;
  [[nodiscard]] std::string losing_text(State state, const Second& second) const;
  [[nodiscard]] std::string down_text(const Second& second) const;
  [[nodiscard]] std::string silent_text(const Second& second) const;
  [[nodiscard]] std::string well_text(const Reading& reading, const Second& second) const;

  std::map<Key, StreamMemory> streams_;
  std::map<Key, PartitionMemory> partitions_;
  Latch latches_[kStates];
  std::int64_t last_answer_ns_ = 0, stuck_seen_ns_ = 0, last_came_ns_ = 0, last_missed_ns_ = 0, first_ns_ = 0;
  std::int64_t last_down_ns_ = 0, text_at_ns_ = 0, gone_since_ns_ = 0;
  double refused_ = -1, faults_at_down_ = 0, faults_before_ = 0;
  std::string refusal_;
  std::optional<Sentence> shown_;
};

// Why it is so, or what room there is: the second line. Pure.
struct Because {
  std::string word, text;
};
[[nodiscard]] Because because_of(State state, const Reading& reading, const Second& second, double faults_since);

}  // namespace leat::tools::top
