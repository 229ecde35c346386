// Batches in two halves, on a stream that a test can hold: answers are those of run(), whatever else is on its way, and
// every wait is missed by a test that fails without it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <semaphore>
#include <vector>

#include "engine/exec/checksum.h"
#include "engine/exec/host_stream.h"
#include "engine/exec/module.h"

namespace leat::exec {
namespace {

constexpr std::uint32_t kSide = 64;

// A batch of pictures of noise, and where its answers go.
struct Pictures {
  Pictures(std::uint32_t count, std::uint32_t seed) : pixels(count), answers(count), items(count), reports(count) {
    std::minstd_rand random(seed);
    for (std::uint32_t i = 0; i < count; ++i) {
      pixels[i].resize(std::size_t{kSide} * kSide * 3);
      for (auto& p : pixels[i]) p = static_cast<std::uint8_t>(random() >> 8);
      FrameView& f = items[i].frame;
      f.planes[0] = pixels[i].data();
      f.strides[0] = kSide * 3;
      f.format = LEAT_FORMAT_rgb24;
      f.width = f.height = kSide;
      f.bytes = pixels[i].size();
      items[i].result = &answers[i];
    }
  }
  [[nodiscard]] bool answered() const {
    for (std::size_t i = 0; i < items.size(); ++i)
      if (answers[i].checksum != checksum(pixels[i].data(), pixels[i].size())) return false;
    return true;
  }
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<leat_result> answers;
  std::vector<Item> items;
  std::vector<ItemReport> reports;
};

// Holds what is given to a stream behind it until it is let go.
struct Gate {
  std::binary_semaphore open{0};
  static void hold(void* gate) noexcept { static_cast<Gate*>(gate)->open.acquire(); }
};

struct Overlapping : testing::Test {
  void SetUp() override {
    auto opened = HostStream::open();
    ASSERT_TRUE(opened.ok()) << opened.error();
    stream = std::move(*opened);
    auto made = Module::open({.name = "m", .executor = "emulated", .batch_max = 4, .sets = kSets});
    ASSERT_TRUE(made.ok()) << made.error();
    module = std::move(*made);
    ASSERT_EQ(module->sets(), kSets);
  }
  std::unique_ptr<HostStream> stream;
  std::unique_ptr<Module> module;
};

// Whether it has come to its end by itself; one that waits for the gate has not, however long this looks.
template <class T>
bool ends_early(std::future<T>& future) {
  constexpr std::chrono::milliseconds kLook{50};
  return future.wait_for(kLook) == std::future_status::ready;
}

TEST_F(Overlapping, FinishWaitsForItsRun) {
  Gate gate;
  Pictures batch(4, 1);
  (void)stream->give(Gate::hold, &gate);
  module->begin(0, *stream, batch.items);
  EXPECT_FALSE(module->ended(0));
  auto finished = std::async(std::launch::async, [&] { return module->finish(0, batch.reports); });
  EXPECT_FALSE(ends_early(finished)) << "the model has not run";
  gate.open.release();
  EXPECT_TRUE(finished.get());
  EXPECT_TRUE(module->ended(0));
  EXPECT_TRUE(batch.answered());
}

TEST_F(Overlapping, AnswersWaitForNothingOfTheNextBatch) {
  Gate gate;
  Pictures first(2, 1), second(4, 2);
  module->begin(0, *stream, first.items);
  (void)stream->give(Gate::hold, &gate);
  module->begin(1, *stream, second.items);
  EXPECT_TRUE(module->finish(0, first.reports));  // would not return if it waited for the second
  EXPECT_TRUE(first.answered());
  EXPECT_FALSE(module->ended(1));
  gate.open.release();
  EXPECT_TRUE(module->finish(1, second.reports));
  EXPECT_TRUE(second.answered());
}

TEST_F(Overlapping, TheBatchBeforeIsFinishedWhileTheNextIsPrepared) {
  Pictures first(3, 1), second(4, 2);
  module->begin(0, *stream, first.items);
  stream->wait_all();
  int pauses = 0;
  module->begin(1, *stream, second.items, nullptr, nullptr, [&] {
    if (pauses++ != 1) return;
    EXPECT_TRUE(module->ended(0));
    EXPECT_TRUE(module->finish(0, first.reports));
    EXPECT_TRUE(first.answered());
  });
  EXPECT_EQ(pauses, 4);
  EXPECT_TRUE(module->finish(1, second.reports));
  EXPECT_TRUE(second.answered());
}

TEST_F(Overlapping, AnItemThatCannotBeUsedFailsAlone) {
  Pictures batch(3, 1), after(3, 2);
  batch.items[1].frame.bytes = 5;
  module->begin(0, *stream, batch.items);
  module->begin(1, *stream, after.items);
  EXPECT_TRUE(module->finish(0, batch.reports));
  EXPECT_EQ(batch.reports[0].reason, Reason::none);
  EXPECT_EQ(batch.reports[1].reason, Reason::bad_frame);
  EXPECT_EQ(batch.answers[2].checksum, checksum(batch.pixels[2].data(), batch.pixels[2].size()));
  EXPECT_TRUE(module->finish(1, after.reports));
  EXPECT_TRUE(after.answered());
}

TEST_F(Overlapping, ABatchThatIsTooLargeFailsAndTheNextRuns) {
  Pictures large(5, 1), after(4, 2);
  module->begin(0, *stream, large.items);
  module->begin(1, *stream, after.items);
  EXPECT_TRUE(module->ended(0));
  EXPECT_FALSE(module->finish(0, large.reports));
  EXPECT_EQ(large.reports[4].reason, Reason::model_error);
  EXPECT_NE(module->error().find("larger"), std::string_view::npos);
  EXPECT_TRUE(module->finish(1, after.reports));
  EXPECT_TRUE(after.answered());
}

TEST_F(Overlapping, ManyBatchesInTurnsAreAnsweredEach) {
  std::vector<std::unique_ptr<Pictures>> batches;
  for (std::uint32_t i = 0; i < 64; ++i) batches.push_back(std::make_unique<Pictures>(1 + i % 4, i));
  module->begin(0, *stream, batches[0]->items);
  for (std::uint32_t i = 1; i <= batches.size(); ++i) {
    if (i < batches.size()) module->begin(i % kSets, *stream, batches[i]->items);
    ASSERT_TRUE(module->finish((i - 1) % kSets, batches[i - 1]->reports));
    ASSERT_TRUE(batches[i - 1]->answered()) << i - 1;
  }
}

TEST_F(Overlapping, OneSetIsKept) {
  module->keep_one_set();
  EXPECT_EQ(module->sets(), 1u);
  Pictures batch(4, 1);
  EXPECT_TRUE(module->run(batch.items, batch.reports));
  EXPECT_TRUE(batch.answered());
}

TEST(Stream, WorkIsDoneInItsOrderAndWhatWasGivenEndsWithIt) {
  struct Note {
    std::vector<int>* list;
    int number;
    static void write(void* note) noexcept {
      auto* const n = static_cast<Note*>(note);
      n->list->push_back(n->number);
    }
  };
  std::vector<int> list;
  std::vector<Note> notes;
  for (int i = 0; i < 100; ++i) notes.push_back({&list, i});
  {
    auto stream = HostStream::open();
    ASSERT_TRUE(stream.ok()) << stream.error();
    for (Note& n : notes) (void)(*stream)->give(Note::write, &n);  // more than its room: giving waits
  }
  ASSERT_EQ(list.size(), notes.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(list[static_cast<std::size_t>(i)], i);
}

// Room for kRoom pieces: one more waits until the first has ended, so that none is written over.
TEST(Stream, GivingWaitsForRoom) {
  auto stream = HostStream::open();
  ASSERT_TRUE(stream.ok()) << stream.error();
  Gate gate;
  int done = 0;
  const auto count = [](void* n) noexcept { ++*static_cast<int*>(n); };
  (void)(*stream)->give(Gate::hold, &gate);
  for (std::uint32_t i = 1; i < HostStream::kRoom; ++i) (void)(*stream)->give(count, &done);
  auto given = std::async(std::launch::async, [&] { return (*stream)->give(count, &done); });
  EXPECT_FALSE(ends_early(given));
  gate.open.release();
  (*stream)->wait(given.get());
  EXPECT_EQ(done, static_cast<int>(HostStream::kRoom));
}

#ifndef __SANITIZE_THREAD__  // ONNX Runtime is not instrumented
TEST(OverlappingModel, AnswersAreThoseOfOneBatchBehindTheOther) {
  auto stream = HostStream::open();
  ASSERT_TRUE(stream.ok()) << stream.error();
  auto module = Module::open({.name = "classify",
                              .model_path = LEAT_MODELS "/classify.onnx",
                              .preprocess = "stretch mean=0.5 std=0.5",
                              .postprocess = "classes",
                              .batch_max = 4,
                              .threads = 2,
                              .sets = kSets});
  ASSERT_TRUE(module.ok()) << module.error();
  ASSERT_EQ((*module)->sets(), kSets);
  std::vector<std::unique_ptr<Pictures>> batches, wanted;
  for (std::uint32_t i = 0; i < 40; ++i) {
    batches.push_back(std::make_unique<Pictures>(1 + i * 7 % 4, i));
    wanted.push_back(std::make_unique<Pictures>(1 + i * 7 % 4, i));
    ASSERT_TRUE((*module)->run(wanted[i]->items, wanted[i]->reports));
  }
  (*module)->begin(0, **stream, batches[0]->items);
  for (std::uint32_t i = 1; i <= batches.size(); ++i) {
    if (i < batches.size()) (*module)->begin(i % kSets, **stream, batches[i]->items);
    ASSERT_TRUE((*module)->finish((i - 1) % kSets, batches[i - 1]->reports)) << (*module)->error();
    const std::vector<leat_result>&got = batches[i - 1]->answers, &want = wanted[i - 1]->answers;
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof got[0]), 0) << i - 1;
  }
}
#endif

}  // namespace
}  // namespace leat::exec
