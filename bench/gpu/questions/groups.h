// The groups of questions, in the order they are asked; each runs in a process of its own with a time limit, so that a
// lost context or a hang costs one group. One file per group holds its questions. `limit` bounds the whole group.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "bench/gpu/ask.h"
#include "bench/gpu/processes.h"

namespace leat::probe {

struct Group {
  std::string_view name;
  std::string_view title;  // what it asks about, half a line
  void (*run)(Asker&);
  std::chrono::seconds limit, limit_quick;
};

[[nodiscard]] std::span<const Group> groups();
[[nodiscard]] const Group* group_named(std::string_view name);

void ask_devices(Asker& asker);
void ask_handover(Asker& asker);
void ask_mps(Asker& asker);
void ask_green(Asker& asker);
void ask_frames(Asker& asker);
void ask_cudnn(Asker& asker);
void ask_clocks(Asker& asker);

// Microseconds by which a thread that waits for its stream, or for a blocking event, wakes up later than one that spins
// on a pinned word. Of clients' processes alone: how they wait is settled before their context.
std::vector<double> wake_after_word(bool by_event, int repeats);

// Registers a memfd's mapping of so many bytes and lets a kernel add up its words. way: "writable", "read-only"
// (registered as if it could be written) or "read-only, marked". Throws where it is refused, or other bytes are read.
void register_and_read(const std::string& way, std::size_t bytes);

// Roles of the processes that the groups start.
inline constexpr std::string_view kGroupRole = "group", kPeerRole = "handover_peer", kClientRole = "gpu_client";
int run_group(Channel& channel, std::span<const std::string> arguments);  // NAME full|quick
int run_handover_peer(Channel& channel, std::span<const std::string> arguments);
int run_gpu_client(Channel& channel, std::span<const std::string> arguments);

}  // namespace leat::probe
