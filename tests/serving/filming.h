// Clients with cameras of 60 frames a second and coordinated streams, by the clock and in the simulator.
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/policy/policy_settings.h"
#include "engine/core/streams/strides.h"
#include "engine/sim/shown.h"
#include "engine/sim/simulator.h"
#include "leat/look_back.hpp"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {

inline constexpr std::int64_t kPeriod = 16'666'667, kSecond = 1'000'000'000, kMs = 1'000'000;
inline constexpr double kFlicker = 0.05, kSlope = 0.004, kSla = 0.06;
inline constexpr std::uint32_t kPartitions = 2, kBatch = 16;
inline constexpr int kAttempts = 4;  // cameras go by the clock, and a host is not itself at all times

inline double lost(std::uint32_t stride) {
  static const core::streams::StrideCurve curve(0.006, 3);
  return kSlope * curve.at(stride);
}

// An application of one module on all partitions.
inline std::string application(const std::string& name) {
  std::string latency;
  for (std::uint32_t b = 1; b <= kBatch; ++b) latency += (b == 1 ? "" : ", ") + std::to_string(6 + 1.5 * b);
  return "[[application]]\nname = \"" + name + R"("
slo_ms = 150
  [[application.module]]
  name = "detect"
  executor = "emulated"
  batch = 16
  latency_ms = [)" +
         latency + "]\n";
}

inline std::string config() {
  return "[[partition]]\nname = \"p\"\nkind = \"emulated\"\ncount = " + std::to_string(kPartitions) + "\n" +
         application("boxes");
}

inline void sleep_until(std::int64_t at) {
  const timespec t{at / kSecond, at % kSecond};
  (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

enum class Manner { honest, liar, stops, dies };

inline StreamOptions options_of(bool coordinated) {
  StreamOptions o;
  o.application = "boxes";
  o.format = LEAT_FORMAT_gray8;
  o.width = 64;
  o.height = 16;
  o.depth = 4;
  o.period_ns = coordinated ? kPeriod : 0;
  o.sla_drop_ppm = coordinated ? static_cast<std::uint32_t>(kSla * 1e6) : 0;
  return o;
}

// A client with a camera.
struct Filming {
  Filming(const Leatd& leatd, std::uint32_t number, bool coordinated, std::int64_t start, Manner how = Manner::honest)
      : manner(how),
        phase(start + number * 1'234'567 % kPeriod),
        shown({.phase_ns = phase,
               .period_ns = kPeriod,
               .sla_drop = kSla,
               .from_ns = start + 3 * kSecond,
               .extra = [](std::uint64_t, std::uint32_t s) { return lost(s); }}) {
    auto connected = Client::connect(leatd.socket(), "camera");
    EXPECT_TRUE(connected.ok()) << connected.error();
    client = std::make_unique<Client>(std::move(*connected));
    auto opened = client->open_stream(options_of(coordinated));
    EXPECT_TRUE(opened.ok()) << opened.error();
    stream = std::move(*opened);
  }
  [[nodiscard]] std::int64_t next() const { return phase + static_cast<std::int64_t>(frame) * kPeriod; }
  void take_frame() {
    const std::uint64_t number = frame++;
    const std::int64_t capture = phase + static_cast<std::int64_t>(number) * kPeriod;
    if (leat_should_submit(stream.raw(), capture) == 0) return;
    auto slot = stream.acquire();
    if (!slot) return;
    leat_submit_options options{};
    options.capture_ns = capture;
    options.cookie = number;
    if (slot->submit(options) == LEAT_ERROR_ok) ++sent;
  }
  void take_answers() {
    while (auto answer = client->next_answer()) {
      if (answer->result() == nullptr) continue;
      ++answers;
      const std::uint64_t number = answer->raw().cookie;
      shown.answer(answer->raw().answered_ns, number);
      if (source && number <= *source) continue;
      const auto drop = [&](std::uint32_t stride) {
        return std::min(1.0, manner == Manner::liar ? 0.1 * stride : kFlicker + lost(stride));
      };
      if (source) {
        const auto stride = static_cast<std::uint32_t>(std::min<std::uint64_t>(number - *source, 255));
        (void)leat_observe(stream.raw(), stride, drop(stride));
      }
      if (const auto from = look.answered(number)) {
        const auto stride = static_cast<std::uint32_t>(number - *from);
        (void)leat_observe_far(stream.raw(), stride, drop(stride));
      }
      source = number;
    }
  }
  [[nodiscard]] leat_schedule schedule() const {
    leat_schedule s{};
    EXPECT_EQ(leat_schedule_of(stream.raw(), &s), LEAT_ERROR_ok);
    return s;
  }
  Manner manner;
  std::int64_t phase;
  sim::Shown shown;
  std::unique_ptr<Client> client;
  Stream stream;
  std::uint64_t frame = 0, sent = 0, answers = 0;
  std::optional<std::uint64_t> source;
  LookBack look;
};

struct Seen {
  double kept = 0, detections_per_s = 0;
  double late = 0;  // of the moments at which this process was to take a frame: a period late, or more
  // Else the host kept the processes from their cores, and what cameras see by the clock says nothing of leatd.
  [[nodiscard]] bool host_was_itself() const { return late <= 0.02; }
};
inline constexpr const char* kHostWasNotItself = "the host kept this test from its cores in every attempt";

// All cameras, each in its own time, on one thread.
// also(t): whatever else is to be done by then.
inline Seen film(
    std::vector<std::unique_ptr<Filming>>& cameras, std::int64_t start, double seconds,
    const std::function<void(std::int64_t)>& also = [](std::int64_t) {}) {
  const std::int64_t end = start + static_cast<std::int64_t>(seconds * 1e9);
  std::uint64_t moments = 0, late = 0;
  for (;;) {
    Filming* first = nullptr;
    for (auto& c : cameras) {
      if (c->client == nullptr || (c->manner == Manner::stops && c->next() > start + 4 * kSecond)) continue;
      if (c->manner == Manner::dies && c->next() > start + 4 * kSecond) {
        c->stream = Stream();
        c->client.reset();
        continue;
      }
      if (first == nullptr || c->next() < first->next()) first = c.get();
    }
    if (first == nullptr || first->next() >= end) break;
    sleep_until(first->next());
    ++moments;
    late += leat_now_ns() - first->next() > kPeriod ? 1 : 0;
    also(first->next());
    first->take_frame();
    for (auto& c : cameras)
      if (c->client != nullptr) c->take_answers();
  }
  double kept = 0, all = 0, answers = 0;
  for (auto& c : cameras) {
    if (c->manner != Manner::honest) continue;
    c->shown.show(end);
    kept += c->shown.kept();
    all += c->shown.seconds();
    answers += static_cast<double>(c->answers);
  }
  return {all == 0 ? 0 : kept / all, answers / seconds,
          static_cast<double>(late) / static_cast<double>(std::max<std::uint64_t>(moments, 1))};
}

inline Seen simulated(std::uint32_t clients, double seconds) {
  sim::Scenario s;
  s.topology.partitions.resize(kPartitions);
  core::RouteSpec route{.module = 0, .batch = kBatch, .stages = {core::StageSpec{}}};
  for (std::uint32_t b = 1; b <= kBatch; ++b) {
    route.stages[0].latency.p50_ns.push_back(6 * kMs + b * 3 * kMs / 2);
    route.stages[0].latency.p99_ns.push_back(6 * kMs + b * 3 * kMs / 2);
  }
  for (std::uint32_t p = 0; p < kPartitions; ++p) route.stages[0].pool.push_back(p);
  s.topology.routes.push_back(route);
  s.topology.modules.push_back({.application = 0, .routes = {0}});
  s.topology.applications.push_back({.slo_ns = 150 * kMs, .modules = {0}});
  EXPECT_TRUE(core::preset("leat", s.policy));
  s.limits.coordinated = 64;
  s.streams.clear();
  s.cameras_until_ns = static_cast<std::int64_t>(seconds * 1e9);
  std::vector<sim::Shown> shown;
  for (std::uint32_t i = 0; i < clients; ++i) {
    s.streams.push_back(
        {.depth = 4, .supersede = core::Supersede::latest, .terms = {.sla_drop = kSla, .period_ns = kPeriod}});
    const std::int64_t phase = i * 1'234'567 % kPeriod;
    s.cameras.push_back({.stream = i, .phase_ns = phase, .seen = [](std::uint64_t, std::uint32_t stride) {
                           return kFlicker + lost(stride);
                         }});
    shown.emplace_back(sim::Shown::Film{.phase_ns = phase,
                                        .period_ns = kPeriod,
                                        .sla_drop = kSla,
                                        .from_ns = 3 * kSecond,
                                        .extra = [](std::uint64_t, std::uint32_t stride) { return lost(stride); }});
  }
  std::uint64_t answers = 0;
  s.on_shown = [&](const sim::ShownEvent& e) {
    ++answers;
    shown[e.camera].answer(e.at_ns, e.frame);
  };
  (void)sim::run(s);
  double kept = 0, all = 0;
  for (sim::Shown& each : shown) {
    each.show(s.cameras_until_ns);
    kept += each.kept();
    all += each.seconds();
  }
  return {kept / all, static_cast<double>(answers) / seconds};
}

inline std::vector<std::unique_ptr<Filming>> crew(const Leatd& leatd, std::uint32_t clients, bool coordinated,
                                                  std::int64_t* start) {
  std::vector<std::unique_ptr<Filming>> cameras;
  *start = leat_now_ns() + kSecond / 2;  // when all are connected
  for (std::uint32_t i = 0; i < clients; ++i)
    cameras.push_back(std::make_unique<Filming>(leatd, i, coordinated, *start));
  return cameras;
}

}  // namespace leat::test
