// A sleeper and who wakes it: a wake that is lost leaves it asleep with work in its ring.
#include <memory>
#include <optional>
#include <vector>

#include "shm/src/client/grant_view.h"
#include "shm/src/rings/doorbell.h"
#include "shm/src/rings/wait_policy.h"
#include "tests/explore/models/messages.h"
#include "tests/explore/models/models.h"

namespace leat::explore {
namespace {

// One peer's way to the sleeper: its ring, the word the sleeper announces itself with, and the bell.
struct Way {
  Ring<4> ring;
  shm::SleepWord word{};
  shm::RingProducer<Message> producer;
  shm::RingConsumer<Message> consumer;
  shm::Waker waker;
  InTurn taken;
  int bell = 0;

  void begin(int number) {
    ring = {};
    word = {};
    producer = ring.producer();
    consumer = ring.consumer();
    waker = shm::Waker(&word);
    taken = {};
    bell = number;
  }
  void send(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) require(producer.push(Message::of(producer.pushed())), "a full ring");
    if (waker.should_ring()) explore::ring(bell);
  }
  bool take() {
    Message m;
    if (!consumer.pop(m)) return false;
    taken.take(m);
    return true;
  }
};

// Takes from all its ways until it has `wanted` messages, and sleeps as the scheduler thread and the workers do.
void serve(std::vector<Way>& ways, std::uint32_t wanted, std::uint32_t yields) {
  shm::Waiter waiter({.mode = shm::WaitMode::yield, .yields = yields});
  std::uint32_t bells = 0, taken = 0;
  for (const Way& way : ways) bells |= 1u << way.bell;
  while (taken < wanted && going()) {
    std::uint32_t now = 0;
    for (Way& way : ways) now += way.take() ? 1 : 0;
    taken += now;
    if (now != 0) {
      waiter.reset();
      continue;
    }
    if (!waiter.should_park(false)) continue;
    const auto announce = [&] {
      for (Way& way : ways) {
        way.consumer.publish();
        shm::announce_sleep(way.word);
      }
    };
    const auto empty = [&] {
      for (const Way& way : ways)
        if (!way.consumer.empty()) return false;
      return true;
    };
    if (shm::may_sleep(announce, empty)) {
      wait_for_ring(bells);
      for (const Way& way : ways) drain(way.bell);
    }
    for (Way& way : ways) shm::announce_awake(way.word);
    waiter.reset();
  }
}

struct Wakers {
  int wakers;
  std::vector<std::uint32_t> batches;  // of each
  std::uint32_t yields = 0;
};

Model parking(std::string name, const Wakers& how) {
  auto ways = std::make_shared<std::vector<Way>>(static_cast<std::size_t>(how.wakers));
  Model m{.name = std::move(name), .set_up = [=] {
            for (std::size_t i = 0; i < ways->size(); ++i) (*ways)[i].begin(static_cast<int>(i));
          }};
  std::uint32_t each = 0;
  for (const std::uint32_t count : how.batches) each += count;
  const auto all = each * static_cast<std::uint32_t>(how.wakers);
  m.actors.push_back([=] { serve(*ways, all, how.yields); });
  for (std::size_t i = 0; i < ways->size(); ++i)
    m.actors.push_back([=] {
      for (const std::uint32_t count : how.batches) (*ways)[i].send(count);
    });
  return m;
}

// A client that waits for its stream's turn: who tells it rings only if it says that it waits, and sleeps.
Model awaited_turn() {
  struct Turn {
    shm::SchedulePage page{};
    shm::OfferCell cell{};
    shm::SleepWord word{};
    std::optional<shm::GrantView> view;
    shm::Waker waker;
    void tell(std::uint32_t granted) {
      shm::Schedule told;
      told.standing = LEAT_STANDING_TURNS;
      told.granted = granted;
      page.write(told);
    }
  };
  auto t = std::make_shared<Turn>();
  const auto client = [=] {
    while (!t->view->wanted(1) && going()) {
      t->view->await(true);
      if (shm::may_sleep([&] { shm::announce_sleep(t->word); }, [&] { return !t->view->news(); })) wait_for_ring(1u);
      shm::announce_awake(t->word);
      drain(0);
      t->view->await(false);
    }
  };
  const auto daemon = [=] {
    t->tell(1);
    if (shm::awaits_turn(t->cell) && t->waker.should_ring()) explore::ring(0);
  };
  return {.name = "an awaited turn",
          .set_up =
              [=] {
                t->page = {};
                t->cell = {};
                t->word = {};
                t->waker = shm::Waker(&t->word);
                t->tell(0);
                t->view.emplace().attach(&t->page, &t->cell);
                (void)t->view->wanted(1);
              },
          .actors = {client, daemon},
          .watched =
              [=](const void* word) {
                return word == &t->page.version || word == &t->cell.awaits || word == &t->word.value;
              }};
}

// An application that waits on the descriptor itself: its word stays set while it does something else, and it looks
// again whenever the descriptor has become readable.
Model armed_descriptor(std::uint32_t messages) {
  auto way = std::make_shared<Way>();
  const auto application = [=] {
    while (way->taken.taken() < messages && going()) {
      if (way->take()) continue;
      shm::announce_awake(way->word);
      drain(way->bell);
      const auto announce = [&] {
        way->consumer.publish();
        shm::announce_sleep(way->word);
      };
      if (shm::may_sleep(announce, [&] { return way->consumer.empty(); })) wait_for_ring(1u << way->bell);
    }
  };
  return {.name = "armed descriptor", .set_up = [=] { way->begin(0); }, .actors = {application, [=] {
                                                                                     for (std::uint32_t i = 0;
                                                                                          i < messages; ++i)
                                                                                       way->send(1);
                                                                                   }}};
}

}  // namespace

std::vector<Model> bell_models(Size size) {
  const bool large = size == Size::large;
  std::vector<Model> all{parking("parking", {.wakers = 1, .batches = {1, 1}}),
                         parking("yielding, then parking", {.wakers = 1, .batches = {2}, .yields = 1}),
                         parking("parking, two wakers", {.wakers = 2, .batches = {1}}), armed_descriptor(large ? 3 : 2),
                         awaited_turn()};
  if (large) all.push_back(parking("parking, three batches", {.wakers = 1, .batches = {1, 1, 1}}));
  return all;
}

}  // namespace leat::explore
