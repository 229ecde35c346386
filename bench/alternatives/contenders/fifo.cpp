// FIFO: a bounded queue before the workers; when it is full, the oldest gives way.
#include <deque>

#include "bench/alternatives/contenders/server.h"

namespace leat::bench::alternatives {

namespace {

constexpr std::size_t kLength = 8;

class Fifo final : public Order {
 public:
  void put(Waiting picture, std::vector<Waiting>& given_up) override {
    queue_.push_back(std::move(picture));
    if (queue_.size() <= kLength) return;
    given_up.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  std::optional<Waiting> take(std::int64_t, std::vector<Waiting>&) override {
    if (queue_.empty()) return std::nullopt;
    std::optional<Waiting> next = std::move(queue_.front());
    queue_.pop_front();
    return next;
  }

 private:
  std::deque<Waiting> queue_;
};

}  // namespace

Result<std::unique_ptr<Running>> start_fifo(const Run& run) {
  return start_server(run, [] { return std::make_unique<Fifo>(); });
}

}  // namespace leat::bench::alternatives
