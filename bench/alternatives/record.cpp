#include "bench/alternatives/record.h"

#include <time.h>

#include "shm/src/rings/clock.h"

namespace leat::bench::alternatives {

namespace {
constexpr std::int64_t kLookNs = 2'000'000;  // how often whoever waits to begin looks
}

void sleep_until(std::int64_t ns) {
  const timespec at{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

Record::Record(std::uint32_t cameras, std::uint64_t pictures)
    : pictures_(pictures),
      memory_(sizeof(Head) + cameras * pictures * sizeof(Entry) + 2 * shm::kLine),
      head_(memory_.take<Head>()),
      entries_(memory_.take<Entry>(cameras * pictures)) {}

void Record::begin(const Timetable& times) {
  head_->times = times;
  head_->began.store(1);
}

Timetable Record::wait_to_begin() const {
  while (head_->began.load() == 0) sleep_until(shm::monotonic_ns() + kLookNs);
  return head_->times;
}

void Record::done_and_wait() {
  head_->done.fetch_add(1);
  while (head_->ended.load() == 0) sleep_until(shm::monotonic_ns() + kLookNs);
}

Record::Picture Record::at(std::uint32_t camera, std::uint64_t picture) const {
  const Entry& e = entry(camera, picture);
  return {e.fate.load(), e.answered_ns.load()};
}

void Record::answered(std::uint32_t camera, std::uint64_t picture, std::int64_t answered_ns) {
  entry(camera, picture).answered_ns.store(answered_ns);
  decide(camera, picture, Fate::answered);
}

void Record::ran(std::uint32_t camera, std::uint64_t picture, bool good) {
  if (good)
    answered(camera, picture, shm::monotonic_ns());
  else
    decide(camera, picture, Fate::failed);
}

void Record::decide(std::uint32_t camera, std::uint64_t picture, Fate fate) {
  if (entry(camera, picture).fate.exchange(fate) != Fate::open) head_->twice.fetch_add(1);
}

}  // namespace leat::bench::alternatives
