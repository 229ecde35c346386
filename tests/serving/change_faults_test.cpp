// Everything that can fail in a change while leatd serves, at each of its steps: after each of the failures a plan that
// was good is in force, one line says what failed, every frame has had one answer, and the next change is made.
// (Workers that are killed in every step are in change_test.cpp.)
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "shm/src/protocol/control_protocol.h"
#include "tests/serving/change_helpers.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::int64_t kSecondNs = 1'000'000'000;

// ---- other versions of a model ----

enum class Step : std::uint8_t { reading, starting, second_wave, taking_over, on_trial, emptying, letting_go };

constexpr const char* kSteps[] = {"reading",  "starting", "second wave", "taking over",
                                  "on trial", "emptying", "letting go"};

// What the new version's file says, or does not; of the last two steps what the old one's did.
struct Fault {
  Step step;
  const char* name;
  std::string model;  // faulty.cpp; empty: there is no file
  std::string line;   // a part of it; empty: the change is made all the same
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = {
      {Step::reading, "no file", "", "there is no file"},
      {Step::starting, "refuses", "open=refuse", "the faulty executor refuses"},
      {Step::starting, "no memory", "open=memory", "no memory for it: Cannot allocate memory"},
      {Step::starting, "crashes", "open=crash", "killed by signal 11"},
      {Step::starting, "exits", "open=exit", "ended with status 7"},
      {Step::starting, "junk", "open=junk", "sent a message leatd does not understand"},
      {Step::starting, "hangs up", "open=hangup", "before it was ready"},
      {Step::starting, "refuses its frame", "grey=refuse", "the faulty executor refuses"},
      {Step::starting, "crashes on its frame", "grey=crash", "killed by signal 11"},
      {Step::second_wave, "refuses", "open=refuse on=p1", "the faulty executor refuses"},
      {Step::second_wave, "crashes", "open=crash on=p1", "killed by signal 11"},
      {Step::second_wave, "hangs", "open=hang on=p1", "is not ready; look whether the model loads at all"},
      {Step::taking_over, "another shape", "columns=5", "of another shape than the one before"},
      {Step::taking_over, "no numbers", "grey=nan", "infinite or no numbers in module 'm'"},
      {Step::taking_over, "infinite", "grey=inf", "infinite or no numbers in module 'm'"},
      {Step::taking_over, "slow", "grey=900", "more than its objective of 500"},
      {Step::on_trial, "fails", "later=refuse", "frames have failed"},
      {Step::on_trial, "no numbers", "later=nan", "infinite or no numbers in module 'm'"},
      {Step::on_trial, "infinite", "later=inf", "infinite or no numbers in module 'm'"},
      {Step::on_trial, "slow", "later=900", "a batch, more than its objective of 500"},
      {Step::on_trial, "too slow for the load", "later=350", " objective"},  // frames; on a busy machine also a batch
      {Step::on_trial, "crashes", "later=crash", "killed by signal 11"},
      {Step::on_trial, "exits", "later=exit", "ended with status 7"},
      {Step::on_trial, "junk", "later=junk", "was killed by signal 9"},
      {Step::on_trial, "hangs up", "later=hangup", "ended with status 0"},
      {Step::on_trial, "hangs", "later=hang", "was killed by signal 9"},
      {Step::emptying, "the old one hangs", "later=hang until=HERE", ""},
      {Step::emptying, "the old one crashes", "later=crash until=HERE", ""},
      {Step::letting_go, "the old one does not end", "close=hang", ""},
      {Step::letting_go, "the old one crashes", "close=crash", ""},
  };
  return all;
}

class Faults : public ::testing::Test {
 protected:
  ScratchFolder folder_;
  int versions_ = 0;

  std::string write(const std::string& words) {
    const std::string name = std::to_string(++versions_);
    return folder_.write(name + ".txt", "version=" + name + " " + words);
  }
  // room_mib: of a partition, where the model takes 100; 0: nobody says.
  std::string config(int room_mib = 0) {
    std::string out =
        "[workers]\nsandbox = \"off\"\nworker_start_timeout_ms = 10000\nmax_backoff_ms = 10\n"
        "[limits]\nbatch_timeout_ms = 5000\n";
    for (const char* name : {"p0", "p1"})
      out += std::string("[[partition]]\nname = \"") + name + "\"\nkind = \"cpu\"\ncores = \"0\"\n" +
             (room_mib == 0 ? "" : "memory_mib = " + std::to_string(room_mib) + "\n");
    return out + "[[application]]\nname = \"a\"\nslo_ms = 500\n[[application.module]]\nname = \"m\"\nbatch = 1\n" +
           "executor = \"" FAULTY_EXECUTOR "\"\npreprocess = \"raw\"\npostprocess = \"tensors\"\nmodel = \"" +
           write("") + "\"\n" + (room_mib == 0 ? "" : "memory_mib = 100\n");
  }
  // Again where the host was too slow for the objective, which is not what the file is to show.
  static Json replace(const Leatd& leatd, const std::string& file, std::int64_t trial_ns,
                      const std::string& expected = "") {
    shm::Change what = of_kind(shm::ChangeKind::replace, "a");
    what.trial_ns = trial_ns;
    const auto slow = [](const std::string& line) { return line.find(" objective") != std::string::npos; };
    Json done = changed(leatd, what, file);
    for (int more = 0; more < 5 && !slow(expected) && state(done) == "failed" && slow(line(done)); ++more)
      done = changed(leatd, what, file);
    return done;
  }
  // The number that the version in force answers a frame with; -1: none.
  static int answered(const Leatd& leatd) {
    auto client = Client::connect(leatd.socket(), "asks");
    if (!client.ok()) return -1;
    leat_stream_options o;
    leat_stream_options_init(&o);
    o.application = "a", o.format = LEAT_FORMAT_gray8, o.width = o.height = 16, o.overload = LEAT_OVERLOAD_never_drop;
    auto stream = client->open_stream(o);
    if (!stream.ok()) return -1;
    auto frame = stream->acquire();
    if (!frame || frame->submit() != LEAT_ERROR_ok) return -1;
    const auto answer = client->next_answer(kPatience);
    leat_part_view part;
    float version = -1;
    if (answer && answer->result() != nullptr &&
        leat_part_at(answer->result(), answer->raw().result_bytes, 0, &part) != 0)
      std::memcpy(&version, part.data, sizeof version);
    return static_cast<int>(version);
  }
  static void expect_serves(const Leatd& leatd, int version, const std::string& row) {
    EXPECT_TRUE(eventually([&] { return answered(leatd) == version; }, 60000ms)) << row << leatd.log();
    EXPECT_TRUE(eventually([&] { return children_of(leatd.pid()).size() == 2; }, 60000ms)) << row << leatd.log();
  }
  void expect_the_next_is_made(const Leatd& leatd, const std::string& row) {
    const Json done = replace(leatd, write(""), kSecondNs / 5);
    EXPECT_EQ(state(done), "done") << row << done.dump() << leatd.log();
    expect_serves(leatd, versions_, row);
  }
};

TEST_F(Faults, OfANewVersionLeaveTheOneBeforeServingAndTheNextIsTaken) {
  Leatd leatd(config());
  Load load(leatd, "a", 16, LEAT_FORMAT_gray8);
  std::set<Step> steps;
  for (const Fault& fault : faults()) {
    steps.insert(fault.step);
    if (fault.line.empty()) continue;
    const std::string row = std::string(kSteps[static_cast<std::size_t>(fault.step)]) + ", " + fault.name + ": ";
    const int before = versions_;
    const auto began = std::chrono::steady_clock::now();
    const Json done = replace(leatd, fault.model.empty() ? folder_.path() + "/none.txt" : write(fault.model),
                              fault.step == Step::on_trial ? 12 * kSecondNs : kSecondNs / 5, fault.line);
    EXPECT_EQ(state(done), "failed") << row << done.dump() << leatd.log();
    EXPECT_NE(line(done).find(fault.line), std::string::npos) << row << done.dump() << leatd.log();
    EXPECT_EQ(line(done).find('\n'), std::string::npos) << row << line(done);
    EXPECT_NE(line(done).find(fault.step == Step::on_trial ? "; the version before serves again"
                                                           : "; what was served is served as before"),
              std::string::npos)
        << row << done.dump();
    expect_serves(leatd, before, row);
    expect_the_next_is_made(leatd, row);
    std::printf("%s%.1f s: %s\n", row.c_str(),
                std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), line(done).c_str());
  }
  EXPECT_EQ(steps.size(), std::size(kSteps));
  expect_all_answered(load, leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// What the old one does when it is left: the new one serves whatever that is.
TEST_F(Faults, OfTheOldVersionDoNotKeepTheNewOneFromServing) {
  Leatd leatd(config());
  const std::string here = folder_.path() + "/here";
  for (const Fault& fault : faults()) {
    if (!fault.line.empty()) continue;
    const std::string row = std::string(kSteps[static_cast<std::size_t>(fault.step)]) + ", " + fault.name + ": ";
    std::string words = fault.model;
    if (const auto at = words.find("HERE"); at != std::string::npos) words.replace(at, 4, here);
    ASSERT_EQ(state(replace(leatd, write(words), kSecondNs / 5)), "done") << row << leatd.log();
    Load load(leatd, "a", 16, LEAT_FORMAT_gray8);
    ASSERT_TRUE(eventually([&] { return load.so_far > 10; })) << row << leatd.log();
    (void)folder_.write("here", "");
    expect_the_next_is_made(leatd, row);
    fs::remove(here);
    load.end();
    EXPECT_EQ(load.submitted, load.answered) << row << leatd.log();
  }
  expect_balance(leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// Where memory has no room for both versions and one half of the partitions is exchanged after the other. What fails
// before the streams have gone over brings the old version back; what fails behind leaves the new one on the half that
// has it, and the next change brings the other half back.
TEST_F(Faults, OfAnExchangeByHalvesLeaveAHalfServing) {
  Leatd leatd(config(150));
  Load load(leatd, "a", 16, LEAT_FORMAT_gray8);
  for (const Fault& fault : faults()) {
    const bool behind = fault.step == Step::second_wave;
    const bool brief = std::string(fault.name) == "refuses" || std::string(fault.name) == "fails" ||
                       std::string(fault.name) == "no numbers" || std::string(fault.name) == "crashes";
    if (fault.line.empty() || fault.model.empty() || !brief) continue;
    const std::string row = std::string(kSteps[static_cast<std::size_t>(fault.step)]) + ", " + fault.name + ": ";
    const int before = versions_;
    const Json done =
        replace(leatd, write(fault.model), fault.step == Step::on_trial ? 12 * kSecondNs : kSecondNs / 5, fault.line);
    EXPECT_EQ(state(done), "failed") << row << done.dump() << leatd.log();
    EXPECT_TRUE(done.at("in_place").get<bool>()) << row;
    EXPECT_NE(line(done).find(fault.line), std::string::npos) << row << done.dump() << leatd.log();
    EXPECT_NE(line(done).find(behind ? "; 'p1' stays out; the next change brings that back" : "; what was out is back"),
              std::string::npos)
        << row << done.dump() << leatd.log();
    EXPECT_TRUE(eventually([&] { return answered(leatd) == (behind ? versions_ : before); }, 60000ms))
        << row << leatd.log();
    EXPECT_TRUE(eventually([&] { return children_of(leatd.pid()).size() == (behind ? 1U : 2U); }, 60000ms))
        << row << leatd.log();
    expect_the_next_is_made(leatd, row);
    EXPECT_EQ(Json::parse(leatd.status_json()).at("partitions").size(), 2U) << row;
    std::printf("%s%s\n", row.c_str(), line(done).c_str());
  }
  expect_all_answered(load, leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// leatd itself lacks what it needs for a new worker, for a while.
TEST_F(Faults, OfDescriptorsLeaveEverythingAsItWas) {
  Leatd leatd(config());
  Load load(leatd, "a", 16, LEAT_FORMAT_gray8);
  const std::string good = write("");
  ASSERT_TRUE(eventually([&] { return load.so_far > 10; })) << leatd.log();
  rlimit before{};
  ASSERT_EQ(prlimit(leatd.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  for (int room = 1; room < 12; ++room) {
    leat_error error{};
    auto observer = shm::Observer::connect(leatd.socket(), &error);
    ASSERT_TRUE(observer.ok()) << observer.error();
    const auto number = change(leatd).is_object() ? change(leatd).at("number").get<int>() : 0;
    const auto open =
        std::distance(fs::directory_iterator("/proc/" + std::to_string(leatd.pid()) + "/fd"), fs::directory_iterator());
    const rlimit few{static_cast<rlim_t>(open + room), before.rlim_max};
    ASSERT_EQ(prlimit(leatd.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
    shm::Change what = of_kind(shm::ChangeKind::replace, "a");
    ASSERT_TRUE(observer->change(what, good, &error).ok());
    const auto over = [&] {
      const std::string log = leatd.log();
      const auto at = log.rfind("another version of 'a': reading");
      return log.find("what was served is served as before", at) != std::string::npos ||
             log.find("another version of 'a': done", at) != std::string::npos;
    };
    EXPECT_TRUE(eventually(over, 60000ms)) << room << leatd.log();
    ASSERT_EQ(prlimit(leatd.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
    Json done;
    EXPECT_TRUE(eventually([&] { return (done = change(leatd)).at("over").get<bool>(); }, 60000ms)) << leatd.log();
    ASSERT_EQ(done.at("number").get<int>(), number + 1) << leatd.log();
    std::printf("%d more: %s\n", room, line(done).c_str());
    if (state(done) == "done") break;  // from here on there are enough
    const bool of_its_own = line(done).find("ended with status 127") != std::string::npos;  // the worker has no more
    EXPECT_TRUE(of_its_own || line(done).find("oo many open files") != std::string::npos) << done.dump();
  }
  expect_the_next_is_made(leatd, "descriptors: ");
  expect_sound(load, leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// ---- other plans ----

class PlanFaults : public ::testing::Test {
 protected:
  ScratchFolder folder_;
};

TEST_F(PlanFaults, LeaveAPlanInForceAndTheNextIsTaken) {
  const std::string one = folder_.write("1.json", sets_plan({"ab", "bc", "cd", "da"})),
                    two = folder_.write("2.json", sets_plan({"ac", "bd", "ad", "bc"}));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = sets_plan({"ab", "bc", "cd", "da"});
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> all = {
      {folder_.path() + "/none.json", "none.json"},
      {folder_.path(), "directory"},
      {folder_.write("text.json", "no plan"), "text.json"},
      {folder_.write("schema.json", R"({"schema": "leat-plan/99"})"), "schema"},
      {folder_.write("partition.json", with("\"p0\"", "\"nowhere\"")), "nowhere"},
      {folder_.write("application.json", with("\"a\"", "\"nobody\"")), "nobody"},
      {folder_.write("memory.json", sets_plan({"abc", "bc", "cd", "da"})), "take 300"},
  };
  Leatd leatd(sets_config(one, 4, 200));
  std::vector<std::unique_ptr<Load>> loads;
  for (const char* name : {"a", "b", "c", "d"})
    loads.push_back(std::make_unique<Load>(leatd, name, 32, LEAT_FORMAT_gray8));
  int good = 0;
  for (const auto& [file, words] : all) {
    const Json done = changed(leatd, of_kind(shm::ChangeKind::plan), file);
    EXPECT_EQ(state(done), "failed") << file << done.dump() << leatd.log();
    EXPECT_NE(line(done).find(words), std::string::npos) << done.dump();
    EXPECT_NE(line(done).find("; what was served is served as before"), std::string::npos) << done.dump();
    std::printf("%s\n", line(done).c_str());
    const Json next = changed(leatd, of_kind(shm::ChangeKind::plan), ++good % 2 == 0 ? one : two);
    EXPECT_EQ(state(next), "done") << file << next.dump() << leatd.log();
  }
  for (const auto& load : loads) {
    expect_sound(*load, leatd);
    EXPECT_EQ(load->served(), load->answered) << leatd.log();
  }
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// A change in several steps whose plan is gone before the last of them.
TEST_F(PlanFaults, APlanThatIsGoneBetweenTwoStepsLeavesEveryModelServed) {
  const std::vector<std::string> texts = {sets_plan({"ab", "bc", "cd", "da"}), sets_plan({"ac", "bd", "ad", "bc"})};
  const std::string one = folder_.write("1.json", texts[0]);
  Leatd leatd(sets_config(one, 4, 200));
  std::vector<std::unique_ptr<Load>> loads;
  for (const char* name : {"a", "b", "c", "d"})
    loads.push_back(std::make_unique<Load>(leatd, name, 32, LEAT_FORMAT_gray8));
  const std::string file = folder_.write("gone.json", texts[1]);
  std::atomic<bool> over{false};
  std::thread remover([&] {
    while (!over) {
      const Json now = change(leatd);
      if (!now.is_object() || now.at("wave").get<int>() < 1) continue;
      fs::remove(file);
      return;
    }
  });
  const Json done = changed(leatd, of_kind(shm::ChangeKind::plan), file);
  over = true;
  remover.join();
  std::printf("%s: %s\n", state(done).c_str(), line(done).c_str());
  EXPECT_EQ(state(done), "failed") << done.dump() << leatd.log();
  EXPECT_NE(line(done).find("gone.json"), std::string::npos) << done.dump();
  EXPECT_NE(line(done).find("; what has changed stays; what was out is back"), std::string::npos) << done.dump();
  for (const auto& load : loads) {
    const std::uint64_t then = load->so_far;
    EXPECT_TRUE(eventually([&] { return load->so_far > then + 10; })) << leatd.log();
  }
  const Json next = changed(leatd, of_kind(shm::ChangeKind::plan), folder_.write("2.json", texts[1]));
  EXPECT_EQ(state(next), "done") << next.dump() << leatd.log();
  for (const auto& load : loads) {
    expect_sound(*load, leatd);
    EXPECT_EQ(load->served(), load->answered) << leatd.log();
  }
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

// Whoever has asked for a change and goes away has asked for it all the same.
TEST_F(PlanFaults, OfWhoeverAskedDoNotMatter) {
  const std::string one = folder_.write("1.json", sets_plan({"ab", "bc", "cd", "da"})),
                    two = folder_.write("2.json", sets_plan({"ac", "bd", "ad", "bc"}));
  Leatd leatd(sets_config(one, 4, 400));
  Load load(leatd, "a", 32, LEAT_FORMAT_gray8);
  {
    leat_error error{};
    auto observer = shm::Observer::connect(leatd.socket(), &error);
    ASSERT_TRUE(observer.ok());
    ASSERT_TRUE(observer->change(of_kind(shm::ChangeKind::plan), two, &error).ok());
  }
  EXPECT_TRUE(eventually([&] { return change(leatd).is_object() && state(change(leatd)) == "done"; }, 60000ms))
      << leatd.log();
  expect_sound(load, leatd);
  EXPECT_EQ(leatd.stop(), 0) << leatd.log();
}

}  // namespace
}  // namespace leat::test
