// The log of what changed: who came and went, partitions, refusals, and the sentence itself. Made of the differences of
// two seconds; what was before the first is told by the times that records keep of themselves. Pure.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "tools/leat/top/facts/figures.h"

namespace leat::tools::top {

inline constexpr std::size_t kChangesKept = 2000;

class Changes {
 public:
  // The second is judged; `version`: leatd's, for its first line.
  void take(const Second& second, const std::string& version);
  [[nodiscard]] const std::deque<Change>& lines() const noexcept { return lines_; }

 private:
  struct PartitionWas {
    std::string name;
    PartitionState state = PartitionState::unknown;
    float restarts = kUnknownFigure;
    std::int64_t started_ns = 0;
  };
  void add(std::int64_t at_ns, std::string text, Mark meaning = Mark::well, Key stream = {}, Key partition = {});
  void first(const Second& second, const std::string& version);
  void clients(const Second& second);
  void streams(const Second& second);
  void partitions(const Second& second);
  void marks(const Second& second);
  void served(const Second& second);
  void sort_tail();

  std::deque<Change> lines_;
  bool begun_ = false, gone_ = false;
  std::map<Key, std::string> clients_;
  std::map<Key, std::shared_ptr<const StreamIdentity>> streams_;
  std::map<Key, Mark> marks_;
  std::map<Key, PartitionWas> partitions_;
  std::map<Key, float> refused_;
  State state_ = State::watching;
  float in_force_ = kUnknownFigure, given_up_ = kUnknownFigure;  // changes of what is served
};

}  // namespace leat::tools::top
