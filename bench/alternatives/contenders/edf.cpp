// Earliest deadline first over the latest picture of each camera; one whose deadline has passed is given up.
#include "bench/alternatives/contenders/server.h"

namespace leat::bench::alternatives {

namespace {

class EarliestDeadline final : public LatestSlots {
 public:
  EarliestDeadline(std::uint32_t cameras, std::int64_t deadline_ns) : LatestSlots(cameras), deadline_ns_(deadline_ns) {}
  std::optional<Waiting> take(std::int64_t now_ns, std::vector<Waiting>& given_up) override {
    std::optional<Waiting>* first = nullptr;
    for (auto& slot : slots_) {
      if (slot && slot->due_ns + deadline_ns_ < now_ns) {
        given_up.push_back(std::move(*slot));
        slot.reset();
      }
      if (slot && (first == nullptr || slot->due_ns < (*first)->due_ns)) first = &slot;
    }
    if (first == nullptr) return std::nullopt;
    return std::exchange(*first, std::nullopt);
  }

 private:
  std::int64_t deadline_ns_;
};

}  // namespace

Result<std::unique_ptr<Running>> start_edf(const Run& run) {
  return start_server(run, [&] { return std::make_unique<EarliestDeadline>(run.cameras, run.deadline_ns); });
}

}  // namespace leat::bench::alternatives
