// What leatd is asked to become while it serves, and the configuration that follows: its file as it lies there now, and
// what commands have added to it since the start. Errors are one line. Thread rule: values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "leat/result.hpp"

namespace leat::daemon {

struct ChangeRequest {
  enum class Kind : std::uint8_t { reload = 1, plan = 2, load = 3, unload = 4, replace = 5 };
  Kind kind = Kind::reload;
  bool dry_run = false;  // only what would be done
  // load: an application's name; unload: that; replace: "application" or "application/module".
  std::string name;
  // plan: the plan's path; load: [[application]] tables, TOML; replace: the model's path. Paths are absolute.
  std::string text;
  std::int64_t trial_ns = 5'000'000'000;  // how long a new version of a model is watched
  // plan: leatd's own, for the configuration in force; in status and log it is called `why`.
  bool automatic = false;
  std::string why;
};
[[nodiscard]] const char* name_of(ChangeRequest::Kind kind) noexcept;
// "leat load of 'shapes'", for messages.
[[nodiscard]] std::string text_of(const ChangeRequest& request);

// What commands have said beside the file. What was loaded stays when the file is read again; what it says itself of
// the rest then holds.
struct Additions {
  std::vector<std::pair<std::string, std::string>> loaded;  // an application's name, its TOML
  std::set<std::string> unloaded;                           // applications of the file
  std::map<std::string, std::string> models;                // "application/module": the model in place of the file's
  std::string plan;                                         // in place of the file's; empty: as that says
  std::string own_plan;  // leatd's own, in place of that while applications and modules are those it is for
};

// Error: the request names nothing there is, or something that there is already.
Result<Additions> with(Additions additions, const ChangeRequest& request, const Config& running);

// The configuration as its file and the additions say it. What a command line has said in the place of keys stays.
Result<Config> read_wanted(const Config& running, const Additions& additions);

// What of the wanted configuration only a new start can put in force, in one line that names it; empty: nothing.
[[nodiscard]] std::string needs_restart(const Config& running, const Config& wanted);

}  // namespace leat::daemon
