// Figures of users: who has what of leatd, what he may have, and what was refused him and why.
#pragma once

#include <string>
#include <vector>

#include "tools/leat/top/columns.h"

namespace leat::tools {

[[nodiscard]] Value user_name(const Window& window, const shm::RecordSnapshot& record, const shm::RecordSnapshot*);
[[nodiscard]] Value user_in_flight(const Window& window, const shm::RecordSnapshot& record, const shm::RecordSnapshot*);
[[nodiscard]] Value user_within_share(const Window& window, const shm::RecordSnapshot& record,
                                      const shm::RecordSnapshot*);
[[nodiscard]] Value user_last_refusal(const Window& window, const shm::RecordSnapshot& record,
                                      const shm::RecordSnapshot*);
[[nodiscard]] Value user_priority(const Window& window, const shm::RecordSnapshot& record, const shm::RecordSnapshot*);
[[nodiscard]] Value user_min_slo(const Window& window, const shm::RecordSnapshot& record, const shm::RecordSnapshot*);
[[nodiscard]] Value user_rules(const Window& window, const shm::RecordSnapshot& record, const shm::RecordSnapshot*);

// Most first.
[[nodiscard]] std::vector<ReasonCount> user_refusals(const shm::RecordSnapshot& record);
[[nodiscard]] std::vector<ReasonCount> user_violations(const shm::RecordSnapshot& record);

// What `leat status --users` prints: a few lines a user.
[[nodiscard]] std::string users_text(const Window& window);

}  // namespace leat::tools
