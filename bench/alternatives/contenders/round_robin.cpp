// Round robin: the latest picture of each camera waits, the cameras are served in turn.
#include "bench/alternatives/contenders/server.h"

namespace leat::bench::alternatives {

namespace {

class RoundRobin final : public LatestSlots {
 public:
  using LatestSlots::LatestSlots;
  std::optional<Waiting> take(std::int64_t, std::vector<Waiting>&) override {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      std::optional<Waiting>& slot = slots_[next_++ % slots_.size()];
      if (slot) return std::exchange(slot, std::nullopt);
    }
    return std::nullopt;
  }

 private:
  std::size_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<Running>> start_round_robin(const Run& run) {
  return start_server(run, [&] { return std::make_unique<RoundRobin>(run.cameras); });
}

}  // namespace leat::bench::alternatives
