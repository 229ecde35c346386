#include "engine/core/policy/policy_settings.h"

#include <algorithm>
#include <charconv>

#include "engine/core/model/model.h"
#include "engine/core/policy/registry.h"
#include "tools/base/text/nearest.h"

namespace leat::core {
namespace {

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

bool looks_ahead(const Policy& p) { return p.look_ahead; }
bool has_background(const Policy& p) { return p.look_ahead && p.background_budget_ns > 0; }

constexpr Key<Policy> kLeatKeys[] = {
    {.name = "batch_latency_share_permille",
     .read = read_field<&Policy::batch_latency_share_permille, read_whole>,
     .old_name = "kappa_permille"},
    {.name = "risk_permille", .read = read_field<&Policy::risk_permille, read_whole>},
    {.name = "canaries", .read = read_field<&Policy::canaries, read_flag>},
    {.name = "look_ahead", .read = read_field<&Policy::look_ahead, read_flag>},
    {.name = "background_budget_ms",
     .read = read_field<&Policy::background_budget_ns, read_milliseconds>,
     .used = looks_ahead},
    {.name = "background_window_ms",
     .read = read_field<&Policy::background_window_ns, read_milliseconds>,
     .used = has_background},
};

void use(const Policy& settings, Policy& out) {
  const Policy read = std::move(out);
  out = settings;
  out.queue_ahead = read.queue_ahead;
  out.given = read.given;
  out.notes = read.notes;
}

// What Leat's schedulers are, to one who sets them.
constexpr const char* kOwnNames[] = {"reservations (a model cut over several partitions)",
                                     "windows (modules that share partitions)",
                                     "queues (every module has partitions of its own)"};

// Which of them look at a key; those not here all do.
struct Lookers {
  const char* key;
  std::vector<Own> own;
};
const Lookers kLookers[] = {{"batch_latency_share_permille", {Own::queues}},
                            {"risk_permille", {Own::windows}},
                            {"look_ahead", {Own::windows, Own::queues}},
                            {"background_budget_ms", {Own::windows, Own::queues}},
                            {"background_window_ms", {Own::windows, Own::queues}}};

std::string described(const std::vector<Own>& own) {
  std::vector<std::string> names;
  for (const Own o : own) names.emplace_back(kOwnNames[static_cast<std::size_t>(o)]);
  return listed(names);
}

// The presets that look at the key.
std::string lookers(const std::string& key, Presets from) {
  std::vector<std::string> names;
  for (const Preset* p : from)
    if (std::ranges::count(p->keys(), key) > 0) names.emplace_back(p->name());
  return listed(names);
}

}  // namespace

std::string read_flag(const std::string& value, bool& out) {
  if (value != "true" && value != "false") return "must be true or false";
  out = value == "true";
  return {};
}

std::string read_whole(const std::string& value, std::uint32_t& out) {
  const auto got = std::from_chars(value.data(), value.data() + value.size(), out);
  if (got.ec == std::errc{} && got.ptr == value.data() + value.size() && out <= 1'000'000) return {};
  return "must be a whole number from 0 to 1000000";
}

std::string read_milliseconds(const std::string& value, TimeNs& out) {
  double ms = 0;
  const auto got = std::from_chars(value.data(), value.data() + value.size(), ms);
  if (got.ec != std::errc{} || got.ptr != value.data() + value.size() || !(ms >= 0 && ms <= 1e7))
    return "must be a number of milliseconds, at most 10000000";
  out = static_cast<TimeNs>(ms * 1e6);
  return {};
}

std::string unknown_word(const std::string& value, std::span<const char* const> words) {
  return "'" + value + "' is not known; use one of " + listed({words.begin(), words.end()});
}

PresetOf<Policy> leat_preset(const char* name, const LeatVariant& variant) {
  Policy settings;
  settings.variant = variant;
  return {name, settings, kLeatKeys, use};
}

Presets presets() noexcept {
  static const PresetOf<Policy> leat = leat_preset("leat", {});
  static const Preset* const all[] = {&leat};
  return all;
}

std::string preset_names(Presets from) {
  std::vector<std::string> names;
  for (const Preset* p : from) names.emplace_back(p->name());
  return listed(names);
}

bool preset(std::string_view name, Policy& out, Presets from) {
  const auto found = std::ranges::find(from, name, &Preset::name);
  if (found == from.end()) return false;
  out = Policy{};
  std::string not_looked_at;
  return (*found)->read({}, out, not_looked_at).empty();
}

Result<Policy> policy_of(const std::string& name, const PolicySettings& settings, Presets from) {
  const auto found = std::ranges::find(from, name, &Preset::name);
  if (found == from.end()) return Error{"no preset '" + name + "'; there are " + preset_names(from)};
  const Preset& preset = **found;
  Policy out;
  std::string not_looked_at;
  const std::string problem = preset.read(settings, out, not_looked_at);
  if (!problem.empty()) return Error{problem};
  if (not_looked_at.empty()) return out;
  const std::string& key = not_looked_at;
  std::vector<std::string> known = preset.keys();
  if (const std::string others = lookers(key, from); !others.empty())
    return Error{key + ": '" + name + "' with these settings does not look at it; leave it out, the keys here are " +
                 listed(known) + " (presets that look at " + key + ": " + others + ")"};
  known.emplace_back("preset");
  const std::string near = text::nearest(key, known);
  return Error{key + ": unknown key; " +
               (near.empty() ? "the keys here are " + listed(known) : "did you mean '" + near + "'?")};
}

std::string idle_setting(const Policy& policy, const Topology& topology) {
  if (policy.scheduler != nullptr || policy.given.empty()) return {};
  std::vector<Own> here;
  const Model model(topology);
  for (const Component& c : model.components()) {
    const Own own = own_scheduler(policy.variant, c);
    if (std::ranges::count(here, own) == 0) here.push_back(own);
  }
  for (const std::string& key : policy.given) {
    const auto* row = std::ranges::find(kLookers, key, &Lookers::key);
    if (row == std::end(kLookers) || std::ranges::find_first_of(row->own, here) != row->own.end()) continue;
    return key + ": nothing here looks at it: this plan is served by " + described(here) + "; " + described(row->own) +
           " would. Leave it out";
  }
  return {};
}

Result<NamedPolicy> read_policy(std::string_view words, Presets from) {
  const std::size_t end = words.find(':');
  PolicySettings settings;
  for (std::size_t at = end; at != std::string_view::npos;) {
    const std::size_t next = words.find(':', at + 1);
    const std::string_view setting = words.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos)
      return Error{"'" + std::string(setting) + "' is no setting; write KEY=VALUE, as in leat:risk_permille=2000"};
    settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    at = next;
  }
  const Result<Policy> policy = policy_of(std::string(words.substr(0, end)), settings, from);
  if (!policy) return Error{policy.error()};
  return NamedPolicy{std::string(words), *policy};
}

Result<std::vector<NamedPolicy>> read_policies(std::string_view list, Presets from) {
  const std::string all = preset_names(from);
  if (list == "all") list = all;
  std::vector<NamedPolicy> out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::string_view words = list.substr(at, comma - at);
    while (words.starts_with(' ')) words.remove_prefix(1);
    while (words.ends_with(' ')) words.remove_suffix(1);
    Result<NamedPolicy> one = read_policy(words, from);
    if (!one) return Error{one.error()};
    if (std::ranges::none_of(out, [&](const NamedPolicy& p) { return p.name == words; }))
      out.push_back(std::move(*one));
    at = comma + 1;
  }
  return out;
}

}  // namespace leat::core
