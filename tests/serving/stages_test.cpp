// Routes of several stages through a whole leatd with emulated partitions: every byte of the features proven by the
// checksum that is carried through them, workers killed between the stages, and no slot, descriptor or answer lost.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "engine/exec/checksum.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/json/json.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using shm::EdgeCounter;
using shm::RecordKind;
using shm::StreamCounter;

constexpr std::uint32_t kBatch = 4;
constexpr std::uint64_t kItemBytes = 3000;  // no multiple of a line or a page

struct Shape {
  std::uint32_t stages = 2, width = 1;  // stage s runs on partitions sS0, sS1, ...
  double fixed_ms = 1, last_ms = 1;     // a stage takes that, the last one last_ms, and 0.5 ms an item
  std::int64_t slo_ms = 1000;
};

Json plan_of(const Shape& shape) {
  const auto [stages, width, fixed_ms, last_ms, slo_ms] = shape;
  Json partitions = Json::array(), list = Json::array();
  for (std::uint32_t s = 0; s < stages; ++s) {
    Json pool = Json::array(), latency = Json::array();
    for (std::uint32_t i = 0; i < width; ++i) {
      pool.push_back(partitions.size());
      partitions.push_back({{"name", "s" + std::to_string(s) + std::to_string(i)},
                            {"kind", "emulated"},
                            {"class", "s" + std::to_string(s)},
                            {"share", 1},
                            {"size", 1},
                            {"price", 1},
                            {"device", partitions.size()},
                            {"host", 0},
                            {"selector", ""}});
    }
    for (std::uint32_t b = 1; b <= kBatch; ++b) {
      const auto ns = static_cast<std::int64_t>(((s + 1 < stages ? fixed_ms : last_ms) + 0.5 * b) * 1e6);
      latency.push_back({{"p50_ns", ns}, {"p99_ns", ns}, {"samples", 0}});
    }
    list.push_back({{"first_block", s},
                    {"end_block", s + 1},
                    {"pool", pool},
                    {"transfer_bytes", s + 1 < stages ? kItemBytes : 0},
                    {"latency_by_batch", latency}});
  }
  return {{"schema", "leat-plan/1"},
          {"applications",
           {{{"name", "pipe"},
             {"slo_ns", slo_ms * 1'000'000},
             {"rate_rps", 100},
             {"weight", 1},
             {"module", {{{"name", "sum"}, {"model", "sum"}}}}}}},
          {"partitions", partitions},
          {"hosts", Json::array()},
          {"routes", {{{"application", 0}, {"module", 0}, {"batch", kBatch}, {"rate_rps", 100}, {"stages", list}}}},
          {"budget_ns", Json::array()},
          {"certificate",
           {{"objective", 100}, {"upper_bound", 100}, {"gap", 0}, {"binding", ""}, {"method", ""}, {"seconds", 0}}}};
}

std::string config_of(const Json& plan, const std::string& plan_path, const std::string& preset) {
  std::string text = "[daemon]\nplan = \"" + plan_path + "\"\n[policy]\npreset = \"" + preset + "\"\n";
  for (const Json& p : plan.at("partitions"))
    text += "[[partition]]\nname = " + p.at("name").dump() + "\nclass = " + p.at("class").dump() +
            "\nkind = \"emulated\"\n";
  return text + "[[application]]\nname = \"pipe\"\nslo_ms = " +
         std::to_string(plan.at("applications")[0].at("slo_ns").get<std::int64_t>() / 1'000'000) +
         "\n[[application.module]]\nname = \"sum\"\nexecutor = \"emulated\"\nlatency_ms = [1]\n";
}

leat_stream_options small(std::uint32_t depth) {
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "pipe";
  o.format = LEAT_FORMAT_gray8;
  o.width = 64;
  o.height = 16;
  o.depth = o.slots = depth;
  o.overload = LEAT_OVERLOAD_fifo;
  return o;
}

// What the last stage answers to a frame with this checksum.
std::uint64_t through(std::uint64_t sum, std::uint32_t stages) {
  std::vector<std::byte> features(kItemBytes);
  for (std::uint32_t s = 1; s < stages; ++s) {
    exec::fill_from(sum, features.data(), features.size());
    sum = exec::checksum(features.data(), features.size());
  }
  return sum;
}

// PPipe as printed holds an incomplete batch back until the last safe moment: its SLO stays near its times, and a timer
// that rings a little later costs it frames. The others get an SLO that a busy machine keeps.
std::int64_t slo_ms(std::string_view preset) { return preset == "ppipe" ? 1000 : 20'000; }

// A pipeline of emulated stages with one client.
class Pipeline {
 public:
  Pipeline(const Shape& shape, const std::string& preset)
      : stages_(shape.stages),
        plan_(plan_of(shape)),
        leatd_(config_of(plan_, folder_.write("plan.json", plan_.dump()), preset)) {}

  Leatd& leatd() { return leatd_; }
  void open(std::int64_t slo_ns = 0, std::uint32_t depth = 8) {
    auto client = Client::connect(leatd_.socket(), "stages");
    ASSERT_TRUE(client.ok()) << client.error() << leatd_.log();
    client_.emplace(std::move(*client));
    auto options = small(depth);
    options.slo_ns = slo_ns;
    auto stream = client_->open_stream(options);
    ASSERT_TRUE(stream.ok()) << stream.error();
    stream_.emplace(std::move(*stream));
  }
  void leave() {
    stream_.reset();
    client_.reset();
    in_flight_ = 0;
  }
  void submit() {
    auto frame = stream_->acquire();
    ASSERT_TRUE(frame.has_value()) << leat_last_error();
    leat_submit_options options{};
    options.cookie = ++sent_;
    expected_[sent_] = through(paint(frame->raw(), sent_), stages_);
    ASSERT_EQ(frame->submit(options), LEAT_ERROR_ok) << leat_last_error();
    ++in_flight_;
  }
  // Fills the stream's slots, then takes one answer and submits one frame until `count` were answered, calling `at`
  // before each.
  template <class At>
  void pump(std::uint64_t count, At at) {
    for (std::uint64_t answered = 0; answered < count; ++answered) {
      at(answered);
      while (in_flight_ < 8) ASSERT_NO_FATAL_FAILURE(submit());
      ASSERT_NO_FATAL_FAILURE(take());
    }
    while (in_flight_ > 0) ASSERT_NO_FATAL_FAILURE(take());
  }
  void pump(std::uint64_t count) {
    pump(count, [](std::uint64_t) {});
  }
  // Keeps the stream's slots filled until frames are seen between the stages: whoever looks seldom would miss any few.
  void fill() {
    EXPECT_TRUE(eventually([&] {
      while (in_flight_ < 8 && !testing::Test::HasFatalFailure()) submit();
      if (edge(0, EdgeCounter::slots_in_use) > 0) return true;
      while (const auto answer = client_->next_answer(0s)) note(*answer);
      return false;
    }));
  }
  void take() {
    auto answer = client_->next_answer(60s);
    ASSERT_TRUE(answer.has_value()) << "no answer: " << leat_last_error() << leatd_.log();
    note(*answer);
  }
  void note(const Answer& answer) {
    --in_flight_;
    ++outcomes[answer.outcome()];
    if (answer.outcome() == Outcome::failed || answer.outcome() == Outcome::dropped) ++reasons[answer.reason()];
    if (answer.result() != nullptr && answer.result()->checksum != expected_[answer.raw().cookie]) ++wrong;
  }
  std::uint64_t edge(std::uint32_t e, EdgeCounter counter) {
    return leatd_.record(RecordKind::edge, e)->value(counter).value_or(UINT64_MAX);
  }
  // Nothing in flight, nothing kept.
  void expect_clean() {
    EXPECT_TRUE(eventually([&] {
      bool clean = value(*leatd_.total(), StreamCounter::in_flight) == 0;
      for (std::uint32_t e = 0; e + 1 < stages_; ++e) clean = clean && edge(e, EdgeCounter::slots_in_use) == 0;
      return clean;
    })) << "in flight "
        << value(*leatd_.total(), StreamCounter::in_flight) << ", slots " << edge(0, EdgeCounter::slots_in_use);
    EXPECT_TRUE(balances(*leatd_.total()));
    EXPECT_EQ(wrong, 0U) << "answers made from another frame's features";
  }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t in_flight() const { return in_flight_; }

  std::map<Outcome, std::uint64_t> outcomes;
  std::map<Reason, std::uint64_t> reasons;
  std::uint64_t wrong = 0;

 private:
  std::uint32_t stages_;
  ScratchFolder folder_;
  Json plan_;
  Leatd leatd_;
  std::optional<Client> client_;
  std::optional<Stream> stream_;
  std::map<std::uint64_t, std::uint64_t> expected_;
  std::uint64_t sent_ = 0, in_flight_ = 0;
};

// The presets with reservations send each stage on its own; the others send one batch over its whole path.
TEST(Stages, EveryFrameGoesThroughAllOfThem) {
  for (const char* preset : {"leat", "ppipe", "pard", "naive"}) {
    for (const std::uint32_t stages : {2U, 3U}) {
      SCOPED_TRACE(std::string(preset) + ", " + std::to_string(stages) + " stages");
      Pipeline p({.stages = stages, .width = 2, .slo_ms = slo_ms(preset)}, preset);
      ASSERT_NO_FATAL_FAILURE(p.open());
      ASSERT_NO_FATAL_FAILURE(p.pump(300));
      const std::uint64_t frames = p.outcomes[Outcome::completed] + p.outcomes[Outcome::late],
                          submitted = value(*p.leatd().total(), StreamCounter::submitted);
      if (preset != std::string_view("ppipe")) {
        EXPECT_EQ(p.outcomes[Outcome::completed], submitted);
      }
      ASSERT_NO_FATAL_FAILURE(p.expect_clean());
      // A frame that is given up between two stages has come over the edges before: each edge moved what the next one
      // moved and what was lost between them.
      std::uint64_t rows = submitted;
      for (std::uint32_t e = 0; e + 1 < stages; ++e) {
        const std::uint64_t bytes = p.edge(e, EdgeCounter::bytes_in_place) + p.edge(e, EdgeCounter::bytes_copied);
        EXPECT_EQ(bytes % kItemBytes, 0U);
        EXPECT_LE(bytes / kItemBytes, rows) << "edge " << e;
        EXPECT_GE(bytes / kItemBytes, frames) << "edge " << e;
        EXPECT_GT(p.edge(e, EdgeCounter::transfers), 0U);
        rows = bytes / kItemBytes;
      }
      EXPECT_EQ(p.leatd().record(RecordKind::module, 0)->value(shm::ModuleCounter::tasks), rows)
          << "once a task, not once a stage";
      EXPECT_EQ(p.leatd().stop(), 0) << p.leatd().log();
    }
  }
}

TEST(Stages, ABatchThatStaysTogetherIsNotCopied) {
  Pipeline p({}, "pard");
  ASSERT_NO_FATAL_FAILURE(p.open());
  ASSERT_NO_FATAL_FAILURE(p.pump(200));
  EXPECT_EQ(p.edge(0, EdgeCounter::bytes_copied), 0U);
  EXPECT_LT(p.edge(0, EdgeCounter::transfers), value(*p.leatd().total(), StreamCounter::submitted))
      << "some batches had several frames";
  EXPECT_EQ(p.wrong, 0U);
}

TEST(Stages, AWorkerKilledAtAnyStageCostsNoAnswerAndNoSlot) {
  for (const char* preset : {"leat", "ppipe", "pard"}) {
    SCOPED_TRACE(preset);
    constexpr std::uint32_t kStages = 3;
    Pipeline p({.stages = kStages, .fixed_ms = 3, .last_ms = 3, .slo_ms = slo_ms(preset)}, preset);
    ASSERT_NO_FATAL_FAILURE(p.open());
    ASSERT_NO_FATAL_FAILURE(p.pump(20));
    const auto workers = p.leatd().workers();
    ASSERT_EQ(workers.size(), kStages);
    const Footprint before = footprint(p.leatd().pid());
    for (std::uint32_t s = 0; s < kStages; ++s) {
      SCOPED_TRACE("stage " + std::to_string(s));
      ASSERT_NO_FATAL_FAILURE(p.pump(60, [&](std::uint64_t answered) {
        if (answered == 20) {
          ASSERT_EQ(kill(workers[s], SIGKILL), 0);
        }
      }));
      ASSERT_TRUE(eventually([&] {
        const auto now = p.leatd().workers();
        return now.size() == kStages && now[s] != 0 && now[s] != workers[s];
      })) << p.leatd().log();
      ASSERT_NO_FATAL_FAILURE(p.expect_clean());
    }
    for (const auto& [reason, count] : p.reasons)  // the last one where no worker is back by the deadline
      EXPECT_TRUE(reason == Reason::partition_lost || reason == Reason::unreachable || reason == Reason::expired ||
                  reason == Reason::no_partition)
          << name_of(reason) << " " << count << " times";
    p.outcomes.clear();
    ASSERT_NO_FATAL_FAILURE(p.pump(50));
    if (preset != std::string_view("ppipe")) {
      EXPECT_EQ(p.outcomes[Outcome::completed], 57U) << "everybody is back";
    }
    const auto now = p.leatd().workers();
    for (std::uint32_t s = 0; s < kStages; ++s) EXPECT_NE(now[s], workers[s]);
    EXPECT_TRUE(eventually([&] {
      const Footprint after = footprint(p.leatd().pid());
      return after.descriptors <= before.descriptors && after.mappings <= before.mappings;
    })) << "descriptors "
        << before.descriptors << " -> " << footprint(p.leatd().pid()).descriptors;
    EXPECT_EQ(p.leatd().stop(), 0) << p.leatd().log();
  }
}

TEST(Stages, AClientThatLeavesBetweenThemGivesItsSlotsBack) {
  for (const char* preset : {"leat", "naive"}) {
    SCOPED_TRACE(preset);
    Pipeline p({.stages = 3, .fixed_ms = 10, .last_ms = 10}, preset);
    for (int round = 0; round < 4; ++round) {
      ASSERT_NO_FATAL_FAILURE(p.open());
      ASSERT_NO_FATAL_FAILURE(p.fill());
      p.leave();
    }
    p.expect_clean();
    EXPECT_EQ(p.leatd().stop(), 0) << p.leatd().log();
  }
}

TEST(Stages, SigtermFinishesWhatIsBetweenThem) {
  Pipeline p({.stages = 3, .fixed_ms = 20, .last_ms = 20}, "leat");
  ASSERT_NO_FATAL_FAILURE(p.open());
  ASSERT_NO_FATAL_FAILURE(p.fill());
  EXPECT_EQ(p.leatd().stop(), 0) << p.leatd().log();
  while (p.in_flight() > 0) ASSERT_NO_FATAL_FAILURE(p.take());
  EXPECT_EQ(p.outcomes[Outcome::completed] + p.outcomes[Outcome::rejected], p.sent());
  EXPECT_EQ(p.wrong, 0U);
}

// A client that grants its frames more time than the application has lets more of them wait between the stages than
// there are slots for.
TEST(Stages, WithoutASlotATaskFailsAndNoOtherIsHarmed) {
  for (const char* preset : {"leat", "naive"}) {
    SCOPED_TRACE(preset);
    Pipeline p({.stages = 2, .width = 1, .fixed_ms = 0.2, .last_ms = 100, .slo_ms = 50}, preset);
    ASSERT_NO_FATAL_FAILURE(p.open(60'000'000'000, 64));
    for (int i = 0; i < 64; ++i) ASSERT_NO_FATAL_FAILURE(p.submit());
    for (int i = 0; i < 64; ++i) ASSERT_NO_FATAL_FAILURE(p.take());
    EXPECT_GT(p.reasons[Reason::no_feature_slot], 0U);
    EXPECT_GT(p.outcomes[Outcome::completed], 15U);
    EXPECT_EQ(p.outcomes[Outcome::completed] + p.reasons[Reason::no_feature_slot], 64U);
    p.expect_clean();
  }
}

TEST(Stages, StatusShowsThem) {
  Pipeline p({.stages = 2, .width = 2, .slo_ms = slo_ms("leat")}, "leat");
  ASSERT_NO_FATAL_FAILURE(p.open());
  ASSERT_NO_FATAL_FAILURE(p.pump(10));
  const Json status = Json::parse(p.leatd().status_json());
  const Json& route = status.at("applications")[0].at("modules")[0].at("routes")[0];
  EXPECT_EQ(route.at("stages")[1].at("partitions"), (Json{"s10", "s11"}));
  EXPECT_EQ(route.at("stages")[1].at("blocks"), (Json{1, 2}));
  const Json& edge = status.at("edges")[0];
  EXPECT_EQ(edge.at("name"), "pipe/sum cut 1");
  EXPECT_EQ(edge.at("item_bytes"), kItemBytes);
  EXPECT_EQ(edge.at("bytes_in_place").get<std::uint64_t>() + edge.at("bytes_copied").get<std::uint64_t>(),
            value(*p.leatd().total(), StreamCounter::submitted) * kItemBytes);
}

}  // namespace
}  // namespace leat::test
