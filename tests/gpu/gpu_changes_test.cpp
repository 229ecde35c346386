// Partitions that come, go and get another size while leatd serves: cores, shares of a GPU and MIG instances, over the
// stand-in drivers, by a configuration that is read again.
#include <string>
#include <vector>

#include "tests/gpu/gpu_fixture.h"
#include "tests/serving/change_helpers.h"

namespace leat::test {
namespace {

TEST(PartitionsAtRunTime, SharesCoresAndInstancesComeGoAndGetAnotherSize) {
  (void)gpus();
  const std::string share = partition_on("share", "mps", 0, 30), cores = partition_on("cores", "cpu", 0),
                    whole = partition_on("whole", "gpu", 1);
  const auto with = [](const std::string& list) { return shapes_on(list, "", split().profiles); };
  Leatd leatd(with(share));
  Load load(leatd, "shapes", 64);
  ASSERT_TRUE(eventually([&] { return load.so_far > 4; })) << leatd.log();
  struct Step {
    std::string partitions;
    std::size_t count;
  };
  const std::vector<Step> steps = {
      {partition_on("share", "mps", 0, 50), 1},                                       // a larger share
      {partition_on("share", "mps", 0, 50) + partition_on("more", "mps", 0, 20), 2},  // and another one beside it
      {share + cores, 2},                                                             // smaller; cores come
      {share + cores + whole, 3},                                                     // a GPU that nobody had
      {whole + partition_on("instance", "mig", fake::uuid_text(2, 1, 0)), 2},         // an instance; cores go
      {share, 1}};
  for (const Step& step : steps) {
    leatd.rewrite(with(step.partitions));
    const Json done = changed(leatd, of_kind(shm::ChangeKind::reload));
    ASSERT_EQ(state(done), "done") << done.dump() << step.partitions << leatd.log();
    const Json partitions = Json::parse(leatd.status_json()).at("partitions");
    EXPECT_EQ(partitions.size(), step.count) << partitions.dump();
    const std::uint64_t then = load.so_far;
    ASSERT_TRUE(eventually([&] { return load.so_far > then + 4; })) << leatd.log();
  }
  expect_sound(load, leatd);
  EXPECT_EQ(load.served(), load.answered) << leatd.log();
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
