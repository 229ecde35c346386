/* The answers a frame can get, and the reasons. One table: the C ABI, the scheduler core, the counters, `leat top` and
 * the documents all read it. Values are part of the wire format: append only.
 *
 * LEAT_OUTCOMES(X): X(name, value, text)
 * LEAT_REASONS(X):  X(name, value, text that says what happened and, where something can be done, what to do) */
#ifndef LEAT_OUTCOME_H
#define LEAT_OUTCOME_H

#define LEAT_OUTCOMES(X)                                                  \
  X(pending, 0, "not answered yet")                                       \
  X(completed, 1, "finished by its deadline")                             \
  X(late, 2, "finished after its deadline; delivered, counted as a miss") \
  X(dropped, 3, "given up early, on purpose; see the reason")             \
  X(failed, 4, "started and could not be finished; see the reason")       \
  X(rejected, 5, "never admitted; see the reason")

#define LEAT_REASONS(X)                                                                                             \
  X(none, 0, "no reason: the frame was finished")                                                                   \
  X(expired, 1, "its deadline had passed before it could start")                                                    \
  X(unreachable, 2, "it would have finished after its deadline")                                                    \
  X(window, 3, "the batch window slid past it")                                                                     \
  X(superseded, 4, "a newer frame of the same stream (or key) took its place")                                      \
  X(stale, 5, "it exceeded the stream's max_age")                                                                   \
  X(overload, 6, "load shedding; lower the rate or add partitions")                                                 \
  X(cancelled, 7, "its client cancelled it")                                                                        \
  X(stream_closed, 8, "its stream was closed")                                                                      \
  X(client_gone, 9, "its client disconnected")                                                                      \
  X(sibling_dropped, 10, "another branch of the same request was dropped")                                          \
  X(queue_full, 11, "a queue was full; lower the rate or raise the stream's depth")                                 \
  X(partition_lost, 12, "the worker died while running it and no slack was left to retry")                          \
  X(no_partition, 13, "no partition that can run the module is up")                                                 \
  X(model_error, 14, "the model could not run on this frame; see the worker's log")                                 \
  X(bad_frame, 15, "its descriptor was malformed: format, size, slot or generation")                                \
  X(not_ready, 16, "the daemon is starting or stopping")                                                            \
  X(unschedulable, 17, "it can never finish within its SLO on this plan; see `leat check`")                         \
  X(plan_replaced, 18, "the plan changed and its route is gone")                                                    \
  X(no_feature_slot, 19, "no slot was left for its features between two stages; lower the rate")                    \
  X(poison, 20, "workers died while running it or others of its user; see how they ended in leatd's log")           \
  X(result_too_large, 21, "the model's output needs more room than its result slot has; raise max= in postprocess") \
  X(undecodable, 22,                                                                                                \
    "its access unit or one that it refers to is damaged or missing; the next key picture heals that")              \
  X(not_finite, 23,                                                                                                 \
    "the model answered NaN or infinity where the answer should be; check its input range and precision")

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_outcome {
#define X(name, value, text) LEAT_OUTCOME_##name = value,
  LEAT_OUTCOMES(X)
#undef X
} leat_outcome;

typedef enum leat_reason {
#define X(name, value, text) LEAT_REASON_##name = value,
  LEAT_REASONS(X)
#undef X
} leat_reason;

#ifdef __cplusplus
}

#include <cstdint>
#include <string_view>

namespace leat {

enum class Outcome : std::uint8_t {
#define X(name, value, text) name = value,
  LEAT_OUTCOMES(X)
#undef X
};
enum class Reason : std::uint8_t {
#define X(name, value, text) name = value,
  LEAT_REASONS(X)
#undef X
};

#define X(name, value, text) +1
inline constexpr std::size_t kOutcomeCount = 0 LEAT_OUTCOMES(X);
inline constexpr std::size_t kReasonCount = 0 LEAT_REASONS(X);
#undef X

/* Name of an outcome or reason as it appears in JSON and in `leat top`; "unknown" for a value outside the table. */
constexpr std::string_view name_of(Outcome o) noexcept {
  switch (o) {
#define X(name, value, text) \
  case Outcome::name:        \
    return #name;
    LEAT_OUTCOMES(X)
#undef X
  }
  return "unknown";
}
constexpr std::string_view name_of(Reason r) noexcept {
  switch (r) {
#define X(name, value, text) \
  case Reason::name:         \
    return #name;
    LEAT_REASONS(X)
#undef X
  }
  return "unknown";
}
constexpr std::string_view text_of(Reason r) noexcept {
  switch (r) {
#define X(name, value, text) \
  case Reason::name:         \
    return text;
    LEAT_REASONS(X)
#undef X
  }
  return "unknown";
}

}  // namespace leat
#endif
#endif
