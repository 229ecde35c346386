// The papers' presets and their words; ELSA's worked example.
#include "engine/papers/presets.h"

#include <algorithm>

#include "engine/core/test/test_bench.h"

namespace leat::papers {
namespace {

using namespace core;
using test::Bench;
using test::chain;
using test::kMs;

// PARIS and ELSA, figure 10: the large partition is busy, the small one idle. FIFS puts A on the small one, where it
// violates its SLA; ELSA waits for the large one.
TEST(Elsa, Figure10) {
  Topology t = chain(1, 2, 1, 0, 0, 100 * kMs);
  t.routes[0].stages[0].latency = test::affine(120 * kMs, 0, 1);
  t.routes[0].stages[0].pool = {0};
  t.routes.push_back(
      {.module = 0, .batch = 1, .rate_rps = 0, .stages = {{.pool = {1}, .latency = test::affine(40 * kMs, 0, 1)}}});
  t.modules[0].routes = {0, 1};
  t.partitions[0].size = 1;
  t.partitions[1].size = 7;
  Policy elsa, fifs;
  ASSERT_TRUE(papers::preset("elsa", elsa) && papers::preset("fifs", fifs));
  for (const bool smart : {false, true}) {
    Topology order = t;
    if (!smart)
      std::swap(order.modules[0].routes[0], order.modules[0].routes[1]);  // FIFS: the first query meets the large one
    Bench b(order, smart ? elsa : fifs);
    const StreamId s = b.open();
    b.submit(s, 1);  // B: goes to the large partition
    b.now = 10 * kMs;
    b.submit(s, 2);  // A
    b.run_to(400 * kMs);
    EXPECT_EQ(b.sent[0].path[0], 1u);
    EXPECT_EQ(b.sent[1].path[0], smart ? 1u : 0u);
    EXPECT_EQ(b.answers[2].outcome, smart ? Outcome::completed : Outcome::late);
  }
}

TEST(PaperPresets, EveryNameIsKnownAndNoOther) {
  Policy p;
  const auto names = test::words_of(preset_names());
  EXPECT_EQ(names.size(), 26U);
  EXPECT_EQ(names.front(), "leat");
  for (const std::string& name : names) EXPECT_TRUE(papers::preset(name, p)) << name;
  EXPECT_FALSE(papers::preset("", p));
  EXPECT_FALSE(papers::preset("leatt", p));
}

TEST(PaperPresets, TakeSettings) {
  const auto list = read_policies(
      "leat, pard:order=lbf:window_ms=2.5 ,leat,clipper++:split_reading=elapsed_and_execution:form_ahead=false");
  ASSERT_TRUE(list.ok()) << list.error();
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[1].name, "pard:order=lbf:window_ms=2.5");
  for (const char* inert : {"naive:split_reading=elapsed", "leat:oc_alpha_permille=10", "pard-sf:lambda_permille=5",
                            "elsa:place=rr:alpha_permille=5"}) {
    const auto refused = read_policy(inert);
    ASSERT_FALSE(refused.ok()) << inert;
    EXPECT_NE(refused.error().find("does not look at it; leave it out, the keys here are"), std::string::npos) << inert;
  }
  EXPECT_EQ(read_policies("all")->size(), 26u);
  const std::string who = read_policy("leat:lambda_permille=10").error();
  EXPECT_NE(who.find("presets that look at lambda_permille: pard"), std::string::npos) << who;
  for (const char* wrong : {"fifs:place=tc", "ppipe:risk_permille=5", "pard:order=lifo", "pard:ordre=lbf"})
    EXPECT_FALSE(read_policy(wrong).ok()) << wrong;
  EXPECT_NE(read_policy("pard:ordre=lbf").error().find("did you mean 'order'?"), std::string::npos);
}

}  // namespace
}  // namespace leat::papers
