// What leatd does about its own process before it starts others. Thread rule: main(), before any thread.
#pragma once

#include "engine/daemon/configuration/config.h"

namespace leat::daemon {

// leatd is root and gives its workers no other user.
[[nodiscard]] bool workers_are_root(const Config& config) noexcept;

// Nobody of its own user, its workers among them, can read its memory, trace it or take its descriptors from now on
// (Sandbox::off: they can, for a debugger's sake); and says in one line where its workers are root.
void guard_itself(const Config& config);

// Each client needs a few descriptors and each stream some more; the default soft limit of 1024 is soon reached, so it
// is raised to the hard one.
void raise_open_files() noexcept;

}  // namespace leat::daemon
