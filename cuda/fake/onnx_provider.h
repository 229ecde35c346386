// What the stand-in libonnxruntime.so.1 has seen, and how it behaves: one a process, got by the library's symbol
// leat_stand_in_provider_state.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat::fake {

// A run on the stream, by steady_clock.
struct RunSpan {
  std::atomic<std::int64_t> began_ns, ended_ns;
};
inline constexpr std::uint32_t kRunSpans = 4096;  // of the latest runs

struct ProviderState {
  // How it behaves. What runs and plans take is counted where the driver counts (State::counts_time).
  std::atomic<std::uint32_t> plan_us;            // of a plain run whose batch is not the one's before
  std::atomic<std::uint32_t> run_us, replay_us;  // of each
  std::atomic<std::uint32_t> give_back_us;       // on the stream, of what runs have pinned: the last to hold it aborts
  std::atomic<std::uint32_t> cold_runs;          // so many take ten times as long: the clocks are low
  std::atomic<std::uint32_t> replays_wait;       // a replay returns when it has run
  std::atomic<std::uint32_t> refuses_graphs;     // captures fail
  std::atomic<std::uint32_t> captured_us;        // of a run that somebody else has captured, at each launch
  std::atomic<std::uint32_t> refuses_captures;   // of somebody else's: the run fails in the midst of it
  std::atomic<std::uint32_t> second_runs_take;   // memory too: of each size, by the plan that its first run has left
  // What it has seen.
  std::atomic<std::uint32_t> plans, runs, replays, captures;  // captures: somebody else's, of a run
  std::atomic<std::uint64_t> sizes;                           // bit b: a plain run of a batch of b
  std::atomic<std::uint32_t> arena_rows;  // what an arena that grows by what is asked for has taken, in rows
  std::atomic<std::uint32_t> tf32;        // of the last session: use_tf32
  std::atomic<std::uint32_t> open_sessions, most_sessions;
  std::atomic<std::uint32_t> most_unsettled_runs;  // whose pinned memory one session held at once
  std::atomic<std::uint64_t> ended_runs;           // in whatever way they came onto the stream
  RunSpan spans[kRunSpans];                        // [n % kRunSpans]: of the n-th that ended, from 0
};

}  // namespace leat::fake
