// One producer and one consumer, around the ring and beyond.
#include <algorithm>
#include <memory>
#include <vector>

#include "tests/explore/models/messages.h"
#include "tests/explore/models/models.h"

namespace leat::explore {
namespace {

template <std::uint32_t kCells>
struct Pair {
  Ring<kCells> ring;
  shm::RingProducer<Message> producer;
  shm::RingConsumer<Message> consumer;
  InTurn taken;

  void begin() {
    ring = {};
    producer = ring.producer();
    consumer = ring.consumer();
    taken = {};
  }
  // What is left when both have ended.
  void drain() {
    for (Message m; consumer.pop(m);) taken.take(m);
    require(taken.taken() == producer.pushed(), "a message is lost");
    require(!producer.corrupt(), "the producer takes an honest consumer for a broken one");
  }
};

template <std::uint32_t kCells>
Model one_by_one(std::string name, std::uint32_t pushes, std::uint32_t pops) {
  auto p = std::make_shared<Pair<kCells>>();
  return {.name = std::move(name),
          .set_up = [=] { p->begin(); },
          .actors = {[=] {
                       for (std::uint32_t i = 0; i < pushes; ++i)
                         (void)p->producer.push(Message::of(p->producer.pushed()));
                     },
                     [=] {
                       Message m;
                       for (std::uint32_t i = 0; i < pops; ++i)
                         if (p->consumer.pop(m)) p->taken.take(m);
                     }},
          .check = [=] { p->drain(); }};
}

template <std::uint32_t kCells>
Model in_spans(std::string name, std::uint32_t span, int pushes, int pops) {
  auto p = std::make_shared<Pair<kCells>>();
  return {.name = std::move(name),
          .set_up = [=] { p->begin(); },
          .actors = {[=] {
                       std::vector<Message> items(span);
                       for (int i = 0; i < pushes; ++i) {
                         std::uint32_t number = p->producer.pushed();
                         for (Message& m : items) m = Message::of(number++);
                         (void)p->producer.push(items);
                       }
                     },
                     [=] {
                       std::vector<Message> items(span);
                       for (int i = 0; i < pops; ++i) {
                         if (!p->consumer.at_least(2)) continue;
                         const std::uint32_t count = p->consumer.pop(items);
                         require(count >= 2, "fewer messages than it said");
                         for (std::uint32_t k = 0; k < count; ++k) p->taken.take(items[k]);
                       }
                       p->consumer.publish();
                     }},
          .check = [=] { p->drain(); }};
}

}  // namespace

std::vector<Model> ring_models(Size size) {
  const bool large = size == Size::large;
  return {one_by_one<2>("ring of 2", large ? 8 : 5, large ? 7 : 5),
          one_by_one<8>("ring of 8", large ? 14 : 11, large ? 10 : 6),
          in_spans<4>("ring in spans", 3, large ? 6 : 4, large ? 5 : 4)};
}

}  // namespace leat::explore
