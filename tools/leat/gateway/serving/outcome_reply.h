// Which HTTP status says which of Leat's outcomes, and the fields that every answer has. Pure; any thread.
//
//   200  completed
//   503  given up for want of time or room here: another node, or a moment later (Retry-After), may do it
//   429  the client's own limit: nobody else will do it
//   504  late, or too little time was left for another try: it must not be sent again
//   500  the model failed on it
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "leat/leat.h"
#include "tools/leat/gateway/http/reply.h"

namespace leat::gateway {

using Fields = std::vector<std::pair<std::string, std::string>>;

// own_stream: the client has named a stream, so what is full is his.
[[nodiscard]] int status_of(leat_outcome outcome, leat_reason reason, bool own_stream, bool worth_another) noexcept;

// X-Leat-Node, -Reason, -Queue-Us, -Compute-Us, and Retry-After where it may be asked again.
struct Spent {
  std::int64_t queue_ns = 0, compute_ns = 0;
};
[[nodiscard]] Spent spent_of(const leat_answer& answer) noexcept;
void add_fields(Reply& reply, const std::string& node, std::string_view reason, Spent spent);

// A refusal that no frame came to: the gateway's own words for reasons.
[[nodiscard]] Reply refusal(int status, const std::string& node, std::string_view reason, std::string_view why);

}  // namespace leat::gateway
