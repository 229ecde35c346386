// Lists of cores, and the memory near to them on hosts that hwloc makes up.
#include "tools/base/cores/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "tools/base/cores/core_count.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Cores, ListsAreReadAndWritten) {
  EXPECT_EQ(*parse_cores("0-2,5"), (std::vector<std::uint32_t>{0, 1, 2, 5}));
  EXPECT_EQ(*parse_cores("3,3,1"), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(cores_text(*parse_cores("0-2,5,7-8")), "0-2,5,7-8");
  EXPECT_EQ(cores_text({}), "");
  EXPECT_EQ(*parse_cores("4095"), (std::vector<std::uint32_t>{4095}));
  for (const char* bad : {"", "a", "1-", "3-1", "1,", "-1", "99999", "1 2", "0-1-2", ",1", "1,,2", "4096", "3-1,5"})
    EXPECT_FALSE(parse_cores(bad).ok()) << bad;
}

TEST(Cores, ThisHostHasSome) {
  const auto cores = usable_cores();
  ASSERT_TRUE(cores.ok()) << cores.error();
  EXPECT_FALSE(cores->empty());
  EXPECT_GE(core_count(), 1U);
}

// A host of hwloc's making, for as long as this stands.
class MadeUp {
 public:
  explicit MadeUp(const char* host) { ::setenv("HWLOC_SYNTHETIC", host, 1); }
  ~MadeUp() {
    ::unsetenv("HWLOC_SYNTHETIC");
    ::unsetenv("HWLOC_THISSYSTEM");
  }
};

TEST(MemoryNodes, AreThoseOfTheCores) {
  const MadeUp host("node:2 core:4 pu:1");
  const auto nodes = [](std::vector<std::uint32_t> cores) { return *memory_nodes(cores); };
  EXPECT_THAT(nodes({1, 2}), ElementsAre(0));
  EXPECT_THAT(nodes({4, 7}), ElementsAre(1));
  EXPECT_THAT(nodes({3, 4}), ElementsAre(0, 1));
}

TEST(MemoryNodes, OfOneNodeThereIsNothingToSay) {
  const MadeUp host("node:1 core:4 pu:1");
  EXPECT_THAT(*memory_nodes(std::vector<std::uint32_t>{1, 2}), IsEmpty());
}

// The kernel's policy of this thread, after binding it on a host of these nodes; the first of them is this machine's.
int policy_after(const char* host) {
  const MadeUp made(host);
  ::setenv("HWLOC_THISSYSTEM", "1", 1);
  const std::uint32_t cores[] = {0};
  if (const Status bound = bind_memory(cores); !bound.ok()) return -1;
  int policy = -1;
  return ::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, nullptr, 0UL) == 0 ? policy : -1;
}

TEST(MemoryNodes, BindingIsThePolicyOfTheThreadWhereThereAreSeveral) {
  EXPECT_EXIT(std::_Exit(policy_after("node:1 core:2 pu:1") == MPOL_DEFAULT ? 0 : 1), testing::ExitedWithCode(0), "");
  if (::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL) != 0)
    GTEST_SKIP() << "set_mempolicy is not permitted here";
  constexpr int kPreferredMany = 5;  // of Linux 5.15 and later, as newer releases of hwloc have it
  const auto preferred = [](int policy) { return policy == MPOL_PREFERRED || policy == kPreferredMany; };
  EXPECT_EXIT(std::_Exit(preferred(policy_after("node:2 core:2 pu:1")) ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace leat
