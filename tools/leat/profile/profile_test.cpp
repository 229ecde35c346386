// Grouping against brute force, the measured file and its resumption, and every refusal in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "engine/exec/model_files/sha256.h"
#include "engine/exec/onnx/onnx_split.h"
#include "engine/exec/test/test_models.h"
#include "planner/io/profile_io.h"
#include "tools/base/cores/cores.h"
#include "tools/leat/profile/profiler.h"

namespace leat::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- grouping ----
TEST(Grouping, OfAHandMadeModel) {
  const std::int64_t ns[] = {4, 1, 1, 3, 3};
  const std::uint64_t bytes[] = {100, 5, 100, 100};
  const Grouping three = group(ns, bytes, 3, GroupBy::time, 1);
  EXPECT_THAT(three.cuts, ElementsAre(0, 3))
      << "4 | 1 1 3 | 3 and its equals have a largest of 5; 4 | 5 | 3 is the most equal";
  EXPECT_THAT(three.block_ns, ElementsAre(4, 5, 3));
  EXPECT_EQ(three.bytes, 200u);
  const Grouping two = group(ns, bytes, 2, GroupBy::bytes, 1.5);
  EXPECT_THAT(two.cuts, ElementsAre(1));
  EXPECT_EQ(two.bytes, 5u);
  EXPECT_THAT(group(ns, bytes, 1, GroupBy::time, 1).block_ns, ElementsAre(12));
  EXPECT_THAT(group(ns, bytes, 5, GroupBy::bytes, 1).cuts, ElementsAre(0, 1, 2, 3));
  EXPECT_DOUBLE_EQ(imbalance(three.block_ns), 5.0 / 4);
}

TEST(Grouping, IsTheBestOfAllGroupings) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto n = static_cast<std::uint32_t>(2 + random() % 9), blocks = static_cast<std::uint32_t>(1 + random() % n);
    std::vector<std::int64_t> ns(n);
    std::vector<std::uint64_t> bytes(n - 1);
    for (auto& v : ns) v = 1 + random() % 100;
    for (auto& v : bytes) v = 1 + random() % 50;
    struct Best {
      std::int64_t largest = INT64_MAX;
      double squares = HUGE_VAL;
      std::uint64_t bytes = UINT64_MAX;
    } best;
    const double balance = 1 + 0.1 * static_cast<double>(random() % 6);
    for (const bool bounded : {false, true}) {  // first the bound, then what is best under it
      for (std::uint32_t mask = 0; mask < 1u << (n - 1); ++mask) {
        if (std::popcount(mask) + 1u != blocks) continue;
        std::int64_t now = 0, largest = 0;
        double squares = 0;
        std::uint64_t crossing = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
          now += ns[i];
          if (i + 1 < n && (mask >> i & 1) == 0) continue;
          largest = std::max(largest, now);
          squares += static_cast<double>(now) * static_cast<double>(now);
          if (i + 1 < n) crossing += bytes[i];
          now = 0;
        }
        if (!bounded) best.largest = std::min(best.largest, largest);
        if (bounded && largest == best.largest) best.squares = std::min(best.squares, squares);
        if (bounded && largest <= static_cast<std::int64_t>(static_cast<double>(best.largest) * balance))
          best.bytes = std::min(best.bytes, crossing);
      }
    }
    const Grouping by_time = group(ns, bytes, blocks, GroupBy::time, balance),
                   by_bytes = group(ns, bytes, blocks, GroupBy::bytes, balance);
    double squares = 0;
    for (const auto v : by_time.block_ns) squares += static_cast<double>(v) * static_cast<double>(v);
    EXPECT_EQ(by_time.block_ns.size(), blocks);
    EXPECT_EQ(*std::max_element(by_time.block_ns.begin(), by_time.block_ns.end()), best.largest);
    EXPECT_EQ(squares, best.squares);
    EXPECT_EQ(by_bytes.bytes, best.bytes);
  }
}

// ---- small parts ----
TEST(Sha256, AsTheStandardsExamples) {
  EXPECT_EQ(*exec::sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(*exec::sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(*exec::sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(*exec::sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Summary, MedianSpreadAndTail) {
  std::vector<std::int64_t> ns;
  for (int i = 1; i <= 200; ++i) ns.push_back(201 - i);
  const planner::Latency l = summary(ns);
  EXPECT_EQ(l.p50_ns, 101);
  EXPECT_EQ(l.p99_ns, 199);
  EXPECT_EQ(l.spread_ns, 100);
  EXPECT_EQ(l.samples, 200u);
  EXPECT_EQ(summary({0}).p50_ns, 1) << "a profile holds no zero times";
}

TEST(Summary, OfAShareIsNotFasterThanItsMean) {
  const std::vector<std::int64_t> turns{10, 10, 10,
                                        90};  // three batches in the own turn, one waits for the neighbours'
  EXPECT_EQ(summary(turns).p50_ns, 10);
  EXPECT_EQ(summary_of_share(turns).p50_ns, 30);
  EXPECT_EQ(summary_of_share(turns).p99_ns, 90);
  EXPECT_EQ(summary_of_share({10, 20, 21, 9}).p50_ns, 20);
}

TEST(Differences, AreRelativeAndSeeWhatIsNoNumber) {
  const double a[] = {1, -4, 2}, b[] = {1, -4, 2.001}, none[] = {1, NAN, 2};
  EXPECT_EQ(relative_difference(a, a), 0);
  EXPECT_NEAR(relative_difference(a, b), 0.001 / 4, 1e-12);
  EXPECT_EQ(relative_difference(a, none), HUGE_VAL);
  EXPECT_EQ(relative_difference(a, std::span(b, 2)), HUGE_VAL);
}

TEST(Words, PartitionsAndNumbers) {
  EXPECT_EQ(*parse_class("2", 4), 2u);
  EXPECT_EQ(*parse_class("cpu:4", 4), 4u);
  for (const char* bad : {"", "0", "x", "mig:1g.10gb", "cpu:", "cpu:2x", "-1", "5"}) {
    const auto c = parse_class(bad, 4);
    ASSERT_FALSE(c.ok()) << bad;
    EXPECT_THAT(c.error(), HasSubstr("--partitions: '" + std::string(bad) + "'"));
  }
  EXPECT_THAT(*parse_numbers("--batches", "4,1,4,2", 1, 64), ElementsAre(1, 2, 4));
  for (const char* bad : {"", "1,,2", "0", "65", "1;2", "two"})
    EXPECT_FALSE(parse_numbers("--batches", bad, 1, 64).ok()) << bad;
}

// ---- the whole run ----
class ProfileRunTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "leat-profile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    return folder_ + "/" + name;
  }
  ProfileJob job(const std::string& model_path) {
    return {.model_path = model_path,
            .model = "m",
            .output = folder_ + "/m.json",
            .cores = {1},
            .batches = {1, 3},
            .blocks = 3,
            .samples = 6,
            .seconds = 1,
            .verify = true};
  }
  std::string folder_;
};

TEST_F(ProfileRunTest, WritesAProfileThatThePlannerReads) {
  const std::string model = file("m.onnx", exec::residual_model(7, 5));
  ProfileJob j = job(model);
  j.shares = {1, 2};
  j.blocks_folder = folder_ + "/blocks";
  const auto run = run_profile(j);
  ASSERT_TRUE(run.ok()) << run.error();
  EXPECT_LT(run->verified->own_weights, 1e-4);
  ASSERT_TRUE(run->verified->random_weights);
  EXPECT_LT(*run->verified->random_weights, 1e-4);
  EXPECT_EQ(run->verified->runs, 8u);
  EXPECT_EQ(run->measured, 4u);
  EXPECT_EQ(run->segment_ns.size(), 8u) << "5 units, the head before them, and two layers behind";

  const auto read = planner::read_profiles(folder_);
  ASSERT_TRUE(read.ok()) << read.error();
  ASSERT_EQ(read->size(), 1u);
  const planner::Profile& p = read->front();
  EXPECT_EQ(p.model, "m");
  EXPECT_EQ(p.rows.size(), 4u);
  EXPECT_EQ(p.rows[2].share, 2u);
  for (const auto& row : p.rows) {
    ASSERT_EQ(row.blocks.size(), 3u);
    for (const auto& b : row.blocks) EXPECT_GE(b.samples, 5u);
  }
  const auto graph = exec::OnnxGraph::read(model);
  ASSERT_TRUE(graph.ok());
  for (std::size_t i = 0; i < p.cuts.size(); ++i) {
    const auto cut =
        std::find_if(graph->cuts().begin(), graph->cuts().end(), [&](const auto& c) { return c.tensor == p.cuts[i]; });
    ASSERT_NE(cut, graph->cuts().end());
    EXPECT_FALSE(cut->fuses) << "there are enough cuts that undo no fusion";
    EXPECT_EQ(static_cast<std::uint64_t>(p.boundary_bytes[i]), cut->item_bytes);
  }
  EXPECT_EQ(p.provenance.model_sha256.size(), 64u);
  EXPECT_THAT(p.provenance.libraries, HasSubstr("ONNX Runtime "));
  EXPECT_NE(p.provenance.machine, "");
  for (int b = 0; b < 3; ++b)
    EXPECT_TRUE(exec::OnnxGraph::read(folder_ + "/blocks/m.block" + std::to_string(b) + ".onnx").ok());
}

TEST_F(ProfileRunTest, ASecondRunMeasuresOnlyWhatIsMissing) {
  ProfileJob j = job(file("m.onnx", exec::residual_model(8, 4)));
  const auto first = run_profile(j);
  ASSERT_TRUE(first.ok()) << first.error();
  j.batches = {1, 2, 3};
  const auto second = run_profile(j);
  ASSERT_TRUE(second.ok()) << second.error();
  EXPECT_EQ(second->kept, 2u);
  EXPECT_EQ(second->measured, 1u);
  EXPECT_EQ(second->profile.cuts, first->profile.cuts);
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t b = 0; b < 3; ++b)
      EXPECT_EQ(second->profile.rows[r].blocks[b].p50_ns, first->profile.rows[r].blocks[b].p50_ns);
  j.fresh = true;
  const auto third = run_profile(j);
  ASSERT_TRUE(third.ok()) << third.error();
  EXPECT_EQ(third->kept, 0u);
  EXPECT_EQ(third->measured, 3u);
}

TEST_F(ProfileRunTest, AFileOfSomethingElseIsNotGoneOnFrom) {
  const ProfileJob good = job(file("m.onnx", exec::residual_model(9, 4)));
  ASSERT_TRUE(run_profile(good).ok());
  const auto refusal = [](const ProfileJob& j) {
    const auto run = run_profile(j);
    return run.ok() ? std::string("accepted") : run.error();
  };
  ProfileJob j = good;
  j.blocks = 2;
  EXPECT_THAT(refusal(j), HasSubstr("the number of blocks '3', this run has '2'"));
  j = good;
  j.by = GroupBy::bytes;
  EXPECT_THAT(refusal(j), HasSubstr("the method"));
  j = good;
  j.model_path = file("other.onnx", exec::residual_model(10, 4));
  EXPECT_THAT(refusal(j), HasSubstr("the model file of sha256"));
  j = good;
  file("m.json", "{");
  EXPECT_THAT(refusal(j), HasSubstr("m.json"));
  EXPECT_THAT(refusal(j), HasSubstr("--fresh"));
}

TEST_F(ProfileRunTest, WhatCannotBeMeasuredIsOneLine) {
  struct Case {
    const char* name;
    ProfileJob job;
    std::vector<std::string> says;
  };
  std::vector<Case> cases;
  const auto add = [&](const char* name, const std::string& model, auto change, std::vector<std::string> says) {
    ProfileJob j = job(model);
    change(j);
    cases.push_back({name, j, std::move(says)});
  };
  const std::string good = file("good.onnx", exec::residual_model(11, 3)),
                    branches = file("branches.onnx", exec::branches_model(12));
  const auto nothing = [](ProfileJob&) {};
  add("no file", folder_ + "/none.onnx", nothing, {"none.onnx", "cannot be read"});
  add("not ONNX", file("text.onnx", "not a model at all"), nothing, {"text.onnx", "not an ONNX model"});
  add("half a model", file("half.onnx", exec::residual_model(11, 3).substr(0, 3000)), nothing, {"half.onnx"});
  add("too many blocks", good, [](ProfileJob& j) { j.blocks = 40; },
      {"good.onnx", "cut points", "at most", "--blocks"});
  add("no cut points", branches, nothing, {"branches.onnx", "has 0 cut points", "--blocks 1"});
  add("empty", file("empty.onnx", ""), nothing, {"empty.onnx", "is empty"});
  add("fixed larger batch", file("four.onnx", exec::chain_model(13, 4, 4)), nothing,
      {"four.onnx", "fixes the batch at 4"});
  add("more cores than there are", good, [](ProfileJob& j) { j.cores = {4000}; }, {"cpu:4000"});
  add("nowhere to write", good, [](ProfileJob& j) { j.output = "/no/such/folder/p.json"; },
      {"/no/such/folder/p.json", "--output"});
  const auto usable = usable_cores();
  ASSERT_TRUE(usable.ok());
  add("no core for a neighbour", good,
      [&](ProfileJob& j) { j.cores = {static_cast<std::uint32_t>(usable->size())}, j.neighbours = 1; },
      {"takes every core", "--neighbours 0"});
  for (const auto& c : cases) {
    const auto run = run_profile(c.job);
    ASSERT_FALSE(run.ok()) << c.name;
    for (const auto& text : c.says) EXPECT_THAT(run.error(), HasSubstr(text)) << c.name;
    EXPECT_EQ(run.error().find('\n'), std::string::npos) << c.name;
    EXPECT_FALSE(std::filesystem::exists(c.job.output)) << c.name;
  }
}

TEST_F(ProfileRunTest, BlocksThatDifferAreNotMeasured) {
  ProfileJob j = job(file("m.onnx", exec::residual_model(14, 4)));
  j.tolerance = -1;  // nothing is as equal as that
  const auto run = run_profile(j);
  ASSERT_TRUE(run.ok()) << run.error();
  EXPECT_GT(run->verified->largest(), j.tolerance);
  EXPECT_EQ(run->measured, 0u);
  EXPECT_FALSE(std::filesystem::exists(j.output));
}

TEST_F(ProfileRunTest, WeightsInAnotherFileAndBusyNeighbours) {
  ProfileJob j = job(file("m.onnx", exec::with_external_weights(exec::residual_model(15, 4), folder_)));
  const auto usable = usable_cores();
  ASSERT_TRUE(usable.ok());
  j.neighbours = usable->size() > 1 ? 2 : 0;
  const auto run = run_profile(j);
  ASSERT_TRUE(run.ok()) << run.error();
  EXPECT_FALSE(run->verified->random_weights);
  EXPECT_EQ(run->measured, 2u);
  EXPECT_THAT(run->profile.provenance.method, HasSubstr(std::to_string(j.neighbours) + " busy neighbours"));
}

TEST_F(ProfileRunTest, AModelOfAFixedBatchAndABlockOfItsOwnIsMeasured) {
  ProfileJob j = job(file("one.onnx", exec::chain_model(13, 4, 1)));
  j.batches.clear();
  j.blocks = 1;
  const auto run = run_profile(j);
  ASSERT_TRUE(run.ok()) << run.error();
  EXPECT_EQ(run->profile.rows.size(), 1u);
  EXPECT_TRUE(run->profile.cuts.empty());
}

}  // namespace
}  // namespace leat::tools
