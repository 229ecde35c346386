// What became of every picture of a run, in memory that the processes of a contender share with the benchmark, and the
// signals between the two: ready, begin, done, end. Thread rule: any thread and process; each picture has one that
// decides it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "bench/alternatives/pictures.h"
#include "bench/alternatives/timetable.h"
#include "bench/serving/peers.h"

namespace leat::bench::alternatives {

enum class Fate : std::uint8_t {
  open,      // nobody has decided yet; at the end of a run: lost
  answered,  // its answer is in the hands of whoever asked
  passed,    // given up: a newer one took its place, it was too old, or nobody looked at it
  failed,
};

class Record {
 public:
  Record(std::uint32_t cameras, std::uint64_t pictures);

  // ---- the benchmark's side ----
  [[nodiscard]] std::uint32_t ready() const { return head_->ready.load(); }
  void begin(const Timetable& times);
  [[nodiscard]] std::uint32_t done() const { return head_->done.load(); }
  void end() { head_->ended.store(1); }
  struct Picture {
    Fate fate = Fate::open;
    std::int64_t answered_ns = 0;
  };
  [[nodiscard]] Picture at(std::uint32_t camera, std::uint64_t picture) const;
  [[nodiscard]] std::uint64_t decided_twice() const { return head_->twice.load(); }

  // ---- the contenders' side ----
  void say_ready() { head_->ready.fetch_add(1); }
  // Waits for begin().
  [[nodiscard]] Timetable wait_to_begin() const;
  // Behind the last picture, with all its memory still there: waits for end().
  void done_and_wait();
  void pass(std::uint32_t camera, std::uint64_t picture) { decide(camera, picture, Fate::passed); }
  // All from `first` up to but for `end`.
  void pass(std::uint32_t camera, std::uint64_t first, std::uint64_t end) {
    for (; first < end; ++first) pass(camera, first);
  }
  // Of a picture that its film did not give.
  void without(std::uint32_t camera, std::uint64_t picture, Film::Got got) {
    decide(camera, picture, got == Film::Got::failed ? Fate::failed : Fate::passed);
  }
  void answered(std::uint32_t camera, std::uint64_t picture, std::int64_t answered_ns);
  // Answered now, or failed.
  void ran(std::uint32_t camera, std::uint64_t picture, bool good);

 private:
  struct Head {
    std::atomic<std::uint32_t> ready, began, done, ended;
    std::atomic<std::uint64_t> twice;
    Timetable times;
  };
  struct Entry {
    std::atomic<std::int64_t> answered_ns;
    std::atomic<Fate> fate;
  };
  Entry& entry(std::uint32_t camera, std::uint64_t picture) const { return entries_[camera * pictures_ + picture]; }
  void decide(std::uint32_t camera, std::uint64_t picture, Fate fate);

  std::uint64_t pictures_;
  Shared memory_;
  Head* head_;
  Entry* entries_;
};

void sleep_until(std::int64_t ns);  // of CLOCK_MONOTONIC

}  // namespace leat::bench::alternatives
