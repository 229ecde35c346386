// A server in one process, as the contenders without leatd that share workers have it: a thread a camera reads a
// picture when it is due and puts it where it waits; a pinned worker a core takes what an Order says and runs the
// models. Order: under the server's lock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/alternatives/contenders/chain.h"
#include "bench/alternatives/contenders/contender.h"

namespace leat::bench::alternatives {

struct Waiting {
  std::uint32_t camera = 0;
  std::uint64_t picture = 0;
  std::int64_t due_ns = 0;
  std::unique_ptr<Buffer> pixels;
};

// What waits, and what is next.
class Order {
 public:
  virtual ~Order() = default;
  // What gives way is moved to `given_up`.
  virtual void put(Waiting picture, std::vector<Waiting>& given_up) = 0;
  virtual std::optional<Waiting> take(std::int64_t now_ns, std::vector<Waiting>& given_up) = 0;
};

// The latest picture of each camera: what Orders with such slots have in common.
class LatestSlots : public Order {
 public:
  explicit LatestSlots(std::uint32_t cameras) : slots_(cameras) {}
  void put(Waiting picture, std::vector<Waiting>& given_up) override;

 protected:
  std::vector<std::optional<Waiting>> slots_;
};

Result<std::unique_ptr<Running>> start_server(const Run& run, const std::function<std::unique_ptr<Order>()>& order);

}  // namespace leat::bench::alternatives
