// leatd as a user starts it on this application, with the deadline as its objective, and a process of clients.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bench/alternatives/contenders/contender.h"

namespace leat::bench::alternatives {

// `clients` runs in a process of its own, once leatd serves on the socket; of two users one in a process of each.
using Clients = std::function<Status(const std::string& socket, std::uint32_t party)>;
// application: TOML; empty: `shapes`.
Result<std::unique_ptr<Running>> start_with_leatd(const Run& run, const Clients& clients,
                                                  const std::string& application = "");

}  // namespace leat::bench::alternatives
