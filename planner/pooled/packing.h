// Puts shares onto devices: items of 1/v into devices of 1, each kind apart. Any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::planner {

// shares[k]: item k takes 1/shares[k] of a device. Gives each item's device, or nothing where `devices` are too few for
// what this finds. Equal shares fill devices together first; of the few that are left over every placement is tried
// (first fit when they are many). With shares of 1/1 to 1/4 alone that is never more devices than the shares' sum
// rounded up (a test tries them all).
std::vector<std::uint32_t> pack_shares(const std::vector<std::uint32_t>& shares, std::uint32_t devices);

}  // namespace leat::planner
