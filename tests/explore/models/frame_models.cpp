// A frame's whole way, as client, scheduler thread and worker go it: four rings, the slot's words, pixels and a result
// that nobody may touch out of turn. They look again and again, so often and no more; how they sleep is the bells'
// matter.
#include <memory>
#include <vector>

#include "shm/src/segments/frame_slots.h"
#include "tests/explore/models/messages.h"
#include "tests/explore/models/models.h"
#include "tests/explore/models/pixels.h"

namespace leat::explore {
namespace {

struct Hop {
  Ring<2> ring;
  shm::RingProducer<Message> producer;
  shm::RingConsumer<Message> consumer;

  void begin() {
    ring = {};
    producer = ring.producer();
    consumer = ring.consumer();
  }
  void send(std::uint32_t frame) { require(producer.push(Message::of(frame)), "a full ring"); }
};

struct Journey {
  Hop submissions, dispatches, reports, completions;
  shm::SlotWord slot{};
  std::uint64_t pixels = 0, result = 0;
  [[nodiscard]] shm::FrameSlots slots() { return {&slot, 1, 0}; }
};

// One slot for all frames: the next is written where the last was read.
void client(Journey& j, std::uint32_t frames, std::uint32_t looks) {
  shm::FrameSlots slots = j.slots();
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    const auto got = slots.acquire();
    require(got && got->generation == frame, "the slot is not free for the next frame");
    write(j.pixels, frame + 1);
    require(slots.submit(0, frame), "a slot being written was taken away");
    j.submissions.send(frame);
    Message m;
    bool answered = false;
    while (!answered && looks-- != 0) answered = j.completions.consumer.pop(m);
    if (!answered) return;
    require(m.whole() && m.number == frame, "another frame's answer");
    require(read(j.result) == frame + 10, "another frame's result");
    require(slots.free(0, frame), "an answered slot cannot be freed");
  }
  const auto got = slots.acquire();
  require(got && got->generation == frames, "the slot is not free for the next frame");
  write(j.pixels, frames + 1);
}

void scheduler(Journey& j, std::uint32_t looks) {
  shm::FrameSlots slots = j.slots();
  Message m;
  while (looks-- != 0) {
    if (j.submissions.consumer.pop(m)) {
      require(m.whole() && slots.take(0, m.number), "a submitted slot cannot be taken");
      j.dispatches.send(m.number);
    }
    if (j.reports.consumer.pop(m)) {
      require(m.whole() && slots.release(0, m.number), "a slot in use was taken away");
      j.completions.send(m.number);
    }
  }
}

void worker(Journey& j, std::uint32_t looks) {
  Message m;
  while (looks-- != 0) {
    if (!j.dispatches.consumer.pop(m)) continue;
    require(m.whole() && read(j.pixels) == m.number + 1, "another frame's pixels");
    write(j.result, m.number + 10);
    j.reports.send(m.number);
  }
}

}  // namespace

std::vector<Model> frame_models(Size size) {
  const std::uint32_t frames = size == Size::large ? 2 : 1, looks = size == Size::large ? 6 : 4;
  auto j = std::make_shared<Journey>();
  const auto set_up = [=] {
    *j = {};
    for (Hop* hop : {&j->submissions, &j->dispatches, &j->reports, &j->completions}) hop->begin();
  };
  return {{.name = "a frame's way",
           .set_up = set_up,
           .actors = {[=] { client(*j, frames, looks); }, [=] { scheduler(*j, looks); }, [=] { worker(*j, looks); }}}};
}

}  // namespace leat::explore
