#include "engine/daemon/configuration/config_limits.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "leat/leat.h"

namespace leat::daemon {
namespace {

constexpr std::int64_t kMaxMib = 1 << 24;

template <class T>
void read_mib(const JsonCursor& t, std::string_view key, T& out) {
  if (t.has(key)) out = static_cast<std::uint64_t>(t.integer_or(key, 1, 1, kMaxMib)) << 20;
}

std::uint32_t rule_bit(const JsonCursor& t, const std::string& word) {
#define X(name, value, text) \
  if (word == #name) return 1u << value;
  LEAT_OVERLOADS(X)
#undef X
  t.fail("'" + word + "' is no overload rule; the rules are fifo, latest, latest_per_key, never_drop");
  return 0;
}

void read_user(const JsonCursor& t, UserOverride& out) {
  t.only({"sessions", "streams", "requests", "memory_mib", "descriptors", "priority", "min_slo_ms", "overload", "share",
          "coordinated_share"});
  const auto count = [&](std::string_view key, std::int64_t min, std::optional<std::uint32_t>& into) {
    if (t.has(key)) into = static_cast<std::uint32_t>(t.integer_or(key, min, min, 65536));
  };
  count("sessions", 0, out.sessions);
  count("streams", 0, out.streams);
  count("requests", 0, out.requests);
  count("descriptors", 3, out.descriptors);  // what the reply to a client's hello carries
  read_mib(t, "memory_mib", out.memory_bytes);
  if (t.has("priority")) {
    const std::string word = t.choice_or("priority", "normal", {"background", "normal", "high", "protected"});
    out.priority = word == "background" ? LEAT_PRIORITY_BACKGROUND
                   : word == "normal"   ? LEAT_PRIORITY_NORMAL
                   : word == "high"     ? LEAT_PRIORITY_HIGH
                                        : LEAT_PRIORITY_PROTECTED;
  }
  if (t.has("coordinated_share")) out.coordinated_share = t.number_or("coordinated_share", 0, 0, 1);
  if (t.has("min_slo_ms")) out.min_slo_ns = std::llround(t.number_or("min_slo_ms", 0, 0, kLongestMs) * 1e6);
  if (t.has("share")) out.share_permille = read_share(t);
  if (t.has("overload")) {
    out.overload_set = 0;
    for (const auto& word : t.texts("overload")) *out.overload_set |= rule_bit(t.find("overload"), word);
    if (*out.overload_set == 0)
      t.find("overload").fail("names no rule; a stream needs one of fifo, latest, latest_per_key");
  }
}

std::optional<std::uint32_t> number_of(const std::string& name) {
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || end != name.data() + name.size() || id == UINT32_MAX) return std::nullopt;
  return id;
}

}  // namespace

std::uint32_t read_share(const JsonCursor& t) {
  return static_cast<std::uint32_t>(std::lround(t.number_or("share", 1, .001, 1000) * 1000));
}

std::optional<std::uint32_t> user_of(const JsonCursor& t, const std::string& name) {
  if (const auto id = number_of(name)) return id;
  if (const passwd* entry = getpwnam(name.c_str())) return entry->pw_uid;
  t.fail("there is no user '" + name + "' on this host; write a name that `id` knows, or a number");
  return std::nullopt;
}

std::optional<std::uint32_t> group_of(const JsonCursor& t, const std::string& name) {
  if (const auto id = number_of(name)) return id;
  if (const group* entry = getgrnam(name.c_str())) return entry->gr_gid;
  t.fail("there is no group '" + name + "' on this host; write a name that `getent group` knows, or a number");
  return std::nullopt;
}

void read_limits(const JsonCursor& t, LimitsConfig& out) {
  t.only({"clients", "streams", "requests", "memory_mib", "client_memory_mib", "feature_mib", "batch_timeout_ms",
          "handshake_timeout_ms", "user", "users", "groups"});
  out.clients = static_cast<std::uint32_t>(t.integer_or("clients", out.clients, 1, 64));
  out.streams = static_cast<std::uint32_t>(t.integer_or("streams", out.streams, 1, 256));
  out.requests = static_cast<std::uint32_t>(t.integer_or("requests", out.requests, 1, 65536));
  read_mib(t, "memory_mib", out.memory_bytes);
  read_mib(t, "client_memory_mib", out.client_memory_bytes);
  read_mib(t, "feature_mib", out.feature_bytes);
  out.batch_timeout_ns = t.integer_or("batch_timeout_ms", out.batch_timeout_ns / 1'000'000, 10, 3'600'000) * 1'000'000;
  out.handshake_timeout_ns =
      t.integer_or("handshake_timeout_ms", out.handshake_timeout_ns / 1'000'000, 1, 60'000) * 1'000'000;
  read_user(t.find("user"), out.user.everybody);
  for (const auto& [key, is_user] : {std::pair{"users", true}, std::pair{"groups", false}}) {
    const JsonCursor tables = t.find(key);
    if (tables && !tables.is_table()) tables.fail("must be tables: write [limits." + std::string(key) + ".NAME]");
    for (const auto& name : tables.keys()) {
      const JsonCursor table = tables.find(name);
      const auto id = is_user ? user_of(table, name) : group_of(table, name);
      if (!id) continue;
      auto& list = is_user ? out.user.users : out.user.groups;
      if (std::any_of(list.begin(), list.end(), [&](const auto& other) { return other.first == *id; }))
        table.fail("names number " + std::to_string(*id) + ", which another table names too; keep one");
      read_user(table, list.emplace_back(*id, UserOverride{}).second);
    }
  }
}

}  // namespace leat::daemon
