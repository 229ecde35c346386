// Whose subordinate a uid is, by files that play /etc/subuid and /etc/passwd.
#include "engine/daemon/clients/users/subordinate_uids.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace leat::daemon {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr uid_t kLeatd = 990;

class SubordinateUidsTest : public ::testing::Test {
 protected:
  SubordinateUidsTest() : folder_((fs::temp_directory_path() / "leat-subuid-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    write("passwd",
          "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nleat:x:990:990::/:/bin/false\n");
  }
  ~SubordinateUidsTest() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  SubordinateUids made() const { return {folder_ + "/subuid", kLeatd, folder_ + "/passwd"}; }

  std::string folder_;
};

TEST_F(SubordinateUidsTest, CountAsTheLoginThatOwnsTheRange) {
  write("subuid", "alice:100000:65536\n1001:200000:10\nbad line\n:1:2\nx:1\nalice:-5:3\n");
  const SubordinateUids uids = made();
  for (const uid_t uid : {100000u, 100999u, 165535u}) EXPECT_EQ(uids.login_of(uid).uid, 1000u) << uid;
  EXPECT_EQ(uids.login_of(100999).who, "alice (subordinate uid 100999)");
  EXPECT_EQ(uids.login_of(200009).uid, 1001u);
  for (const uid_t uid : {0u, 1000u, 1001u, 99999u, 165536u, 200010u, 65534u, 990u}) {
    EXPECT_EQ(uids.login_of(uid).uid, uid);
    EXPECT_EQ(uids.login_of(uid).who, std::to_string(uid));
  }
}

TEST_F(SubordinateUidsTest, TrustIsNotHandedOn) {
  write("subuid", "root:100000:65536\n0:300000:9\nleat:400000:9\nbob:500000:9\n0x:0:4000000000\nroot:0:4000000000\n");
  const SubordinateUids uids = made();
  EXPECT_EQ(uids.login_of(100999).uid, 100000u);  // one user, whoever of them it is
  EXPECT_EQ(uids.login_of(300005).uid, 300000u);
  EXPECT_EQ(uids.login_of(400005).uid, 400000u);
  EXPECT_EQ(uids.login_of(500005).uid, 500000u);  // nobody knows bob
  EXPECT_EQ(uids.login_of(0).uid, 0u);
  EXPECT_EQ(uids.login_of(kLeatd).uid, kLeatd);
  EXPECT_EQ(uids.login_of(600000).uid, 600000u);  // a range from 0 is none
}

TEST_F(SubordinateUidsTest, AreReadAgainWhenTheFileChangesAndNotMoreThanOnceASecond) {
  write("subuid", "alice:100000:10\n");
  SubordinateUids uids = made();
  uids.look(kSecondNs);
  write("subuid", "alice:100000:10\ncarol:200000:10\n");
  write("passwd", "carol:x:1003:1003::/:/bin/sh\n");  // alice is still known
  uids.look(kSecondNs + kSecondNs / 2);
  EXPECT_EQ(uids.login_of(200005).uid, 200005u);
  uids.look(2 * kSecondNs);
  EXPECT_EQ(uids.login_of(200005).uid, 1003u);
  EXPECT_EQ(uids.login_of(100005).uid, 1000u);
  fs::remove(folder_ + "/subuid");
  uids.look(4 * kSecondNs);
  EXPECT_EQ(uids.login_of(100005).uid, 100005u);
}

TEST_F(SubordinateUidsTest, WhatIsNoFileIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((folder_ + "/subuid").c_str(), 0600), 0);
  EXPECT_EQ(made().login_of(100005).uid, 100005u);
  EXPECT_EQ(SubordinateUids("", kLeatd).login_of(100005).uid, 100005u);
}

}  // namespace
}  // namespace leat::daemon
