#include "engine/core/policy_words.h"

#include <algorithm>
#include <charconv>

#include "tools/words/nearest.h"

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
  if (got.ec != std::errc{} || got.ptr != value.data() + value.size() || !(ms >= 0 && ms <= 1e7))
    return key + ": must be a number of milliseconds, at most 10000000";
  out = static_cast<TimeNs>(ms * 1e6);
  return {};
}

// Every key that may stand beside a preset, and whether what the settings choose looks at it.
struct Key {
  const char* name;
  std::string (*apply)(const std::string& key, const std::string& value, Policy& out);
  bool (*used)(const Policy& p);
};

bool queues(const Policy& p) { return p.place != Place::reservation; }
bool early(const Policy& p) { return queues(p) && p.binding == Binding::early; }
bool proactive(const Policy& p) { return p.drop == Drop::proactive; }
bool averages(const Policy& p) { return proactive(p) && p.downstream == Downstream::all && !p.forecast; }
bool always(const Policy&) { return true; }

#define WORD(field, names, used)                                                                                     \
  {                                                                                                                  \
#field, [](const std::string& k, const std::string& v, Policy& p) { return word(k, v, p.field, names()); }, used \
  }
#define FLAG(field, used)                                                                                   \
  {                                                                                                         \
#field, [](const std::string& k, const std::string& v, Policy& p) { return flag(k, v, p.field); }, used \
  }
#define WHOLE(field, used)                                                                                   \
  {                                                                                                          \
#field, [](const std::string& k, const std::string& v, Policy& p) { return whole(k, v, p.field); }, used \
  }
#define SPAN(name, field, used)                                                                                    \
  {                                                                                                                \
#name, [](const std::string& k, const std::string& v, Policy& p) { return milliseconds(k, v, p.field); }, used \
  }
#define WHERE(condition) [](const Policy& p) { return condition; }
constexpr Key kKeys[] = {
    WORD(order, order_names, always),
    WORD(drop, drop_names, always),
    // With late binding a task has no server until one is idle: nothing is placed.
    WORD(place, place_names,
         WHERE(!queues(p) || p.binding == Binding::early ||
               (p.place != Place::tc && p.place != Place::tc_rates && p.place != Place::rr &&
                p.place != Place::least_wait))),
    WORD(batch, batch_names, always),
    WORD(binding, binding_names, queues),
    FLAG(form_ahead, early),
    WHOLE(queue_ahead, always),
    FLAG(fit, WHERE(queues(p) && p.binding == Binding::late)),
    FLAG(append_only, WHERE(!queues(p) && (p.batch == Batching::search_down || p.batch == Batching::reactive))),
    FLAG(as_simulated, WHERE(!queues(p) && p.batch == Batching::search_down)),
    FLAG(reserve_pipelines, queues),
    WORD(windows, windows_names, queues),
    WHOLE(risk_permille, WHERE(queues(p) && p.windows != WindowRule::none)),
    WORD(downstream, downstream_names, proactive),
    WORD(wait, wait_names, averages),
    WHOLE(lambda_permille, WHERE(averages(p) && p.wait == WaitEstimate::quantile)),
    SPAN(window_ms, window_ns,
         WHERE(averages(p) || p.order == Order::adaptive || p.order == Order::instant ||
               p.drop == Drop::overload_control || p.drop == Drop::dynamic_split)),
    FLAG(exact_duration,
         WHERE(!p.forecast && p.drop != Drop::none && p.drop != Drop::expired && p.drop != Drop::overload_control)),
    FLAG(live_queues, averages),
    FLAG(forecast, WHERE(proactive(p) || p.kappa_permille > 0 || !queues(p))),
    WHOLE(residual_permille, WHERE(p.forecast)),
    WHOLE(shrink_permille, WHERE(queues(p) && p.kappa_permille > 0)),
    WORD(split_reading, split_reading_names, WHERE(p.drop == Drop::split)),
    SPAN(oc_threshold_ms, oc_threshold_ns, WHERE(p.drop == Drop::overload_control)),
    WHOLE(oc_alpha_permille, WHERE(p.drop == Drop::overload_control)),
    WHOLE(kappa_permille, queues),
    WHOLE(backlog_permille, WHERE(queues(p) && p.order == Order::backlog)),
    WHOLE(young_permille, WHERE(queues(p) && p.order == Order::backlog && p.ramp && p.kappa_permille > 0)),
    FLAG(ramp, WHERE(queues(p) && p.kappa_permille > 0)),
    WHOLE(alpha_permille, WHERE(p.place == Place::elsa)),
    WHOLE(beta_permille, WHERE(p.place == Place::elsa)),
    WHOLE(margin_permille, WHERE(p.look_ahead)),
    WHOLE(margin_min_permille, WHERE(p.look_ahead)),
    WHOLE(margin_max_permille, WHERE(p.look_ahead)),
    WHOLE(margin_up_permille, WHERE(p.look_ahead)),
    WHOLE(margin_down_permille, WHERE(p.look_ahead)),
    FLAG(canaries, WHERE(p.drop != Drop::none)),
    FLAG(look_ahead, queues),
    SPAN(look_ahead_ms, look_ahead_ns, WHERE(p.look_ahead)),
    SPAN(background_budget_ms, background_budget_ns, WHERE(p.look_ahead)),
    SPAN(background_window_ms, background_window_ns, WHERE(p.look_ahead&& p.background_budget_ns > 0)),
};
#undef WORD
#undef FLAG
#undef WHOLE
#undef SPAN
#undef WHERE

// Empty: every key is looked at.
std::string unused(const std::string& preset, const PolicySettings& settings, const Policy& policy) {
  for (const auto& [key, value] : settings) {
    std::string list;
    bool used = false;
    for (const Key& k : kKeys) {
      if (!k.used(policy)) continue;
      used = used || key == k.name;
      list += (list.empty() ? "" : ", ") + std::string(k.name);
    }
    if (!used)
      return key + ": '" + preset + "' with these settings does not look at it; leave it out, the keys here are " +
             list;
  }
  return {};
}

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
      const std::string near = words::nearest(key, names);
      std::string list;
      for (const auto& n : names) list += (list.empty() ? "" : ", ") + n;
      return Error{key + ": unknown key; " +
                   (near.empty() ? "the keys here are " + list : "did you mean '" + near + "'?")};
    }
    if (std::string problem = found->apply(key, value, out); !problem.empty()) return Error{problem};
  }
  if (std::string problem = unused(name, settings, out); !problem.empty()) return Error{problem};
  return out;
}

Result<NamedPolicy> read_policy(std::string_view words) {
  const std::size_t end = words.find(':');
  PolicySettings settings;
  for (std::size_t at = end; at != std::string_view::npos;) {
    const std::size_t next = words.find(':', at + 1);
    const std::string_view setting = words.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos)
      return Error{"'" + std::string(setting) + "' is no setting; write KEY=VALUE, as in leat:order=lbf"};
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
    if (std::ranges::none_of(out, [&](const NamedPolicy& p) { return p.name == words; }))
      out.push_back(std::move(*one));
    at = comma + 1;
  }
  return out;
}

}  // namespace leat::core
