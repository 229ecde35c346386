#include "tools/leat/top/users.h"

#include <pwd.h>

#include <algorithm>
#include <cstdio>

#include "leat/leat.h"
#include "shm/src/client/client_port.h"

namespace leat::tools {
namespace {

using shm::RecordSnapshot;
using shm::UserCounter;

constexpr const char* kPriorities[] = {"background", "normal", "high", "protected"};

std::uint64_t number(const RecordSnapshot& record, UserCounter counter) { return record.value(counter).value_or(0); }

template <class Cause>
std::vector<ReasonCount> causes(const RecordSnapshot& record, std::uint32_t first, std::uint32_t count) {
  std::vector<ReasonCount> found;
  for (std::uint32_t i = 1; i < count; ++i) {
    const auto cause = static_cast<Cause>(i);
    if (const std::uint64_t n = record.causes[first + i]; n != 0 && n != shm::kUnknown)
      found.push_back({name_of(cause), text_of(cause), n});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  return found;
}

std::string used_of(std::uint64_t used, std::uint64_t max, const std::string& what) {
  return std::to_string(used) + (max < UINT32_MAX ? " of " + std::to_string(max) : "") + " " + what;
}

std::string text_of(const Value& value) { return shown(value, Unit::text); }

// Of a user's open streams together.
template <class Count>
double of_streams(const Window& window, const RecordSnapshot& user, Count&& count) {
  double sum = 0;
  for (const RecordSnapshot& stream : window.now.streams) {
    const auto client = stream.value(shm::StreamCounter::client);
    const auto owner = std::find_if(window.now.clients.begin(), window.now.clients.end(),
                                    [&](const RecordSnapshot& c) { return client && c.index == *client; });
    if (owner != window.now.clients.end() && owner->value(shm::ClientCounter::user) == user.index)
      sum += static_cast<double>(count(stream));
  }
  return sum;
}

double of_streams(const Window& window, const RecordSnapshot& user, shm::StreamCounter counter) {
  return of_streams(window, user, [&](const RecordSnapshot& stream) { return stream.value(counter).value_or(0); });
}

// Frames of his open streams that ended workers, or were refused for that.
double poison_of(const Window& window, const RecordSnapshot& user) {
  return of_streams(window, user, [](const RecordSnapshot& stream) {
    const std::uint64_t n = stream.causes[static_cast<std::size_t>(Reason::poison)];
    return n == shm::kUnknown ? 0 : n;
  });
}

}  // namespace

Value user_name(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto uid = record.value(UserCounter::uid);
  if (!uid) return {};
  const passwd* entry = ::getpwuid(static_cast<uid_t>(*uid));
  return entry != nullptr ? std::string(entry->pw_name) : std::to_string(*uid);
}

Value user_in_flight(const Window& window, const RecordSnapshot& record, const RecordSnapshot*) {
  return of_streams(window, record, shm::StreamCounter::in_flight);
}

Value user_within_share(const Window& window, const RecordSnapshot& record, const RecordSnapshot*) {
  return of_streams(window, record, shm::StreamCounter::within_share);
}

Value user_last_refusal(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto last = record.value(UserCounter::last_refusal);
  return last ? Value(std::string(name_of(static_cast<shm::Refusal>(*last)))) : Value();
}

Value user_priority(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto max = record.value(UserCounter::max_priority);
  return max && *max < std::size(kPriorities) ? Value(std::string(kPriorities[*max])) : Value();
}

Value user_min_slo(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto ns = record.value(UserCounter::min_slo_ns);
  if (!ns) return {};
  if (*ns == shm::kQuarterSlo) return std::string("a quarter of the application's");
  return *ns == 0 ? std::string("any length") : shown(static_cast<double>(*ns) / 1e6, Unit::ms) + " ms";
}

Value user_rules(const Window&, const RecordSnapshot& record, const RecordSnapshot*) {
  const auto set = record.value(UserCounter::overload_set);
  if (!set) return {};
  std::string text;
#define X(name, value, meaning) \
  if ((*set >> value & 1) != 0) text += (text.empty() ? "" : " ") + std::string(#name);
  LEAT_OVERLOADS(X)
#undef X
  return text;
}

std::vector<ReasonCount> user_refusals(const RecordSnapshot& record) {
  return causes<shm::Refusal>(record, 0, shm::kRefusals);
}

std::vector<ReasonCount> user_violations(const RecordSnapshot& record) {
  return causes<shm::Violation>(record, shm::kViolationCauses, shm::kMaxCauses - shm::kViolationCauses);
}

std::string users_text(const Window& window) {
  std::string out;
  for (const RecordSnapshot& r : window.now.users) {
    const auto mib = [](std::uint64_t bytes) { return (bytes + (1u << 20) - 1) >> 20; };
    out +=
        "user " + text_of(user_name(window, r, nullptr)) + " (uid " + std::to_string(number(r, UserCounter::uid)) +
        "): " + used_of(number(r, UserCounter::sessions), number(r, UserCounter::max_sessions), "connections, ") +
        std::to_string(number(r, UserCounter::clients)) + " clients\n  " +
        used_of(number(r, UserCounter::streams), number(r, UserCounter::max_streams), "streams; ") +
        used_of(number(r, UserCounter::requests), number(r, UserCounter::max_requests), "requests may be in flight, ") +
        shown(user_in_flight(window, r, nullptr), Unit::count) + " are; " +
        used_of(mib(number(r, UserCounter::memory_bytes)), mib(number(r, UserCounter::max_memory_bytes)), "MiB; ") +
        used_of(number(r, UserCounter::descriptors), number(r, UserCounter::max_descriptors),
                "descriptors sent and not received\n") +
        "  may ask for priority " + text_of(user_priority(window, r, nullptr)) + ", an SLO of " +
        text_of(user_min_slo(window, r, nullptr)) + ", and the overload rules " +
        text_of(user_rules(window, r, nullptr)) + "\n  where users compete his share of the partitions counts " +
        shown(static_cast<double>(number(r, UserCounter::share_permille)) / 1000, Unit::rate) + "; " +
        shown(user_within_share(window, r, nullptr), Unit::count) + " requests of his open streams were within it\n";
    if (const double poison = poison_of(window, r); poison > 0)
      out += "  " + shown(poison, Unit::count) +
             " of their frames ended a worker, or were refused because others had (poison)\n";
    for (const auto& [what, list] :
         {std::pair{"refused", user_refusals(r)}, std::pair{"disconnected", user_violations(r)}})
      for (const ReasonCount& reason : list)
        out += "  " + std::string(what) + " " + std::to_string(reason.count) + " x " + std::string(reason.name) + ": " +
               std::string(reason.text) + "\n";
  }
  return out.empty() ? "no user has connected yet\n" : out;
}

}  // namespace leat::tools
