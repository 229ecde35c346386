// Where memory does not hold all models: sets of models that follow the load by themselves, in a leatd with workers,
// one partition after the other and no model without a partition; a planner that fails, hangs or answers nonsense; and
// no change at all where every partition holds everything.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/serving/change_helpers.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

// Applications a, b, c, d of 100 MiB each.
std::string configuration(int partitions, int room_mib, const std::string& daemon) {
  std::string out = "[daemon]\nplan = \"auto\"\nreplan = \"auto\"\nreplan_look_ms = 300\n" + daemon +
                    "[[partition]]\nname = \"p\"\nkind = \"emulated\"\ncount = " + std::to_string(partitions) +
                    "\nmemory_mib = " + std::to_string(room_mib) + "\n";
  for (const char* name : {"a", "b", "c", "d"})
    out += std::string("[[application]]\nname = \"") + name +
           "\"\nslo_ms = 2000\n[[application.module]]\nname = \"m\"\nbatch = 2\nlatency_ms = [10, 15]\n"
           "memory_mib = 100\n";
  return out;
}

Json status(const Leatd& leatd) { return Json::try_parse(leatd.status_json()).value_or(Json()); }
Json replan(const Leatd& leatd) { return status(leatd).value("replan", Json::object()); }

int changes(const Leatd& leatd) { return replan(leatd).value("changes", 0); }
int failures(const Leatd& leatd) { return replan(leatd).value("failures", 0); }

// For as long as it lives leatd finds this program in leat-plan's place.
class Planner {
 public:
  explicit Planner(const std::string& script) {
    const std::string file = folder_.write("leat-plan", "#!/bin/sh\n" + script + "\n");
    chmod(file.c_str(), 0755);
    ::setenv("LEAT_PLAN", file.c_str(), 1);
  }
  ~Planner() { ::unsetenv("LEAT_PLAN"); }
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

 private:
  ScratchFolder folder_;
};

TEST(Residency, FollowsTheLoadFromOneApplicationToAnother) {
  Leatd leatd(configuration(4, 200, ""));
  EXPECT_EQ(replan(leatd).value("state", ""), "watching") << leatd.log();
  {
    Load first(leatd, "a", 32, LEAT_FORMAT_gray8), more(leatd, "a", 32, LEAT_FORMAT_gray8);
    ASSERT_TRUE(eventually([&] { return changes(leatd) >= 1; }, 60000ms)) << replan(leatd).dump() << leatd.log();
    expect_sound(first, leatd);
    expect_sound(more, leatd);
    EXPECT_EQ(first.served(), first.answered);
  }
  const int before = changes(leatd);
  Load second(leatd, "c", 32, LEAT_FORMAT_gray8), more(leatd, "c", 32, LEAT_FORMAT_gray8);
  ASSERT_TRUE(eventually([&] { return changes(leatd) > before; }, 60000ms)) << replan(leatd).dump() << leatd.log();
  const std::uint64_t then = second.so_far;
  ASSERT_TRUE(eventually([&] { return second.so_far > then + 20; })) << leatd.log();
  expect_sound(second, leatd);
  expect_sound(more, leatd);
  EXPECT_EQ(second.served(), second.answered);
  // Those that nobody asked for are still served.
  for (const char* name : {"b", "d"}) {
    Load other(leatd, name, 32, LEAT_FORMAT_gray8);
    EXPECT_TRUE(eventually([&] { return other.so_far > 4; })) << name << leatd.log();
    expect_sound(other, leatd);
  }
  const Json last = change(leatd);
  EXPECT_EQ(state(last), "done") << last.dump();
  EXPECT_TRUE(last.at("in_place").get<bool>()) << last.dump();
  EXPECT_NE(leatd.log().find(" in the place of "), std::string::npos) << leatd.log();
  const auto daemon = leatd.record(shm::RecordKind::daemon, 0);
  ASSERT_TRUE(daemon);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(Residency, NothingChangesWhereEveryPartitionHoldsEverything) {
  const Planner never("echo asked >> \"$0.asked\"; exit 3");
  std::string all = configuration(2, 400, "");
  all.replace(all.find("plan = \"auto\""), 13, "");
  Leatd leatd(all);
  Load load(leatd, "a", 32, LEAT_FORMAT_gray8), more(leatd, "a", 32, LEAT_FORMAT_gray8);
  ASSERT_TRUE(eventually([&] { return load.so_far > 200; }, 60000ms)) << leatd.log();
  EXPECT_EQ(replan(leatd).value("state", ""), "all resident") << leatd.log();
  EXPECT_EQ(changes(leatd) + failures(leatd), 0);
  EXPECT_FALSE(std::ifstream(std::string(std::getenv("LEAT_PLAN")) + ".asked").good());
  expect_sound(load, leatd);
  expect_sound(more, leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// At start the right one plans; then whatever is in its place is asked.
TEST(Residency, APlannerThatFailsHangsOrAnswersNonsenseChangesNothing) {
  const std::map<std::string, std::string> scripts = {
      {"echo 'no plan today' >&2; exit 2", "no plan today"},
      {"kill -9 $$", "signal 9"},
      {"while [ \"$1\" != -o ]; do shift; done; echo '{\"schema\": \"nonsense\"}' > \"$2\"", "schema"},
      {"exit 0", "left no plan"}};
  for (const auto& [script, said] : scripts) {
    const Planner planner("case \"$*\" in *--from*) " + script + ";; *) exec \"" LEAT_PLAN_BINARY "\" \"$@\";; esac");
    Leatd leatd(configuration(4, 200, ""));
    Load load(leatd, "a", 32, LEAT_FORMAT_gray8), more(leatd, "a", 32, LEAT_FORMAT_gray8);
    ASSERT_TRUE(eventually([&] { return failures(leatd) >= 1; }, 60000ms)) << script << leatd.log();
    EXPECT_EQ(changes(leatd), 0) << script;
    EXPECT_NE(replan(leatd).value("line", "").find(said), std::string::npos) << replan(leatd).dump();
    EXPECT_NE(leatd.log().find("; the plan in force stays"), std::string::npos) << leatd.log();
    const std::uint64_t then = load.so_far;
    EXPECT_TRUE(eventually([&] { return load.so_far > then + 10; })) << leatd.log();
    expect_sound(load, leatd);
    expect_sound(more, leatd);
    EXPECT_EQ(leatd.stop(), 0) << leatd.log();
  }
}

// leatd serves on while it waits, and ends it.
TEST(Residency, APlannerThatHangsIsKilled) {
  const Planner planner("case \"$*\" in *--from*) exec sleep 600;; *) exec \"" LEAT_PLAN_BINARY "\" \"$@\";; esac");
  Leatd leatd(configuration(4, 200, ""));
  Load load(leatd, "a", 32, LEAT_FORMAT_gray8), more(leatd, "a", 32, LEAT_FORMAT_gray8);
  ASSERT_TRUE(eventually([&] { return replan(leatd).value("state", "") == "planning"; }, 60000ms)) << leatd.log();
  const std::uint64_t then = load.so_far;
  EXPECT_TRUE(eventually([&] { return load.so_far > then + 10; })) << leatd.log();
  ASSERT_TRUE(eventually([&] { return failures(leatd) >= 1; }, 60000ms)) << leatd.log();
  EXPECT_NE(replan(leatd).value("line", "").find("was stopped after 10 s"), std::string::npos);
  expect_sound(load, leatd);
  expect_sound(more, leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// A worker that is to take other models is killed in the middle of it: the partition comes back, and all are served.
TEST(Residency, AWorkerThatDiesInAStepLeavesEveryModelServed) {
  Leatd leatd(configuration(4, 200, ""));
  const std::vector<pid_t> first = children_of(leatd.pid());  // before there is a load to follow
  const std::set<pid_t> known(first.begin(), first.end());
  Load load(leatd, "a", 32, LEAT_FORMAT_gray8), more(leatd, "a", 32, LEAT_FORMAT_gray8);
  ASSERT_TRUE(eventually(
      [&] {
        if (!change(leatd).is_object()) return false;
        bool killed = false;
        for (const pid_t pid : children_of(leatd.pid()))
          if (!known.contains(pid)) killed = ::kill(pid, SIGKILL) == 0 || killed;
        return killed;
      },
      60000ms))
      << leatd.log();
  ASSERT_TRUE(eventually([&] { return change(leatd).at("over").get<bool>(); }, 60000ms)) << leatd.log();
  ASSERT_TRUE(eventually([&] { return status(leatd).at("partitions").size() == 4U; }, 60000ms)) << leatd.log();
  load.end();
  more.end();
  EXPECT_EQ(load.submitted, load.answered);
  for (const char* name : {"a", "b", "c", "d"}) {
    Load other(leatd, name, 32, LEAT_FORMAT_gray8);
    EXPECT_TRUE(eventually([&] { return other.so_far > 4; })) << name << leatd.log();
    other.end();
    EXPECT_EQ(other.submitted, other.answered);
  }
  expect_balance(leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

TEST(Residency, AModelWithoutItsMemoryAndPartitionsTooSmallAreRefused) {
  ScratchFolder folder;
  std::string unknown = configuration(2, 200, "");
  unknown.replace(unknown.rfind("memory_mib = 100\n"), 17, "");
  std::string unplanned = configuration(2, 200, "");
  unplanned.replace(unplanned.find("plan = \"auto\""), 13, "");
  for (const auto& [text, said] :
       {std::pair{unknown, "every module must say what it takes"}, std::pair{unplanned, "is to hold take 400"}}) {
    const Exit end = run_to_end({LEATD_BINARY, "--check", folder.write("leatd.toml", text)});
    EXPECT_NE(end.status, 0);
    EXPECT_NE(end.err.find(said), std::string::npos) << end.err;
  }
}

}  // namespace
}  // namespace leat::test
