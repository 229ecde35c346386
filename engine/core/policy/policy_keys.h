// How a preset's settings are read: a table of keys for each scheduler, beside the scheduler. Set-up only; pure.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/policy/policy.h"

namespace leat::core {

using PolicySettings = std::vector<std::pair<std::string, std::string>>;  // key, value

// Empty: understood. Otherwise what is wrong with the value.
[[nodiscard]] std::string read_flag(const std::string& value, bool& out);
[[nodiscard]] std::string read_whole(const std::string& value, std::uint32_t& out);
[[nodiscard]] std::string read_milliseconds(const std::string& value, TimeNs& out);
[[nodiscard]] std::string unknown_word(const std::string& value, std::span<const char* const> words);
// `words` stand in the order of the enum's values, from 0.
template <class Enum, std::size_t n>
[[nodiscard]] std::string read_word(const std::string& value, Enum& out, const char* const (&words)[n]) {
  for (std::size_t i = 0; i < n; ++i) {
    if (value != words[i]) continue;
    out = static_cast<Enum>(i);
    return {};
  }
  return unknown_word(value, words);
}

// For a key that sets one field: reads its value with one of the above.
template <auto field, auto read, class Settings>
[[nodiscard]] std::string read_field(const std::string& value, Settings& out) {
  return read(value, out.*field);
}

template <class Settings>
struct Key {
  const char* name;
  std::string (*read)(const std::string& value, Settings& out);
  bool (*used)(const Settings&) = nullptr;  // nullptr: always
  const char* old_name = nullptr;           // accepted in this version, with a note
};

// A preset: a name, settings, and the keys that may change them.
class Preset {
 public:
  constexpr explicit Preset(const char* name) : name_(name) {}
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  // Empty: `out` is the preset with these settings, or `not_looked_at` is the first key that it does not look at.
  // Otherwise what is wrong with a value, in one line that begins with the key.
  [[nodiscard]] virtual std::string read(const PolicySettings& given, Policy& out,
                                         std::string& not_looked_at) const = 0;
  [[nodiscard]] virtual std::vector<std::string> keys() const = 0;  // that it looks at as it stands

 protected:
  ~Preset() = default;

 private:
  const char* name_;
};

// `into` makes a policy of the settings.
template <class Settings>
class PresetOf : public Preset {
 public:
  constexpr PresetOf(const char* name, const Settings& base, std::span<const Key<Settings>> keys,
                     void (*into)(const Settings&, Policy&))
      : Preset(name), base_(base), keys_(keys), into_(into) {}
  [[nodiscard]] std::string read(const PolicySettings& given, Policy& out, std::string& not_looked_at) const override {
    Settings settings = base_;
    for (const auto& [key, value] : given) {
      const Key<Settings>* k = find(key);
      const std::string problem = k != nullptr           ? k->read(value, settings)
                                  : key == "queue_ahead" ? read_whole(value, out.queue_ahead)
                                                         : std::string{};
      if (!problem.empty()) return key + ": " + problem;
      if (k != nullptr && key != k->name)
        out.notes.push_back(key + " is called " + k->name +
                            " now; write that, the old name goes with the next version");
      out.given.emplace_back(k != nullptr ? k->name : key);
      if (k == nullptr && key != "queue_ahead" && not_looked_at.empty()) not_looked_at = key;
    }
    for (const auto& [key, value] : given) {
      const Key<Settings>* k = find(key);
      if (k != nullptr && k->used != nullptr && !k->used(settings) && not_looked_at.empty()) not_looked_at = key;
    }
    into_(settings, out);
    return {};
  }
  [[nodiscard]] std::vector<std::string> keys() const override { return keys_of(base_); }

 private:
  [[nodiscard]] const Key<Settings>* find(const std::string& name) const {
    for (const Key<Settings>& k : keys_)
      if (name == k.name || (k.old_name != nullptr && name == k.old_name)) return &k;
    return nullptr;
  }
  [[nodiscard]] std::vector<std::string> keys_of(const Settings& settings) const {
    std::vector<std::string> out;
    for (const Key<Settings>& k : keys_)
      if (k.used == nullptr || k.used(settings)) out.emplace_back(k.name);
    out.emplace_back("queue_ahead");
    return out;
  }
  Settings base_;
  std::span<const Key<Settings>> keys_;
  void (*into_)(const Settings&, Policy&);
};

}  // namespace leat::core
