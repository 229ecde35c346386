// What ordinary users see of the counters (`[daemon] observers = "own"`): a view for each user who looks
// (counters_view.h), with the totals, what is served and on what (modules, partitions, edges), and his own clients,
// streams and record. All observers of a user share one; it is brought up to date ten times a second while one of them
// is connected, and together the views take a tenth of the control thread's time at most: where that is not enough they
// are older.
//
// A view goes a second after its last observer. Its memory is given back on a thread of its own, because whoever has
// mapped it makes that take long; until it is, its user gets no other. So there is one view a user at most, whatever
// becomes of the descriptors that were sent to him.
//
// Thread rule: the control thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "leat/result.hpp"
#include "shm/src/counters/counters_view.h"

namespace leat::daemon {

class ObserverViews {
 public:
  // `users`: accounts there may be, by the index of their records.
  ObserverViews(const shm::CountersWriter& all, std::uint32_t users);
  ~ObserverViews();

  struct Given {
    shm::Fd fd;
    std::uint64_t bytes = 0;
  };
  // A descriptor of the user's view, as it is now. Each is followed by an ended().
  Result<Given> given(std::uint32_t user, std::int64_t now_ns);
  void ended(std::uint32_t user, std::int64_t now_ns);

  void advance(std::int64_t now_ns);
  [[nodiscard]] std::int64_t next_due() const noexcept { return due_ns_; }

 private:
  enum class State : std::uint8_t { none, there, emptying };
  struct Entry {
    State state = State::none;
    std::uint32_t observers = 0;
    std::int64_t due_ns = INT64_MAX;  // of the next look, or without observers of the end
    std::optional<shm::CountersView> view;
  };
  void refresh(Entry& entry, std::uint32_t user);
  void mirror(shm::CountersView& view, shm::RecordKind kind, std::uint32_t index, bool his) const;
  bool his(shm::RecordKind kind, std::uint32_t index, std::uint32_t user) const;
  void let_go(std::uint32_t user);
  void take_back();
  void find_due();
  void empty_views();

  const shm::CountersWriter& all_;
  std::vector<Entry> entries_;  // [user]
  std::int64_t due_ns_ = INT64_MAX, rest_until_ns_ = 0;

  // What is below is shared with the thread that empties.
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::uint32_t> to_empty_, emptied_;  // users; their views are that thread's in between
  bool ending_ = false;
  std::thread thread_;  // from the first view on that goes
};

}  // namespace leat::daemon
