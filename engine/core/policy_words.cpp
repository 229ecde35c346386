#include "engine/core/policy_words.h"

#include <algorithm>
#include <charconv>

#include "tools/cli/command.h"

namespace leat::core {
namespace {

template <class Enum>
std::string word(const std::string& key, const std::string& value, Enum& out, std::string_view names) {
  if (parse(value, out)) return {};
  return key + ": '" + value + "' is not known; use one of " + std::string(names);
}

std::string flag(const std::string& key, const std::string& value, bool& out) {
  if (value != "true" && value != "false") return key + ": must be true or false";
  out = value == "true";
  return {};
}

std::string whole(const std::string& key, const std::string& value, std::uint32_t& out) {
  const auto got = std::from_chars(value.data(), value.data() + value.size(), out);
  if (got.ec == std::errc{} && got.ptr == value.data() + value.size() && out <= 1'000'000) return {};
  return key + ": must be a whole number from 0 to 1000000";
}

std::string milliseconds(const std::string& key, const std::string& value, TimeNs& out) {
  double ms = 0;
  const auto got = std::from_chars(value.data(), value.data() + value.size(), ms);
  if (got.ec != std::errc{} || got.ptr != value.data() + value.size() || !(ms >= 0 && ms <= 1e7)) return key + ": must be a number of milliseconds, at most 10000000";
  out = static_cast<TimeNs>(ms * 1e6);
  return {};
}

// Every key that may stand beside a preset.
struct Key {
  const char* name;
  std::string (*apply)(const std::string& key, const std::string& value, Policy& out);
};
#define WORD(field, names) {#field, [](const std::string& k, const std::string& v, Policy& p) { return word(k, v, p.field, names()); }}
#define FLAG(field) {#field, [](const std::string& k, const std::string& v, Policy& p) { return flag(k, v, p.field); }}
#define WHOLE(field) {#field, [](const std::string& k, const std::string& v, Policy& p) { return whole(k, v, p.field); }}
#define SPAN(name, field) {#name, [](const std::string& k, const std::string& v, Policy& p) { return milliseconds(k, v, p.field); }}
constexpr Key kKeys[] = {
    WORD(order, order_names), WORD(drop, drop_names), WORD(place, place_names), WORD(batch, batch_names), WORD(binding, binding_names),
    FLAG(form_ahead), WHOLE(queue_ahead), FLAG(fit), FLAG(reserve_pipelines),
    WORD(downstream, downstream_names), WORD(wait, wait_names), WHOLE(lambda_permille), SPAN(window_ms, window_ns), FLAG(exact_duration),
    FLAG(live_queues), FLAG(forecast), WHOLE(residual_permille), WHOLE(shrink_permille), WORD(split_reading, split_reading_names),
    SPAN(oc_threshold_ms, oc_threshold_ns), WHOLE(oc_alpha_permille), WHOLE(kappa_permille), WHOLE(backlog_permille), WHOLE(young_permille), FLAG(ramp),
    WHOLE(alpha_permille), WHOLE(beta_permille), WHOLE(margin_permille), WHOLE(margin_min_permille),
    WHOLE(margin_max_permille), WHOLE(margin_up_permille), WHOLE(margin_down_permille), FLAG(look_ahead),
    SPAN(look_ahead_ms, look_ahead_ns), SPAN(background_budget_ms, background_budget_ns), SPAN(background_window_ms, background_window_ns),
};
#undef WORD
#undef FLAG
#undef WHOLE
#undef SPAN

}  // namespace

Result<Policy> policy_of(const std::string& name, const PolicySettings& settings) {
  Policy out;
  if (!preset(name, out)) return Error{"no preset '" + name + "'; there are " + std::string(preset_names())};
  for (const auto& [key, value] : settings) {
    const Key* found = nullptr;
    std::vector<std::string> names{"preset"};
    for (const Key& k : kKeys) {
      names.emplace_back(k.name);
      if (key == k.name) found = &k;
    }
    if (found == nullptr) {
      const std::string near = cli::nearest(key, names);
      std::string list;
      for (const auto& n : names) list += (list.empty() ? "" : ", ") + n;
      return Error{key + ": unknown key; " + (near.empty() ? "the keys here are " + list : "did you mean '" + near + "'?")};
    }
    if (std::string problem = found->apply(key, value, out); !problem.empty()) return Error{problem};
  }
  return out;
}

Result<NamedPolicy> read_policy(std::string_view words) {
  const std::size_t end = words.find(':');
  PolicySettings settings;
  for (std::size_t at = end; at != std::string_view::npos;) {
    const std::size_t next = words.find(':', at + 1);
    const std::string_view setting = words.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos) return Error{"'" + std::string(setting) + "' is no setting; write KEY=VALUE, as in leat:order=lbf"};
    settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    at = next;
  }
  const Result<Policy> policy = policy_of(std::string(words.substr(0, end)), settings);
  if (!policy) return Error{policy.error()};
  return NamedPolicy{std::string(words), *policy};
}

Result<std::vector<NamedPolicy>> read_policies(std::string_view list) {
  if (list == "all") list = preset_names();
  std::vector<NamedPolicy> out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::string_view words = list.substr(at, comma - at);
    while (words.starts_with(' ')) words.remove_prefix(1);
    while (words.ends_with(' ')) words.remove_suffix(1);
    Result<NamedPolicy> one = read_policy(words);
    if (!one) return Error{one.error()};
    if (std::ranges::none_of(out, [&](const NamedPolicy& p) { return p.name == words; })) out.push_back(std::move(*one));
    at = comma + 1;
  }
  return out;
}

}  // namespace leat::core
