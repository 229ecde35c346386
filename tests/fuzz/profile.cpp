// Profiles: any text is a profile that says the same when written and read again, or an error; its table answers for
// every class and batch it has.
#include "planner/io/profile_io.h"
#include "planner/profile_table.h"
#include "tests/fuzz/harness.h"

namespace leat::fuzz {

std::vector<std::string> seeds() {
  planner::Profile profile;
  profile.model = "m";
  profile.blocks = 2;
  profile.boundary_bytes = {100};
  profile.cuts = {"t"};
  for (const std::uint32_t batch : {1U, 2U, 4U})
    profile.rows.push_back({.partition_class = "c",
                            .share = 1,
                            .batch = batch,
                            .blocks = {{1000 * batch, 1200 * batch, 9, 0}, {500 * batch, 600 * batch, 9, 0}}});
  return {planner::profile_to_json(profile)};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  const auto profile = planner::parse_profile({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!profile.ok()) {
    fuzz::insist(!profile.error().empty(), "an error without a text");
    return 0;
  }
  const std::string text = planner::profile_to_json(*profile);
  const auto again = planner::parse_profile(text, "again");
  fuzz::insist(again.ok(), "a profile that cannot be read again");
  fuzz::insist(planner::profile_to_json(*again) == text, "a profile that reads otherwise than it was written");
  const planner::ProfileTable table(*profile);
  for (const auto& row : profile->rows) {
    const std::uint32_t largest = table.largest_batch(row.partition_class, row.share);
    if (largest != 0 && profile->blocks != 0)
      (void)table.p50_ns(row.partition_class, row.share, largest, 0, profile->blocks);
  }
  return 0;
}
