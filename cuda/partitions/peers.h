// How data gets from one device to another when two processes serve on them: asked of each ordered pair with two
// processes, as in serving. One makes memory and fills it with a pattern, the other maps it, copies it and looks
// whether every word is what it should be: a mapping that succeeds proves nothing. Runs no kernel. Thread rule: one
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/runtime/child.h"
#include "leat/result.hpp"

namespace leat::partitions {

struct Pair {
  std::string from, to;   // UUIDs
  bool in_place = false;  // one GPU, or one GPU instance: what is mapped there is read where it is
  bool mapped = false;    // the reader can map it, and reads what was written
  double gbps = 0;        // of a copy out of the mapping, 1e9 bit/s; 0: not mapped
  double host_gbps = 0;   // down to pinned host memory and up again; 0: not measured
  std::string why_not;    // not mapped: one line
  [[nodiscard]] double best_gbps() const { return mapped ? gbps : host_gbps; }
};

// Everything that shares no memory with another: whole GPUs, and one compute instance of each GPU instance.
Result<std::vector<std::string>> places();
// One entry for each wish (from, to), in their order. What goes wrong is in the entry.
std::vector<Pair> ask_pairs(const std::vector<std::pair<std::string, std::string>>& wishes);
// Of every ordered pair of places().
Result<std::vector<Pair>> ask_all_pairs();
// What the planner reckons with between two partitions of which nothing else is said: the slowest ordered pair of
// different devices, each by its better way; 0: there is none, or not all of them could be measured.
double handover_gbps(const std::vector<Pair>& pairs);
std::string as_json(const std::vector<Pair>& pairs);
[[nodiscard]] std::string text_of(const Pair& pair);  // "peer, 210 Gbit/s; by the host 92"

// What the two processes of a pair run, for gpu::run_role.
std::span<const gpu::Role> peer_roles();

}  // namespace leat::partitions
