#include "tools/leat/bridge/bridge_counts.h"

#include <numeric>

#include "tools/base/text/formatted.h"
#include "tools/base/text/quantile.h"

namespace leat::tools {
namespace {

constexpr std::size_t kRecent = 1024;

std::uint64_t sum_of(const std::map<std::string_view, std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& count) { return sum + count.second; });
}

Json object_of(const std::map<std::string_view, std::uint64_t>& counts) {
  Json out = Json::object();
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}

}  // namespace

void BridgeCounts::took(double ms) {
  if (recent_ms_.size() < kRecent)
    recent_ms_.push_back(ms);
  else
    recent_ms_[next_++ % kRecent] = ms;
}

Json BridgeCounts::json() const {
  const auto ms = [&](double q) { return recent_ms_.empty() ? Json() : Json(quantile(recent_ms_, q)); };
  return {{"questions", questions},
          {"answered", object_of(answered)},
          {"zeros", object_of(zeros)},
          {"left_alone", left_alone},
          {"waiting", waiting},
          {"after_time", after_time},
          {"models_served", models_served},
          {"models_refused", models_refused},
          {"p50_ms", ms(0.5)},
          {"p99_ms", ms(0.99)}};
}

std::string BridgeCounts::text() const {
  std::string out = formatted("%llu questions, %llu answered", static_cast<unsigned long long>(questions),
                              static_cast<unsigned long long>(sum_of(answered)));
  if (!recent_ms_.empty())
    out += formatted(" (p50 %.1f ms, p99 %.1f ms)", quantile(recent_ms_, 0.5), quantile(recent_ms_, 0.99));
  out += formatted(", %llu zeros", static_cast<unsigned long long>(sum_of(zeros)));
  for (const auto& [cause, count] : zeros)
    out += formatted("%s %.*s %llu", cause == zeros.begin()->first ? ":" : ",", static_cast<int>(cause.size()),
                     cause.data(), static_cast<unsigned long long>(count));
  return out;
}

}  // namespace leat::tools
