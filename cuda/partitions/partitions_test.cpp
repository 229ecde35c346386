// What leat-gpu reads and changes, over the stand-in NVML (cuda/fake): the geometry of each model, the difference
// between two cuts, every refusal, and a change that is killed at each of its steps.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include "cuda/fake/state.h"
#include "cuda/partitions/gpus.h"
#include "cuda/partitions/mig.h"
#include "cuda/partitions/peers.h"
#include "planner/host.h"
#include "planner/mig/change.h"
#include "tools/base/json/json.h"

namespace leat::partitions {
namespace {

constexpr const char* kModels[] = {"A30", "A100-40", "A100-80", "H100-80", "H200-141"};
constexpr unsigned kA100 = 1;

fake::Host& host() {
  static const std::unique_ptr<fake::Host> kHost = [] {
    const std::string path = std::filesystem::temp_directory_path() / ("leat-partitions-" + std::to_string(::getpid()));
    auto h = fake::Host::create(path, {kModels[0], kModels[1], kModels[2], kModels[3], kModels[4]});
    ::setenv("LEAT_FAKE_GPUS", path.c_str(), 1);
    for (const char* library : {"libnvidia-ml.so.1", "libcuda.so.1"})  // found by their names from now on
      EXPECT_NE(::dlopen((std::string(LEAT_FAKE_DRIVERS "/") + library).c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr);
    return h;
  }();
  return *kHost;
}

class Mig : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    host().state().refuse_changes = 0;
    host().state().fail_after = 0;
    for (unsigned g = 0; g < std::size(kModels); ++g) {
      fake::Gpu& gpu = host().state().gpus[g];
      gpu.mig = 1;
      gpu.mig_pending = 0;
      for (auto& i : gpu.instances) {
        i.there = 0;
        for (auto& c : i.compute) c.there = 0;
      }
      for (auto& u : gpu.users) u.pid = 0;
    }
  }
  static MigGpu read(unsigned gpu) {
    const auto driver = MigDriver::open();
    EXPECT_TRUE(driver.ok()) << driver.error();
    return (*driver)->read().at(gpu);
  }
  static MigWanted wanted(unsigned gpu, std::vector<MigPlace> places) {
    return {fake::uuid_text(gpu), std::move(places)};
  }
  static Status apply(unsigned gpu, const MigWanted& want) {
    const auto driver = MigDriver::open();
    const MigGpu now = (*driver)->read().at(gpu);
    const auto steps = steps_to(now, want);
    if (!steps.ok()) return Error{steps.error()};
    unsigned done = 0;
    return (*driver)->take(now, *steps, &done);
  }
  static std::string refusal(unsigned gpu, std::vector<MigPlace> places) {
    const auto steps = steps_to(read(gpu), wanted(gpu, std::move(places)));
    return steps.ok() ? "" : steps.error();
  }
  // "1g.5gb@0 2g.10gb@2", as they lie.
  static std::string cut(unsigned gpu) {
    const MigGpu now = read(gpu);
    std::map<unsigned, std::string> places;
    for (const MigInstance& i : now.instances)
      places[i.start] =
          now.profiles[i.profile].name + "@" + std::to_string(i.start) + (i.compute_instances == 0 ? "!" : "");
    std::string out;
    for (const auto& [start, text] : places) out += (out.empty() ? "" : " ") + text;
    return out;
  }
};

// ---- geometry ----

TEST_F(Mig, GeometryOfEachModelIsTheSimulatorsTable) {
  for (unsigned g = 0; g < std::size(kModels); ++g) {
    SCOPED_TRACE(kModels[g]);
    const planner::MigGeometry& table = *planner::mig_table(kModels[g]);
    const MigGpu gpu = read(g);
    std::size_t plain = 0;
    for (const planner::MigProfile& p : table.profiles) plain += p.media ? 0 : 1;
    EXPECT_EQ(gpu.profiles.size(), plain);
    for (const MigProfile& p : gpu.profiles) {
      const auto same = std::find_if(table.profiles.begin(), table.profiles.end(),
                                     [&](const planner::MigProfile& t) { return t.name == p.name; });
      ASSERT_NE(same, table.profiles.end()) << p.name;
      EXPECT_EQ(p.compute, same->compute) << p.name;
      EXPECT_EQ(p.memory, same->memory) << p.name;
      EXPECT_EQ(p.max, same->max) << p.name;
      EXPECT_TRUE(std::equal(p.starts.begin(), p.starts.end(), same->starts.begin(), same->starts.end())) << p.name;
    }
  }
}

TEST_F(Mig, WhatTheVendorsTablesAllowCanBeMade) {
  EXPECT_TRUE(apply(kA100, wanted(kA100, {{"4g.20gb", 0}, {"3g.20gb", 4}})).ok());
  EXPECT_EQ(cut(kA100), "4g.20gb@0 3g.20gb@4");
  EXPECT_TRUE(apply(kA100, wanted(kA100, {{"2g.10gb", 0}, {"2g.10gb", 2}, {"3g.20gb", 4}})).ok());
  std::vector<MigPlace> sevenths;
  for (unsigned s = 0; s < 7; ++s) sevenths.push_back({"1g.5gb", s});
  EXPECT_TRUE(apply(kA100, wanted(kA100, sevenths)).ok());
  EXPECT_TRUE(apply(kA100, wanted(kA100, {{"7g.40gb", 0}})).ok());
  EXPECT_TRUE(apply(0, wanted(0, {{"2g.12gb", 0}, {"1g.6gb", 2}, {"1g.6gb", 3}})).ok());
  EXPECT_EQ(cut(0), "2g.12gb@0 1g.6gb@2 1g.6gb@3");
  EXPECT_TRUE(apply(4, wanted(4, {{"1g.35gb", 6}, {"4g.71gb", 0}, {"1g.18gb", 4}, {"1g.18gb", 5}})).ok());
}

// What is refused here is what the driver would refuse, and the other way round.
TEST_F(Mig, RefusesWhatTheDriverRefusesAndNothingElse) {
  std::mt19937 random(3);
  unsigned possible = 0, impossible = 0;
  for (int round = 0; round < 400; ++round) {
    const unsigned g = static_cast<unsigned>(round) % std::size(kModels);
    const MigGpu empty = read(g);
    std::vector<MigPlace> places;
    for (unsigned n = 1 + random() % 4; n > 0; --n)
      places.push_back({empty.profiles[random() % empty.profiles.size()].name, static_cast<unsigned>(random() % 8)});
    bool made = true;
    for (const MigPlace& p : places) {
      const fake::Model& model = host().model(g);
      for (const fake::Profile& f : model.profiles)
        if (p.profile == f.name) made = made && host().add_instance(g, f.id, p.start) >= 0;
    }
    clear();
    EXPECT_EQ(refusal(g, places).empty(), made);
    ++(made ? possible : impossible);
  }
  EXPECT_GT(possible, 40U);
  EXPECT_GT(impossible, 40U);
}

// ---- difference ----

TEST_F(Mig, OnlyTheDifferenceIsTouched) {
  ASSERT_TRUE(apply(kA100, wanted(kA100, {{"1g.5gb", 0}, {"1g.5gb", 1}, {"2g.10gb", 2}, {"3g.20gb", 4}})).ok());
  const MigGpu before = read(kA100);
  const auto steps = steps_to(before, wanted(kA100, {{"1g.5gb", 0}, {"3g.20gb", 4}, {"1g.10gb", 2}}));
  ASSERT_TRUE(steps.ok()) << steps.error();
  EXPECT_EQ(steps->keep.size(), 2U);
  EXPECT_EQ(steps->destroy.size(), 2U);
  EXPECT_EQ(steps->create.size(), 1U);
  EXPECT_TRUE(apply(kA100, wanted(kA100, {{"1g.5gb", 0}, {"3g.20gb", 4}, {"1g.10gb", 2}})).ok());
  const MigGpu after = read(kA100);
  for (const unsigned k : steps->keep) {
    const bool same = std::any_of(after.instances.begin(), after.instances.end(), [&](const MigInstance& i) {
      return i.id == before.instances[k].id && i.start == before.instances[k].start;
    });
    EXPECT_TRUE(same) << "an instance that stays was made anew";
  }
  EXPECT_FALSE(steps_to(after, wanted(kA100, {{"1g.5gb", 0}, {"3g.20gb", 4}, {"1g.10gb", 2}}))->any());
}

// ---- refusals: nothing is changed by any of them ----

TEST_F(Mig, ModeIsNeverToggled) {
  host().state().gpus[kA100].mig = 0;
  EXPECT_NE(refusal(kA100, {{"1g.5gb", 0}}).find("MIG mode is off"), std::string::npos);
  EXPECT_EQ(host().state().gpus[kA100].mig, 0U);
}
TEST_F(Mig, PendingModeIsRefused) {
  host().state().gpus[kA100].mig_pending = 1;
  EXPECT_NE(refusal(kA100, {}).find("next reset"), std::string::npos);
}
TEST_F(Mig, InstanceInUseIsRefusedWithWhoUsesIt) {
  host().add_instance(kA100, 1, 0);
  host().add_instance(kA100, 0, 2);
  host().state().gpus[kA100].users[0].instance = 0;
  host().state().gpus[kA100].users[0].pid = ::getpid();
  const std::string said = refusal(kA100, {{"7g.40gb", 0}});
  EXPECT_NE(said.find("2g.10gb at 0"), std::string::npos) << said;
  EXPECT_NE(said.find("process " + std::to_string(::getpid())), std::string::npos) << said;
  EXPECT_EQ(cut(kA100), "2g.10gb@0 1g.5gb@2");
  EXPECT_EQ(refusal(kA100, {{"2g.10gb", 0}, {"2g.10gb", 2}}), "") << "it stays, and its neighbour may go";
}
// It came into use between the look and the step: the driver's own refusal ends the change, and what was done is said.
TEST_F(Mig, InstanceThatComesIntoUseIsNotDestroyed) {
  host().add_instance(kA100, 1, 0);
  host().add_instance(kA100, 1, 2);
  const auto driver = MigDriver::open();
  const MigGpu now = (*driver)->read().at(kA100);
  const auto steps = steps_to(now, wanted(kA100, {{"7g.40gb", 0}}));
  ASSERT_TRUE(steps.ok());
  host().state().gpus[kA100].users[0].instance = 1;
  host().state().gpus[kA100].users[0].compute = 0;
  host().state().gpus[kA100].users[0].pid = ::getpid();
  unsigned done = 0;
  const Status status = (*driver)->take(now, *steps, &done);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("in use"), std::string::npos) << status.error();
  EXPECT_EQ(done, 1U);
  EXPECT_EQ(cut(kA100), "2g.10gb@2");
}
TEST_F(Mig, NoPermissionIsSaidWithTheCure) {
  host().state().refuse_changes = 1;
  EXPECT_NE(refusal(kA100, {{"1g.5gb", 0}}).find("capabilities/mig/config"), std::string::npos);
}
TEST_F(Mig, UnknownProfileWrongStartOverlapAndTooMany) {
  EXPECT_NE(refusal(kA100, {{"1g.18gb", 0}}).find("no profile '1g.18gb'"), std::string::npos);
  EXPECT_NE(refusal(kA100, {{"4g.20gb", 4}}).find("may start at 0 only"), std::string::npos);
  EXPECT_NE(refusal(kA100, {{"3g.20gb", 0}, {"4g.20gb", 0}}).find("overlaps"), std::string::npos);
  EXPECT_NE(refusal(kA100, {{"4g.20gb", 0}, {"4g.20gb", 0}}).find("at most 1"), std::string::npos);
}
TEST_F(Mig, LayoutFilesThatAreNone) {
  EXPECT_FALSE(parse_layout("{").ok());
  EXPECT_FALSE(parse_layout(R"({"schema": "leat-mig/1", "gpus": []})").ok());
  EXPECT_FALSE(parse_layout(R"({"schema": "leat-mig-layout/1", "gpus": [{"uuid": 3}]})").ok());
  const char* const twice = R"({"schema": "leat-mig-layout/1",
    "gpus": [{"uuid": "G", "instances": []}, {"uuid": "G", "instances": []}]})";
  EXPECT_NE(parse_layout(twice).error().find("twice"), std::string::npos);
}

// ---- ended in the middle ----

// From one cut to another in eight changes, killed before each: what is left is said by the next run, and that run ends
// where the first one would have.
TEST_F(Mig, KilledAtEachStepTheNextRunExplainsAndFinishes) {
  const MigWanted from = wanted(kA100, {{"1g.5gb", 0}, {"2g.10gb", 2}, {"3g.20gb", 4}}),
                  to = wanted(kA100, {{"4g.20gb", 0}, {"3g.20gb", 4}});
  bool seen_half = false;
  int killed = 0;
  for (unsigned at = 1; at < 20; ++at) {
    SCOPED_TRACE("killed at change " + std::to_string(at));
    clear();
    ASSERT_TRUE(apply(kA100, from).ok());
    const std::string whole = cut(kA100);
    host().state().fail_after = at;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(apply(kA100, to).ok() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    host().state().fail_after = 0;
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ++killed;
    const MigGpu now = read(kA100);
    const auto steps = steps_to(now, to);
    ASSERT_TRUE(steps.ok()) << steps.error();
    EXPECT_TRUE(steps->any());
    std::string said;
    for (const std::string& line : text_of(now, *steps)) said += line + "\n";
    EXPECT_NE(said.find("keep 3g.20gb at 4"), std::string::npos) << said;
    if (cut(kA100).find('!') != std::string::npos) {
      seen_half = true;
      EXPECT_NE(said.find("a change that ended in the middle"), std::string::npos) << cut(kA100) << "\n" << said;
    }
    ASSERT_TRUE(apply(kA100, to).ok());
    EXPECT_EQ(cut(kA100), "4g.20gb@0 3g.20gb@4");
  }
  EXPECT_EQ(killed, 6);  // two instances of two destructions each, and one of two creations
  EXPECT_TRUE(seen_half);
}

// ---- what the planner and leatd read ----

TEST_F(Mig, HostFileIsReadByThePlanner) {
  host().add_instance(kA100, 2, 4, 3);
  host().add_instance(kA100, 0, 0);
  const auto driver = MigDriver::open();
  std::vector<MigGpu> gpus = (*driver)->read();
  gpus.erase(gpus.begin());  // the A30 is cut otherwise
  const auto parsed = planner::parse_mig_host(as_mig_host(gpus), "test");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_TRUE(parsed->geometry.from_driver);
  EXPECT_EQ(parsed->geometry.memory_slices, 8U);
  EXPECT_EQ(parsed->geometry.compute_slices, 7U);
  ASSERT_EQ(parsed->gpus.size(), 1U) << "only GPUs that are cut alike belong into one file";
  EXPECT_EQ(parsed->gpus[0].instances.size(), 2U);
}

TEST_F(Mig, ListShowsGpusInstancesComputeInstancesMultiprocessorsAndMemory) {
  host().add_instance(kA100, 2, 4, 3);
  host().add_instance(kA100, 1, 0);
  host().state().gpus[0].mig = 0;
  const auto gpus = read_gpus();
  ASSERT_TRUE(gpus.ok()) << gpus.error();
  const auto json = Json::parse(as_json(*gpus)).at("gpus");
  ASSERT_EQ(json.size(), std::size(kModels));
  EXPECT_EQ(json[0].at("multiprocessors"), 56);
  EXPECT_FALSE(json[0].at("mig").get<bool>());
  EXPECT_TRUE(json[kA100].at("mig").get<bool>());
  EXPECT_EQ(json[kA100].at("multiprocessors"), 98) << "with MIG on";
  const auto& instances = json[kA100].at("instances");
  ASSERT_EQ(instances.size(), 4U);
  EXPECT_EQ(instances[0].at("uuid"), fake::uuid_text(kA100, 0, 0));
  EXPECT_EQ(instances[0].at("profile"), "3g.20gb");
  EXPECT_EQ(instances[1].at("compute_instance"), 1);
  EXPECT_EQ(instances[1].at("multiprocessors"), 14);
  EXPECT_EQ(instances[3].at("multiprocessors"), 28);
  EXPECT_EQ(instances[3].at("memory_mib"), 9856);
  const auto file = Json::parse(as_host(*gpus, {}));
  EXPECT_EQ(file.at("schema"), "leat-host/1");
  double size = 0;
  for (const Json& p : file.at("partitions"))
    if (p.at("device") == kA100) size += p.at("size").get<double>();
  EXPECT_NEAR(size, (3 * 14 + 28) / 98.0, 1e-9);
}

#ifdef LEAT_GPU_BINARY
TEST_F(Mig, WatchTellsHeatAndWhatHoldsClocksBackAndKnowsWhatItDoesNotKnow) {
  ::setenv("LD_LIBRARY_PATH", LEAT_FAKE_DRIVERS, 1);
  const auto watched = [] {
    std::FILE* const pipe = ::popen(LEAT_GPU_BINARY " watch --times 1", "r");
    char text[8192] = "";
    const std::size_t got = std::fread(text, 1, sizeof text - 1, pipe);
    EXPECT_EQ(::pclose(pipe), 0);
    return Json::parse(std::string(text, got)).at("gpus");
  };
  host().state().slow_reasons = 0x4 | 0x20;
  const Json gpus = watched();
  ASSERT_EQ(gpus.size(), std::size(kModels));
  EXPECT_EQ(gpus[kA100].at("uuid"), fake::uuid_text(kA100));
  EXPECT_EQ(gpus[kA100].at("temperature_c"), 41);
  EXPECT_EQ(gpus[kA100].at("power_w"), 312.4);
  EXPECT_EQ(gpus[kA100].at("power_cap_w"), 400);
  EXPECT_EQ(gpus[kA100].at("held_back"), (Json{"power cap", "heat"}));
  host().state().slow_reasons = 0;
  host().state().hides_heat = 1;
  EXPECT_TRUE(watched()[0].at("temperature_c").is_null()) << "not known is not zero";
  EXPECT_TRUE(watched()[0].at("held_back").empty());
  host().state().hides_heat = 0;
}

// The whole way: leat-plan asks leat-gpu, prints, and changes only when told to.
TEST_F(Mig, PlanChangesNothingWithoutApplyAndTheDifferenceWithIt) {
  for (const unsigned g : {0U, 2U, 3U, 4U}) host().state().gpus[g].mig = 0;
  host().state().gpus[0].mig = 1;  // the first decides the geometry
  ASSERT_TRUE(apply(0, wanted(0, {{"1g.6gb", 0}})).ok());
  ::setenv("LD_LIBRARY_PATH", LEAT_FAKE_DRIVERS, 1);
  ::setenv("LEAT_GPU", LEAT_GPU_BINARY, 1);
  const std::string command = LEAT_PLAN_BINARY " mig --here --model medium --batches 1:0.5,8:0.5 --sla-ms 400";
  const std::string before = cut(0);
  EXPECT_EQ(std::system((command + " > /dev/null").c_str()), 0);
  EXPECT_EQ(cut(0), before);
  EXPECT_EQ(std::system((command + " --apply > /dev/null").c_str()), 0);
  const std::string after = cut(0);
  EXPECT_NE(after, before);
  EXPECT_EQ(after.find('!'), std::string::npos) << after;
  host().state().gpus[0].users[0].instance = read(0).instances.at(0).id;
  host().state().gpus[0].users[0].pid = ::getpid();
  const std::string layout = std::filesystem::temp_directory_path() / ("leat-layout-" + std::to_string(::getpid()));
  std::ofstream(layout) << R"({"schema": "leat-mig-layout/1", "gpus": [{"uuid": ")" << fake::uuid_text(0)
                        << R"(", "instances": []}]})";
  const int status = std::system((LEAT_GPU_BINARY " mig --apply --layout " + layout + " > /dev/null 2>&1").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2) << "what is in use stays";
  EXPECT_EQ(cut(0), after);
  ::unlink(layout.c_str());
  ::unsetenv("LD_LIBRARY_PATH");
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string out;
  for (char chunk[4096]; pipe && std::fgets(chunk, sizeof chunk, pipe.get()) != nullptr;) out += chunk;
  return out;
}

// For some profiles CUDA counts other multiprocessors than NVML; a worker counts as CUDA does.
TEST_F(Mig, InstancesHaveTheMultiprocessorsThatCudaShows) {
  host().add_instance(0, 1, 0);
  ::setenv("LD_LIBRARY_PATH", LEAT_FAKE_DRIVERS, 1);
  const auto shown = [] {
    const Json gpus = Json::parse(output_of(LEAT_GPU_BINARY " list --json")).at("gpus");
    return gpus.at(0).at("instances").at(0).at("multiprocessors").get<unsigned>();
  };
  EXPECT_EQ(shown(), 28U);
  host().state().instance_multiprocessors = 26;
  EXPECT_EQ(shown(), 26U);
  host().state().instance_multiprocessors = 0;
  ::unsetenv("LD_LIBRARY_PATH");
}

// The ordered pairs of two GPUs and of two GPU instances of a third: what is refused, and what lies, goes through the
// host.
TEST_F(Mig, PairsAreAskedAndReachThePlannerOneByOne) {
  for (const unsigned g : {1U, 3U}) host().state().gpus[g].mig = 0;
  host().add_instance(0, 1, 0, 2);  // 2g.12gb in two compute instances, between which features pass in place
  host().add_instance(0, 0, 2);
  host().state().peer[1][3] = fake::kPeerWorks, host().state().peer[3][1] = fake::kPeerLies;
  ::setenv("LD_LIBRARY_PATH", LEAT_FAKE_DRIVERS, 1);
  const Json pairs = Json::parse(output_of(LEAT_GPU_BINARY " peers --json")).at("pairs");
  const std::string plan_host = output_of(LEAT_GPU_BINARY " list --host --peers");
  EXPECT_EQ(std::system(LEAT_GPU_BINARY " peers nonsense 2> /dev/null") >> 8, 2);
  ::unsetenv("LD_LIBRARY_PATH");
  host().state().peer[1][3] = host().state().peer[3][1] = fake::kPeerRefused;
  ASSERT_EQ(pairs.size(), 16U);
  const std::string a = fake::uuid_text(1), b = fake::uuid_text(3);
  double min = 1e300;
  for (const Json& p : pairs) {
    const auto from = p.at("from").get<std::string>(), to = p.at("to").get<std::string>(),
               way = p.at("way").get<std::string>(), why = p.at("why_not").get<std::string>();
    EXPECT_EQ(way, from == to             ? "in_place"
                   : from == a && to == b ? "peer"
                                          : "host")
        << from << " to " << to << " " << why;
    EXPECT_EQ(why.empty(), way != "host");
    EXPECT_GT(p.at("host_gbps").get<double>(), 0);
    const bool said = why.find("words read are not what was written") != std::string::npos;
    EXPECT_EQ(said, from == b && to == a) << why;
    if (from != to) min = std::min(min, p.at(way == "host" ? "host_gbps" : "gbps").get<double>());
  }
  const auto read = planner::parse_host(plan_host, "host.json");
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_GT(read->handover_gbps, 0) << plan_host;
  std::map<std::string, std::uint32_t> at;
  for (std::uint32_t k = 0; k < read->partitions.size(); ++k) at[read->partitions[k].partition.selector] = k;
  ASSERT_EQ(at.size(), 5U) << plan_host;
  EXPECT_EQ(read->handovers.size(), 20U);
  EXPECT_EQ(read->gbps(at[fake::uuid_text(0, 0, 0)], at[fake::uuid_text(0, 0, 1)]), 0) << "in place";
  for (const planner::Handover& h : read->handovers) EXPECT_GE(h.gbps == 0 ? 1e300 : h.gbps, read->handover_gbps);
  EXPECT_LT(min, 1e300);
}
#endif

}  // namespace
}  // namespace leat::partitions
