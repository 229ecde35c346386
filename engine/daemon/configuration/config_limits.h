// The part of the configuration that says how much: [limits], [limits.user] and the tables that override it. config.h
// has the format.
#pragma once

#include "engine/daemon/configuration/config.h"
#include "tools/base/documents/document.h"

namespace leat::daemon {

inline constexpr double kLongestMs = 1e7;  // of any time in a configuration

void read_limits(const JsonCursor& limits, LimitsConfig& out);

// A number, or a name this host knows. Complains at `t` otherwise; nullopt then.
std::optional<std::uint32_t> user_of(const JsonCursor& t, const std::string& name);
std::optional<std::uint32_t> group_of(const JsonCursor& t, const std::string& name);

// The key `share`: a weight, in thousandths.
std::uint32_t read_share(const JsonCursor& t);

}  // namespace leat::daemon
