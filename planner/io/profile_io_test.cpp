#include "planner/io/profile_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

using testing::HasSubstr;

Profile small_profile() {
  Profile p;
  p.model = "detector";
  p.blocks = 2;
  p.boundary_bytes = {4096};
  p.cuts = {"relu 3"};
  p.block_memory_bytes = {1000, 2000};
  p.rows = {{"cpu:1", 1, 1, {{1000, 1100, 50, 30}, {2000, 2300, 50}}},
            {"cpu:1", 1, 4, {{3000, 3000, 50}, {7000, 7100, 50}}}};
  p.provenance = {"a 2-core virtual machine", "onnxruntime 1.20", "2026-01-01", "measured", "0123abcd"};
  return p;
}

TEST(ProfileIo, RoundTripKeepsEveryField) {
  const std::string text = profile_to_json(small_profile());
  const auto back = parse_profile(text, "p.json");
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(profile_to_json(*back), text);
  EXPECT_EQ(back->rows[1].batch, 4u);
  EXPECT_EQ(back->rows[1].blocks[1].p99_ns, 7100);
  EXPECT_EQ(back->block_memory_bytes[1], 2000);
  EXPECT_EQ(back->cuts, std::vector<std::string>{"relu 3"});
  EXPECT_EQ(back->rows[0].blocks[0].spread_ns, 30);
  EXPECT_EQ(back->provenance.model_sha256, "0123abcd");
}

std::string error_after(void (*breaks)(Profile&)) {
  Profile p = small_profile();
  breaks(p);
  const auto back = parse_profile(profile_to_json(p), "p.json");
  EXPECT_FALSE(back.ok());
  return back.ok() ? "" : back.error();
}

TEST(ProfileIo, GarbageIsOneClearLine) {
  EXPECT_THAT(error_after([](Profile& p) { p.rows[0].blocks[1].p50_ns = -5; }),
              HasSubstr("p.json: rows[0].blocks[1].p50_ns"));
  EXPECT_THAT(error_after([](Profile& p) { p.rows[0].blocks[1].p99_ns = 5; }), HasSubstr("p99 not below p50"));
  EXPECT_THAT(error_after([](Profile& p) { p.rows.erase(p.rows.begin()); }), HasSubstr("no batch 1"));
  EXPECT_THAT(error_after([](Profile& p) { p.rows[1].batch = 1; }), HasSubstr("stands twice"));
  EXPECT_THAT(error_after([](Profile& p) { p.rows[1].blocks.pop_back(); }), HasSubstr("1 block latencies"));
  EXPECT_THAT(error_after([](Profile& p) { p.boundary_bytes.clear(); }), HasSubstr("boundary_bytes"));
  EXPECT_THAT(error_after([](Profile& p) { p.cuts.push_back("another"); }), HasSubstr("cuts: needs one name"));
  EXPECT_THAT(error_after([](Profile& p) { p.cuts[0] = "a\tb"; }), HasSubstr("holds a tab"));
  EXPECT_THAT(error_after([](Profile& p) { p.rows.clear(); }), HasSubstr("rows: empty"));
  EXPECT_THAT(parse_profile("[]", "p.json").error(), HasSubstr("table of keys"));
}

class Directory : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "leat_profile_io_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(path_ + "/profiles");
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_text_file(path_ + "/" + name, text).ok());
  }
  void put_ppipe(const std::string& latencies) {
    put("models.csv", "model,group,blocks\nm,1,2\n");
    put("boundaries.csv", "model,cut,bytes\nm,1,500\n");
    put("profiles/m.csv", "gpu,mps_denominator,batch,block,latency_us\n" + latencies);
  }
  std::string path_;
};

TEST_F(Directory, ReadsPpipesCsvAndRaisesTinyLatencies) {
  put_ppipe("L4,1,1,0,0.25\nL4,1,1,1,1234.5\nL4,2,1,0,3\nL4,2,1,1,4\n");
  const auto all = read_profiles(path_);
  ASSERT_TRUE(all.ok()) << all.error();
  const Profile& p = (*all)[0];
  EXPECT_EQ(p.boundary_bytes[0], 500);
  EXPECT_EQ(p.rows[0].blocks[0].p50_ns, 1000);
  EXPECT_EQ(p.rows[0].blocks[1].p50_ns, 1'234'500);
  EXPECT_EQ(p.rows[1].share, 2u);
}

TEST_F(Directory, CsvErrorsNameFileAndLine) {
  put_ppipe("L4,1,1,0,3\nL4,1,1,1,-4\n");
  EXPECT_THAT(read_profiles(path_).error(), HasSubstr("profiles/m.csv:3: "));
  put_ppipe("L4,1,1,0,3\n");
  EXPECT_THAT(read_profiles(path_).error(), HasSubstr("block 1"));
  put_ppipe("L4,1,1,0\n");
  EXPECT_THAT(read_profiles(path_).error(), HasSubstr(":2: has 4 columns"));
}

TEST_F(Directory, TwoProfilesOfOneModelAreAnError) {
  put("a.json", profile_to_json(small_profile()));
  ASSERT_TRUE(read_profiles(path_).ok());
  put("b.json", profile_to_json(small_profile()));
  EXPECT_THAT(read_profiles(path_).error(), HasSubstr("second profile of model 'detector'"));
  EXPECT_THAT(read_profiles(path_ + "/profiles").error(), HasSubstr("holds no profile"));
}

}  // namespace
}  // namespace leat::planner
