// Group 7: what timers resolve, what a launch costs, how fast a waiting host thread wakes up.
#include <array>
#include <atomic>
#include <thread>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/questions/client.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

void ask_timers(Asker& asker) {
  asker.number({"clocks.globaltimer_step", "In which steps does the device's timer advance?",
                "differences of successive values one thread reads"},
               "ns", [&] {
                 constexpr std::uint32_t count = 1000;
                 const Buffer values(count * sizeof(kernels::Stamp));
                 values.clear();
                 const Stream stream;
                 LEAT_CUDA(cudaDeviceSynchronize());
                 LEAT_CUDA(kernels::timer_values(values.as<kernels::Stamp>(), count, stream));
                 stream.wait();
                 const auto stamps = values.read<std::array<kernels::Stamp, count>>();
                 Samples samples;
                 for (std::uint32_t i = 1; i < count && stamps[i] != 0; ++i) {
                   samples.values.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
                 }
                 return samples;
               });
  asker.number({"clocks.event_pair", "What do two events with nothing between them measure?", "cudaEventElapsedTime"},
               "us", [&] {
                 const Stream stream;
                 return Samples{time_us(stream, asker.repeats(1000), [] {})};
               });
  asker.number(
      {"clocks.event_of_spin", "What do events measure around a kernel that spins for 100 us?",
       "device timer in the kernel against cudaEventElapsedTime"},
      "us", [&] {
        const Stream stream;
        return Samples{time_us(stream, asker.repeats(300), [&] { LEAT_CUDA(kernels::spin(100'000, stream)); })};
      });
}

Graph empty_kernels(const Stream& stream, int count) {
  LEAT_CUDA(kernels::empty(stream));
  return Graph(stream, [&] {
    for (int i = 0; i < count; ++i) LEAT_CUDA(kernels::empty(stream));
  });
}

void ask_launches(Asker& asker) {
  const int repeats = asker.repeats(1000);
  asker.number({"clocks.launch", "What does a launch cost the host thread?",
                "host clock around an empty kernel's launch; the stream is drained after each"},
               "us", [&] {
                 const Stream stream;
                 Samples samples;
                 for (int i = 0; i < repeats; ++i) {
                   for (double t : host_time_us(
                            1, [&] { LEAT_CUDA(kernels::empty(stream)); }, i == 0 ? 3 : 0))
                     samples.values.push_back(t);
                   stream.wait();
                 }
                 return samples;
               });
  constexpr int chain = 100;
  asker.number({"clocks.launch_gap", "What does one more kernel in a stream cost?",
                "events around 100 empty kernels, divided by 100"},
               "us", [&] {
                 const Stream stream;
                 auto times = time_us(stream, asker.repeats(200), [&] {
                   for (int i = 0; i < chain; ++i) LEAT_CUDA(kernels::empty(stream));
                 });
                 for (double& t : times) t /= chain;
                 return Samples{std::move(times)};
               });
  asker.number({"clocks.graph_gap", "What does one more kernel in a captured graph cost?",
                "events around a graph of 100 empty kernels, divided by 100"},
               "us", [&] {
                 const Stream stream;
                 const Graph graph = empty_kernels(stream, chain);
                 auto times = time_us(stream, asker.repeats(200), [&] { graph.launch(stream); });
                 for (double& t : times) t /= chain;
                 return Samples{std::move(times)};
               });
  asker.number({"clocks.graph_launch", "What does the launch of a graph cost the host thread?",
                "host clock around the launch of a graph of 100 empty kernels; drained after each"},
               "us", [&] {
                 const Stream stream;
                 const Graph graph = empty_kernels(stream, chain);
                 Samples samples;
                 for (int i = 0; i < asker.repeats(300); ++i) {
                   for (double t : host_time_us(
                            1, [&] { graph.launch(stream); }, i == 0 ? 3 : 0))
                     samples.values.push_back(t);
                   stream.wait();
                 }
                 return samples;
               });
}

void ask_round_trip(Asker& asker) {
  asker.number({"clocks.pinned_round_trip", "How long from a host thread's write to a spinning kernel's answer?",
                "host clock; both sides spin on words in mapped pinned memory"},
               "us", [&] {
                 const Buffer words(kKiB, Buffer::Where::host);
                 auto* ask = words.as<std::uint32_t>();
                 std::uint32_t* answer = ask + 64;  // another line
                 std::atomic_ref<std::uint32_t> asked(*ask), answered(*answer);
                 asked.store(0, std::memory_order_relaxed);
                 answered.store(0, std::memory_order_relaxed);
                 const Stream stream;
                 const auto rounds = static_cast<std::uint32_t>(asker.repeats(1000));
                 LEAT_CUDA(kernels::echo(ask, answer, rounds, 2'000'000'000, stream));
                 Samples samples;
                 const Deadline deadline = after(std::chrono::seconds(3));
                 for (std::uint32_t round = 1; round <= rounds; ++round) {
                   const auto begin = Clock::now();
                   asked.store(
                       round,
                       std::memory_order_release);  // pairs with the kernel's volatile read; there is no other data
                   while (answered.load(std::memory_order_acquire) != round) {
                     if (Clock::now() > deadline) throw ProbeFailed("the kernel did not answer within 3 s");
                   }
                   const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
                   if (round > 10) samples.values.push_back(us);  // the first rounds include the launch
                 }
                 stream.wait();
                 return samples;
               });
}

void ask_wake_up(Asker& asker) {
  struct Way {
    const char* name;
    unsigned flags;
    const char* work;
  };
  constexpr Way ways[] = {{"stream, spinning", cudaDeviceScheduleSpin, "wake_by_stream"},
                          {"stream, yielding", cudaDeviceScheduleYield, "wake_by_stream"},
                          {"stream, blocking", cudaDeviceScheduleBlockingSync, "wake_by_stream"},
                          {"event, blocking", cudaDeviceScheduleSpin, "wake_by_event"}};
  for (const Way& way : ways) {
    asker.number({"clocks.wake_up",
                  "How much later than one spinning on a pinned word does a waiting thread wake up?",
                  "host clock in both threads, in a process for each way; the kernel writes the word as its last act",
                  {{"wait", way.name}}},
                 "us", [&] {
                   if (std::thread::hardware_concurrency() < 2) throw NotApplicable("needs two CPUs");
                   Client client({{kScheduleVariable, std::to_string(way.flags)}});
                   return Samples{client.measure(way.work, asker.repeats(300))};
                 });
  }
}

}  // namespace

// Both threads wait for the end of the same kernel, which writes the word last. The spinner is under way before the
// kernel starts.
std::vector<double> wake_after_word(bool by_event, int repeats) {
  const Buffer words(kKiB, Buffer::Where::host);
  auto* word = words.as<std::uint32_t>();
  std::atomic_ref<std::uint32_t> seen(*word);
  seen.store(0, std::memory_order_relaxed);
  const Stream stream;
  const Event done(by_event ? cudaEventBlockingSync : cudaEventDefault);
  std::vector<double> samples;
  for (int i = 1; i <= repeats + 3; ++i) {
    const auto round = static_cast<std::uint32_t>(i);
    Clock::time_point by_word;
    std::atomic<bool> spinning{false};
    std::thread spinner([&] {
      spinning.store(true, std::memory_order_release);
      while (seen.load(std::memory_order_acquire) != round) {  // pairs with the kernel's write and its system fence
      }
      by_word = Clock::now();
    });
    try {
      while (!spinning.load(std::memory_order_acquire)) {
      }
      LEAT_CUDA(kernels::post(word, round, 500'000, stream));
      LEAT_CUDA(cudaEventRecord(done, stream));
      if (by_event) {
        LEAT_CUDA(cudaEventSynchronize(done));
      } else {
        stream.wait();
      }
    } catch (...) {
      seen.store(round, std::memory_order_release);
      spinner.join();
      throw;
    }
    const auto by_wait = Clock::now();
    spinner.join();
    if (i > 3) samples.push_back(std::chrono::duration<double, std::micro>(by_wait - by_word).count());
  }
  return samples;
}

void ask_clocks(Asker& asker) {
  open_device();
  ask_timers(asker);
  ask_launches(asker);
  ask_round_trip(asker);
  ask_wake_up(asker);
}

}  // namespace leat::probe
