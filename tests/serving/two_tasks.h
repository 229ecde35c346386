// For tests of a leatd with coordinated streams: a client of the application "boxes" with two tasks in one group.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "engine/core/streams/group.h"
#include "engine/core/streams/strides.h"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {

inline constexpr std::int64_t kTasksPeriod = 16'666'667;
inline constexpr std::uint32_t kTasksSlaPpm = 60'000;

// A client with two tasks, one of which loses thirty times as much a frame.
struct TwoTasks {
  static constexpr double kSlopes[] = {0.0004, 0.012};
  TwoTasks(const Leatd& leatd, std::int64_t start) : phase(start) {
    auto connected = Client::connect(leatd.socket(), "tasks");
    EXPECT_TRUE(connected.ok()) << connected.error();
    client = std::make_unique<Client>(std::move(*connected));
    for (Stream& each : stream) {
      auto opened = open(7);
      EXPECT_TRUE(opened.ok()) << opened.error();
      each = std::move(*opened);
    }
  }
  [[nodiscard]] Result<Stream> open(std::uint32_t group) {
    StreamOptions o;
    o.application = "boxes";
    o.format = LEAT_FORMAT_gray8;
    o.width = 64;
    o.height = 16;
    o.depth = 4;
    o.period_ns = kTasksPeriod;
    o.sla_drop_ppm = kTasksSlaPpm;
    o.task_group = group;
    return client->open_stream(o);
  }
  static double lost(std::size_t task, std::uint64_t stride) {
    static const core::streams::StrideCurve curve(0.006, 3);
    return kSlopes[task] * curve.at(static_cast<std::uint32_t>(std::min<std::uint64_t>(stride, 255)));
  }
  void take_frame() {
    const std::uint64_t number = frame++;
    const std::int64_t capture = phase + static_cast<std::int64_t>(number) * kTasksPeriod;
    for (std::size_t t = 0; t < 2; ++t) {
      if (leat_should_submit(stream[t].raw(), capture) == 0) continue;
      auto slot = stream[t].acquire();
      if (!slot) continue;
      leat_submit_options options{};
      options.capture_ns = capture;
      options.cookie = number << 1 | t;
      (void)slot->submit(options);
    }
  }
  void go_on(std::int64_t now) {
    while (phase + static_cast<std::int64_t>(frame) * kTasksPeriod <= now) take_frame();
    take_answers();
  }
  void take_answers() {
    while (auto answer = client->next_answer()) {
      if (answer->result() == nullptr) continue;
      const std::uint64_t number = answer->raw().cookie >> 1;
      const std::size_t t = answer->raw().cookie & 1;
      slots.push_back({number, t, answer->raw().answered_ns});
      if (source[t] && number > *source[t])
        (void)leat_observe(stream[t].raw(),
                           static_cast<std::uint32_t>(std::min<std::uint64_t>(number - *source[t], 255)),
                           std::min(1.0, 0.05 + lost(t, number - *source[t])));
      if (!source[t] || number > *source[t]) source[t] = number;
    }
  }
  struct Slot {
    std::uint64_t frame;
    std::size_t task;
    std::int64_t answered;
  };
  // What both lose together, in the mean over the frames behind `from`.
  [[nodiscard]] double loss(const std::vector<Slot>& by, std::uint64_t from) const {
    double sum = 0;
    std::uint64_t shown = 0;
    for (std::size_t t = 0; t < 2; ++t) {
      std::optional<std::uint64_t> of;
      std::uint64_t next = 0;
      for (const Slot& s : by) {
        if (s.task != t) continue;
        const auto until = static_cast<std::uint64_t>((s.answered - phase) / kTasksPeriod);
        for (; of && next <= until; ++next)
          if (next > from) sum += lost(t, next - *of), ++shown;
        of = s.frame;
        next = until + 1;
      }
    }
    return 2 * sum / static_cast<double>(shown);
  }
  std::int64_t phase;
  std::unique_ptr<Client> client;
  Stream stream[2];
  std::uint64_t frame = 0;
  std::optional<std::uint64_t> source[2];
  std::vector<Slot> slots;  // answers in turn
};

// What its turns from some frame on were, against the program alone on the same slots, and against one task after the
// other: turns of the quick task for one of the other, and what both lose.
struct Turns {
  double ratio = 0, program_ratio = 0, loss = 1, program_loss = 0, alternate_loss = 0;
  // A hundred turns, by slopes that are estimated from as many answers. What is lost is nearly the same from 2 to 10.
  [[nodiscard]] bool good() const {
    return ratio > 1.2 && loss < 1.3 * program_loss && loss < 0.92 * alternate_loss &&
           loss < 2e-6 * kTasksSlaPpm;  // the mean of both is within it
  }
};

inline Turns turns_of(const TwoTasks& tasks, std::uint64_t from) {
  std::vector<TwoTasks::Slot> slots;
  for (const auto& s : tasks.slots)
    if (s.frame > from && (slots.empty() || s.frame > slots.back().frame + 1)) slots.push_back(s);  // a probe's are one
  if (slots.size() <= 20) return {};                                                                // they say nothing
  // The same slots as the program alone hands them out, knowing the slopes; and one after the other.
  const auto apart = static_cast<std::uint32_t>((slots.back().frame - slots.front().frame) / (slots.size() - 1));
  auto program = slots, turns = slots;
  core::streams::GroupPlanner planner(core::streams::StrideCurve(0.006, 3));
  std::uint64_t asked[2] = {slots.front().frame, slots.front().frame};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    core::streams::GroupTask both[2];
    for (std::size_t t = 0; t < 2; ++t)
      both[t] = {.slope = TwoTasks::kSlopes[t],
                 .latency = apart,
                 .age = static_cast<std::uint32_t>(program[i].frame - asked[t])};
    program[i].task = planner.next(both, std::min(core::streams::kGroupHorizon, 6 * apart));
    asked[program[i].task] = program[i].frame;
    turns[i].task = i % 2;
  }
  const auto ratio = [](const std::vector<TwoTasks::Slot>& all) {
    const auto quick = static_cast<double>(std::count_if(all.begin(), all.end(), [](auto& s) { return s.task == 1; }));
    return quick / (static_cast<double>(all.size()) - quick);
  };
  const Turns out{ratio(slots), ratio(program), tasks.loss(slots, from + 50), tasks.loss(program, from + 50),
                  tasks.loss(turns, from + 50)};
  std::printf("%zu slots, every %u frames: %.2f to 1, by the program %.2f; both lose %.4f, %.4f, in turns %.4f\n",
              slots.size(), apart, out.ratio, out.program_ratio, out.loss, out.program_loss, out.alternate_loss);
  return out;
}

}  // namespace leat::test
