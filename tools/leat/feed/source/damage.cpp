#include "tools/leat/feed/source/damage.h"

#include <algorithm>

namespace leat::tools {
namespace {

constexpr std::uint64_t kNever = UINT64_MAX;

}  // namespace

std::uint64_t Damage::packet(bool key, std::int64_t time) {
  ++number_;
  if (key || runs_.empty())
    runs_.push_back({.first = number_,
                     .damaged_from = kNever,
                     .key_time = key ? time : kNoTime,
                     .before_is_damaged = !runs_.empty() && runs_.back().damaged_from != kNever});
  const bool begins = runs_.back().first == number_;
  sent_.push_back({number_, begins ? time : std::max(sent_.back().latest, time)});
  if (sent_.size() > kKept) sent_.pop_front();
  while (runs_.size() > 1 && runs_[1].first < sent_.front().number) runs_.pop_front();
  return number_;
}

void Damage::flush() {
  runs_.clear();
  sent_.clear();
}

std::size_t Damage::run_of(std::uint64_t packet) const {
  for (std::size_t i = runs_.size(); i-- > 0;)
    if (runs_[i].first <= packet) return i;
  return runs_.size();
}

void Damage::damaged(std::uint64_t packet) {
  const std::size_t of = run_of(packet);
  if (of == runs_.size()) return;
  runs_[of].damaged_from = std::min(runs_[of].damaged_from, packet);
  if (of + 1 < runs_.size()) runs_[of + 1].before_is_damaged = true;
}

bool Damage::reaches(std::uint64_t packet, std::int64_t time) const {
  const std::size_t of = run_of(packet);
  if (of == runs_.size()) return false;
  const Run& run = runs_[of];
  return packet >= run.damaged_from || (run.before_is_damaged && time != kNoTime && time < run.key_time);
}

std::int64_t Damage::known_from(std::uint64_t packet) const {
  const auto sent = std::find_if(sent_.begin(), sent_.end(), [packet](const Sent& s) { return s.number == packet; });
  return sent != sent_.end() ? sent->latest : kNoTime;
}

}  // namespace leat::tools
