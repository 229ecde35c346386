// What a client's stream that waits for grants knows of its turns, and what it says of its pictures: the client's side
// of its schedule page and of its offer cell. Looking takes no system call, and some 10 ns.
//
// One thread, the submitting one, but news(): that may be asked beside it.
#pragma once

#include <atomic>
#include <cstdint>

#include "leat/leat.h"
#include "shm/src/segments/offer_cell.h"
#include "shm/src/segments/schedule_page.h"

namespace leat::shm {

class GrantView {
 public:
  void attach(SchedulePage* page, OfferCell* cell) noexcept { page_ = page, cell_ = cell; }  // once, before all else

  // A picture of that capture time is at hand, and would be submitted now. Each later one is counted as offered.
  bool wanted(std::int64_t capture_ns) noexcept {
    if (capture_ns > newest_ns_) {
      newest_ns_ = capture_ns;
      atomic_ref(cell_->newest_ns).store(capture_ns, std::memory_order_relaxed);
      atomic_ref(cell_->offered).store(++offered_, std::memory_order_relaxed);
    }
    if (look()) return true;
    atomic_ref(cell_->asks).store(1, std::memory_order_relaxed);
    return false;
  }
  // The turn that there is, or the picture that was wanted, is used: one is submitted.
  void use() noexcept {
    used_ = now_.granted;
    atomic_ref(cell_->asks).store(0, std::memory_order_relaxed);
  }
  const Schedule& refresh() noexcept {
    std::uint64_t seen = seen_.load(std::memory_order_relaxed);
    if (page_->read(seen, now_)) seen_.store(seen, std::memory_order_relaxed);
    return now_;
  }
  // leatd is to ring when it is this stream's turn, or no longer. Before it sleeps on that its thread executes a full
  // fence and looks at news().
  void await(bool on) noexcept { atomic_ref(cell_->awaits).store(on ? 1 : 0, std::memory_order_relaxed); }
  // It was told something since it looked last.
  // What is just being written is none yet: leatd rings when it is there.
  bool news() const noexcept {
    if (page_ == nullptr) return false;
    const std::uint64_t version = atomic_ref(page_->version).load(std::memory_order_relaxed);
    return version % 2 == 0 && version != seen_.load(std::memory_order_relaxed);
  }
  // A picture was not wanted, and is at hand.
  bool asks() const noexcept {
    return cell_ != nullptr && atomic_ref(cell_->asks).load(std::memory_order_relaxed) != 0;
  }

 private:
  bool look() noexcept {
    refresh();
    return now_.standing != LEAT_STANDING_TURNS || now_.granted != used_;
  }

  SchedulePage* page_ = nullptr;
  OfferCell* cell_ = nullptr;
  std::atomic<std::uint64_t> seen_ = 0;
  std::uint32_t used_ = 0;
  std::uint64_t offered_ = 0;
  std::int64_t newest_ns_ = 0;
  Schedule now_;
};

}  // namespace leat::shm
