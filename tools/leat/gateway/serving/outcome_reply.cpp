#include "tools/leat/gateway/serving/outcome_reply.h"

#include <algorithm>

namespace leat::gateway {

int status_of(leat_outcome outcome, leat_reason reason, bool own_stream, bool worth_another) noexcept {
  if (outcome == LEAT_OUTCOME_completed) return 200;
  if (outcome == LEAT_OUTCOME_late) return 504;
  switch (reason) {
    case LEAT_REASON_superseded:
    case LEAT_REASON_stale:
    case LEAT_REASON_cancelled:
      return 429;
    case LEAT_REASON_queue_full:
      return own_stream ? 429 : 503;
    case LEAT_REASON_model_error:
    case LEAT_REASON_bad_frame:
    case LEAT_REASON_poison:
    case LEAT_REASON_result_too_large:
    case LEAT_REASON_undecodable:
    case LEAT_REASON_not_finite:
    case LEAT_REASON_sibling_dropped:
      return 500;
    default:
      return worth_another ? 503 : 504;
  }
}

Spent spent_of(const leat_answer& answer) noexcept {
  const std::int64_t sent = leat_dispatched_ns(&answer);
  if (sent == 0) return {.queue_ns = answer.answered_ns - answer.capture_ns, .compute_ns = 0};
  return {.queue_ns = sent - answer.capture_ns, .compute_ns = answer.answered_ns - sent};
}

void add_fields(Reply& reply, const std::string& node, std::string_view reason, Spent spent) {
  const auto us = [](std::int64_t ns) { return std::to_string(std::max<std::int64_t>(0, ns) / 1000); };
  reply.fields.emplace_back("X-Leat-Node", node);
  reply.fields.emplace_back("X-Leat-Reason", reason);
  reply.fields.emplace_back("X-Leat-Queue-Us", us(spent.queue_ns));
  reply.fields.emplace_back("X-Leat-Compute-Us", us(spent.compute_ns));
  if (reply.status == 503 || reply.status == 429) reply.fields.emplace_back("Retry-After", "1");
}

Reply refusal(int status, const std::string& node, std::string_view reason, std::string_view why) {
  Reply out = error_reply(status, why);
  add_fields(out, node, reason, {});
  return out;
}

}  // namespace leat::gateway
