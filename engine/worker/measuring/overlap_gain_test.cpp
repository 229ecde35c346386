// When batches are let overlap (overlap_gain.h), by what was measured.
#include "engine/worker/measuring/overlap_gain.h"

#include <gtest/gtest.h>
#include <time.h>

#include <array>

namespace leat::worker {
namespace {

// A module whose batches are nothing but a run that sleeps, and that sees how they are begun and finished.
class Sleeps final : public exec::Module {
 public:
  bool run(std::span<const exec::Item>, std::span<exec::ItemReport>, const std::byte*, std::byte*) noexcept override {
    return true;
  }
  std::uint32_t sets() const noexcept override { return exec::kSets; }
  void keep_one_set() noexcept override {}
  void begin(std::uint32_t set, exec::HostStream& stream, std::span<const exec::Item>, const std::byte*, std::byte*,
             const exec::Pause&) noexcept override {
    stream_ = &stream;
    alone_ = begun_++ == 0;
    tickets_[set] = stream.give(
        [](void*) noexcept {
          constexpr timespec kRun{0, 20'000'000};
          (void)::nanosleep(&kRun, nullptr);
        },
        nullptr);
  }
  bool ended(std::uint32_t set) const noexcept override { return stream_->ended(tickets_[set]); }
  bool finish(std::uint32_t set, std::span<exec::ItemReport>) noexcept override {
    if (--begun_ == 0 && alone_) {
      ++finished_alone;
      finished_too_soon += ended(set) ? 0 : 1;
    }
    stream_->wait(tickets_[set]);
    return true;
  }
  std::uint64_t feature_bytes_in() const noexcept override { return 0; }
  std::uint64_t feature_bytes_out() const noexcept override { return 0; }
  std::vector<exec::PartSpec> parts() const override { return {}; }
  std::vector<leat_tensor_shape> tensor_shapes() const override { return {}; }
  std::vector<std::string> tensor_names() const override { return {}; }
  std::vector<exec::Size> sizes() const override { return {}; }
  void give_back() noexcept override {}
  bool on_device() const noexcept override { return false; }
  exec::GraphReport graphs() const override { return {}; }
  bool not_finite() const noexcept override { return false; }
  std::string_view error() const noexcept override { return ""; }
  const exec::ModuleSpec& spec() const noexcept override { return spec_; }
  const exec::Recognised& recognised() const noexcept override { return recognised_; }

  int finished_alone = 0, finished_too_soon = 0;  // with no other batch beside them; of those, before the run ended

 private:
  exec::ModuleSpec spec_;
  exec::Recognised recognised_;
  exec::HostStream* stream_ = nullptr;
  std::array<std::uint64_t, exec::kSets> tickets_{};
  int begun_ = 0;
  bool alone_ = false;  // the batch that began last
};

// What the run takes is not the host's part.
TEST(OverlapGain, TheHostsPartIsTimedBesideTheRunAndNotWithIt) {
  auto stream = exec::HostStream::open();
  ASSERT_TRUE(stream.ok());
  Sleeps module;
  ASSERT_TRUE(measure_overlap(module, **stream, 1, false).ok());
  EXPECT_EQ(module.finished_alone, 3);
  EXPECT_EQ(module.finished_too_soon, 0);
}

TEST(OverlapGain, PaysWhereMediansAndNearlyEveryRoundSaySo) {
  const auto pays = [](std::int64_t behind, std::int64_t beside, std::uint32_t rounds, std::uint32_t won) {
    return OverlapGain{behind, beside, rounds, won}.pays();
  };
  EXPECT_TRUE(pays(110, 100, 7, 7));
  EXPECT_TRUE(pays(110, 100, 7, 6)) << "one was disturbed";
  EXPECT_FALSE(pays(150, 100, 7, 5)) << "by chance";
  EXPECT_FALSE(pays(150, 100, 3, 2));
  EXPECT_TRUE(pays(150, 100, 3, 3));
  EXPECT_FALSE(pays(104, 100, 7, 7)) << "too little";
}

TEST(OverlapGain, IsTheShareOfABatchThatTheNextOverlaps) {
  EXPECT_EQ((OverlapGain{100, 75, 7, 7}.overlap_permille()), 250u);
  EXPECT_EQ((OverlapGain{100, 120, 7, 0}.overlap_permille()), 0u);
}

}  // namespace
}  // namespace leat::worker
