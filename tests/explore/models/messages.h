// A descriptor that shows whether it came whole, and a small ring of them.
#pragma once

#include <array>
#include <cstdint>

#include "shm/src/rings/ring.h"
#include "tests/explore/explorer.h"

namespace leat::explore {

struct alignas(shm::kLine) Message {
  std::uint32_t sequence = 0;
  std::uint32_t number = 0;
  std::array<std::uint32_t, 14> body{};

  static Message of(std::uint32_t number) {
    Message m;
    m.number = number;
    m.body.fill(~number);
    return m;
  }
  [[nodiscard]] bool whole() const {
    for (const std::uint32_t word : body)
      if (word != ~number) return false;
    return true;
  }
};

template <std::uint32_t kCells>
struct Ring {
  std::array<Message, kCells> cells{};
  shm::IndexLine consumed{};

  shm::RingProducer<Message> producer() { return {cells.data(), kCells, &consumed}; }
  shm::RingConsumer<Message> consumer() { return {cells.data(), kCells, &consumed}; }
};

// What a consumer must get: every message once, whole and in its turn.
class InTurn {
 public:
  void take(const Message& m) {
    require(m.whole(), "a torn message");
    require(m.number == taken_, "a message is lost, doubled or out of its turn");
    ++taken_;
  }
  [[nodiscard]] std::uint32_t taken() const { return taken_; }

 private:
  std::uint32_t taken_ = 0;
};

}  // namespace leat::explore
