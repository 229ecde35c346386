// Frame slots by their words alone: whoever takes a slot sees what its last holder wrote, and nobody holds it twice.
// (In leatd rings carry the slot's number besides, and order what the words order.)
#include <array>
#include <memory>
#include <vector>

#include "shm/src/segments/frame_slots.h"
#include "tests/explore/models/models.h"
#include "tests/explore/models/pixels.h"

namespace leat::explore {
namespace {

struct Slots {
  std::array<shm::SlotWord, 2> words{};
  std::array<std::uint64_t, 2> pixels{}, results{};
  shm::FrameSlots client, daemon;

  void begin(std::uint32_t count) {
    words = {};
    pixels = {};
    results = {};
    client = daemon = shm::FrameSlots(words.data(), count, 5);
  }
};

// Submits in one slot until it has been answered, then in it again; the daemon looks at the words.
Model handed_over(std::uint32_t slots, std::uint32_t frames, int looks) {
  auto s = std::make_shared<Slots>();
  const auto client = [=] {
    std::uint32_t sent = 0;
    for (int look = 0; look < looks; ++look) {
      for (std::uint32_t i = 0; i < slots; ++i)
        if (const auto v = s->client.load(i); v.state == shm::SlotState::released) {
          require(read(s->results[i]) == v.generation + 10u, "a result of another frame");
          require(s->client.free(i, v.generation), "a released slot cannot be freed");
        }
      if (sent == frames) continue;
      if (const auto got = s->client.acquire()) {
        write(s->pixels[got->slot], got->generation + 1u);
        require(s->client.submit(got->slot, got->generation), "a slot being written was taken away");
        ++sent;
      }
    }
  };
  const auto daemon = [=] {
    for (int look = 0; look < looks; ++look)
      for (std::uint32_t i = 0; i < slots; ++i) {
        const auto v = s->daemon.load(i);
        if (v.state != shm::SlotState::submitted) continue;
        require(s->daemon.take(i, v.generation), "a submitted slot cannot be taken");
        require(read(s->pixels[i]) == v.generation + 1u, "pixels of another frame");
        write(s->results[i], v.generation + 10u);
        require(s->daemon.release(i, v.generation), "a slot in use was taken away");
      }
  };
  return {.name = slots == 1 ? "a slot, used again" : "two slots",
          .set_up = [=] { s->begin(slots); },
          .actors = {client, daemon}};
}

// The client takes back what it has submitted and uses the slot for another frame; the daemon, who was told of the
// first, takes the one or the other, never both, and never the first in the place of the second.
Model withdrawn() {
  struct Told : Slots {
    bool withdrawn = false, first = false, second = false;
  };
  auto s = std::make_shared<Told>();
  const auto client = [=] {
    const auto first = s->client.acquire();
    write(s->pixels[0], 1);
    require(first && s->client.submit(0, first->generation), "a fresh slot cannot be submitted");
    if (!s->client.withdraw(0, first->generation)) return;
    s->withdrawn = true;
    require(s->client.abandon(0, first->generation), "a withdrawn slot cannot be abandoned");
    const auto second = s->client.acquire();
    require(second && second->generation == first->generation + 1, "an abandoned slot keeps its generation");
    write(s->pixels[0], 2);
    require(s->client.submit(0, second->generation), "a slot used again cannot be submitted");
  };
  const auto daemon = [=] {
    s->first = s->daemon.take(0, 0);
    if (s->first) require(read(s->pixels[0]) == 1, "pixels of another frame");
    s->second = s->daemon.take(0, 1);
    if (s->second) require(read(s->pixels[0]) == 2, "pixels of another frame");
    if (s->first) require(s->daemon.release(0, 0), "a slot in use was taken away");
  };
  return {.name = "a slot, withdrawn",
          .set_up =
              [=] {
                *s = {};
                s->begin(1);
              },
          .actors = {client, daemon},
          .check =
              [=] {
                require(!(s->first && s->withdrawn), "a slot was taken and withdrawn");
                require(!(s->first && s->second), "a slot was taken twice");
              }};
}

// A client is gone: its slot is recovered, whatever its state, while the daemon still holds it or not, and the next
// client writes there.
Model recovered() {
  auto s = std::make_shared<Slots>();
  return {.name = "a slot, recovered",
          .set_up = [=] { s->begin(1); },
          .actors = {[=] {
                       const auto got = s->client.acquire();
                       write(s->pixels[0], 1);
                       (void)s->client.submit(0, got->generation);
                       ring(0);  // it has ended
                     },
                     [=] {
                       if (s->daemon.take(0, 0)) {
                         require(read(s->pixels[0]) == 1, "pixels of another frame");
                         require(s->daemon.release(0, 0), "a slot in use was taken away");
                       }
                       wait_for_ring(1);
                       s->daemon.recover(0);
                       ring(1);
                     },
                     [=] {
                       wait_for_ring(2);
                       auto next = shm::FrameSlots(s->words.data(), 1, 6);
                       const auto got = next.acquire();
                       if (!got) return;  // it sees an older state yet
                       require(got->generation == 1, "a recovered slot keeps its generation");
                       write(s->pixels[0], 2);
                       require(next.submit(0, got->generation), "a slot being written was taken away");
                     }}};
}

}  // namespace

std::vector<Model> slot_models(Size size) {
  const bool large = size == Size::large;
  return {handed_over(1, large ? 4 : 2, large ? 6 : 4), handed_over(2, large ? 4 : 2, large ? 4 : 3), withdrawn(),
          recovered()};
}

}  // namespace leat::explore
