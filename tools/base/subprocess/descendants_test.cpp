#include "tools/base/subprocess/descendants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/base/subprocess/process.h"

namespace leat::subprocess {
namespace {

using ::testing::Contains;
constexpr std::chrono::seconds kEnough{20};

TEST(Descendants, WhateverDetachesIsFoundAndKilled) {
  ASSERT_TRUE(adopt_orphans().ok());
  // A grandchild in a session of its own, whose parent has ended.
  auto process = Process::start({.words = {"sh", "-c", "setsid sleep 1000 & exit 0"}, .group = Group::session});
  ASSERT_TRUE(process.ok()) << process.error();
  EXPECT_THAT(children_of(::getpid()), Contains(process->pid()));
  EXPECT_TRUE(process->wait(after(kEnough)).clean());
  const auto killed = kill_descendants(after(kEnough));
  ASSERT_TRUE(killed.ok()) << killed.error();
  EXPECT_EQ(*killed, 1);
  EXPECT_TRUE(children_of(::getpid()).empty());
}

}  // namespace
}  // namespace leat::subprocess
