// Lanes without threads, linked in the place of engine/daemon/clients/lanes.cpp: what is asked for is done when the
// harness says so, what is urgent first, a step at a time. There is one Lanes at a time.
#include "tests/fuzz/stepped/stepped_lanes.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace leat::fuzz {
namespace {

std::deque<std::shared_ptr<daemon::LaneTask>>& waiting() {
  static std::deque<std::shared_ptr<daemon::LaneTask>> tasks;
  return tasks;
}

}  // namespace

std::size_t waiting_in_lanes() { return waiting().size(); }

void work_in_lanes(std::uint32_t steps) {
  for (std::uint32_t i = 0; i < steps && !waiting().empty(); ++i) {
    const auto urgent = std::ranges::find_if(waiting(), [](const auto& task) { return task->urgent; });
    const auto next = urgent == waiting().end() ? waiting().begin() : urgent;
    const std::shared_ptr<daemon::LaneTask> task = std::move(*next);
    waiting().erase(next);
    if (!task->step()) waiting().push_back(task);
  }
}

}  // namespace leat::fuzz

namespace leat::daemon {

struct Lanes::Shared {};

Lanes::Lanes() = default;
Lanes::~Lanes() { fuzz::waiting().clear(); }
void Lanes::ask(std::uint32_t, std::shared_ptr<LaneTask> task) { fuzz::waiting().push_back(std::move(task)); }

}  // namespace leat::daemon
