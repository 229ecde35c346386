#include "engine/daemon/policy_words.h"

#include <charconv>

#include "tools/cli/command.h"

namespace leat::daemon {
namespace {

using core::Policy;
using core::TimeNs;

template <class Enum>
std::string word(const std::string& key, const std::string& value, Enum& out, std::string_view names) {
  if (core::parse(value, out)) return {};
  return key + ": '" + value + "' is not known; use one of " + std::string(names);
}

std::string flag(const std::string& key, const std::string& value, bool& out) {
  if (value != "true" && value != "false") return key + ": must be true or false";
  out = value == "true";
  return {};
}

std::string whole(const std::string& key, const std::string& value, std::uint32_t& out) {
  const auto got = std::from_chars(value.data(), value.data() + value.size(), out);
  if (got.ec == std::errc{} && got.ptr == value.data() + value.size()) return {};
  return key + ": must be a whole number, not negative";
}

std::string milliseconds(const std::string& key, const std::string& value, TimeNs& out) {
  double ms = 0;
  const auto got = std::from_chars(value.data(), value.data() + value.size(), ms);
  if (got.ec != std::errc{} || got.ptr != value.data() + value.size() || !(ms >= 0 && ms <= 1e9)) return key + ": must be a number of milliseconds";
  out = static_cast<TimeNs>(ms * 1e6);
  return {};
}

// Every key that may stand in [policy] beside `preset`.
struct Key {
  const char* name;
  std::string (*apply)(const std::string& key, const std::string& value, Policy& out);
};
#define WORD(field, names) {#field, [](const std::string& k, const std::string& v, Policy& p) { return word(k, v, p.field, core::names()); }}
#define FLAG(field) {#field, [](const std::string& k, const std::string& v, Policy& p) { return flag(k, v, p.field); }}
#define WHOLE(field) {#field, [](const std::string& k, const std::string& v, Policy& p) { return whole(k, v, p.field); }}
#define SPAN(name, field) {#name, [](const std::string& k, const std::string& v, Policy& p) { return milliseconds(k, v, p.field); }}
constexpr Key kKeys[] = {
    WORD(order, order_names), WORD(drop, drop_names), WORD(place, place_names), WORD(batch, batch_names), WORD(binding, binding_names),
    FLAG(form_ahead), WHOLE(queue_ahead), WHOLE(lambda_permille), SPAN(window_ms, window_ns), FLAG(exact_duration),
    SPAN(oc_threshold_ms, oc_threshold_ns), WHOLE(oc_alpha_permille), WHOLE(kappa_permille), WHOLE(backlog_permille),
    WHOLE(alpha_permille), WHOLE(beta_permille), WHOLE(margin_permille), WHOLE(margin_min_permille),
    WHOLE(margin_max_permille), WHOLE(margin_up_permille), WHOLE(margin_down_permille), FLAG(look_ahead),
    SPAN(look_ahead_ms, look_ahead_ns), SPAN(background_budget_ms, background_budget_ns), SPAN(background_window_ms, background_window_ns),
};
#undef WORD
#undef FLAG
#undef WHOLE
#undef SPAN

}  // namespace

std::string apply_policy(const std::string& name, const PolicyOverrides& overrides, Policy& out) {
  if (!core::preset(name, out)) return "preset: '" + name + "' is not known; use one of " + std::string(core::preset_names());
  for (const auto& [key, value] : overrides) {
    const Key* found = nullptr;
    std::vector<std::string> names{"preset"};
    for (const auto& k : kKeys) {
      names.emplace_back(k.name);
      if (key == k.name) found = &k;
    }
    if (found == nullptr) {
      const std::string near = cli::nearest(key, names);
      std::string list;
      for (const auto& n : names) list += (list.empty() ? "" : ", ") + n;
      return key + ": unknown key; " + (near.empty() ? "the keys here are " + list : "did you mean '" + near + "'?");
    }
    if (std::string problem = found->apply(key, value, out); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace leat::daemon
