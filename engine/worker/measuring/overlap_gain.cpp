#include "engine/worker/measuring/overlap_gain.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/worker/measuring/no_features.h"
#include "engine/worker/measuring/picture.h"
#include "shm/src/rings/clock.h"

namespace leat::worker {
namespace {

constexpr std::uint32_t kMostRows = 8;  // of a batch: how the parts of a larger one relate is much the same
constexpr int kInARound = 4, kRounds = 7, kLeastRounds = 3;
constexpr std::int64_t kLongEnoughNs = 1'000'000'000;  // then the least must do

// Batches of pictures of the largest size, on grey frames.
class Runs {
 public:
  Runs(exec::Module& module, exec::HostStream& stream, std::vector<Picture>& pictures, const NoFeatures& rows,
       std::uint32_t batch)
      : module_(module), stream_(stream), rows_(rows), items_(pictures.back().items(batch)) {}

  bool behind(int count) {
    bool good = true;
    for (int i = 0; i < count; ++i) good = module_.run(items_, reports(), rows_.in(), rows_.out()) && good;
    return good;
  }
  // Two at a time are begun, as in service.
  bool beside(int count) {
    bool good = true;
    begin(0);
    for (int i = 1; i <= count; ++i) {
      if (i < count) begin(i);
      good = finish(i - 1) && good;
    }
    return good;
  }
  // One batch in its two halves: what of it a stream would not do, in parts of it. Less than 0: it failed.
  double host_part() {
    const std::int64_t start = shm::monotonic_ns();
    begin(0);
    const std::int64_t begun = shm::monotonic_ns();
    stream_.wait_all();
    const std::int64_t ran = shm::monotonic_ns();
    if (!finish(0)) return -1;
    const std::int64_t end = shm::monotonic_ns();
    return static_cast<double>(begun - start + end - ran) / static_cast<double>(std::max<std::int64_t>(1, end - start));
  }

 private:
  static std::uint32_t set_of(int i) { return static_cast<std::uint32_t>(i) % exec::kSets; }
  void begin(int i) { module_.begin(set_of(i), stream_, items_, rows_.in(), rows_.out()); }
  bool finish(int i) { return module_.finish(set_of(i), reports()); }
  std::span<exec::ItemReport> reports() { return {reports_.data(), items_.size()}; }

  exec::Module& module_;
  exec::HostStream& stream_;
  const NoFeatures& rows_;
  std::span<const exec::Item> items_;
  std::array<exec::ItemReport, exec::kMaxRows> reports_;
};

std::int64_t median(std::vector<std::int64_t>& times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

Result<OverlapGain> measure_overlap(exec::Module& module, exec::HostStream& stream, std::uint32_t batch, bool crops) {
  std::vector<Picture> pictures = pictures_for(module, crops);
  const std::uint32_t size = std::min(batch, kMostRows);
  auto rows = NoFeatures::of(module, size);
  if (!rows.ok()) return Error{rows.error()};
  Runs runs(module, stream, pictures, *rows, size);
  const auto failed = [&] { return Error{std::string(module.error())}; };
  if (!runs.behind(1) || !runs.beside(static_cast<int>(exec::kSets)))
    return failed();  // of each set, what is slow once
  std::array<double, 3> parts{};
  for (double& part : parts)
    if ((part = runs.host_part()) < 0) return failed();
  std::ranges::sort(parts);
  if (1 / (1 - parts[1]) < kOverlapPays) return OverlapGain{.behind_ns = 1, .beside_ns = 1};
  std::vector<std::int64_t> behind, beside;
  std::uint32_t won = 0;
  const std::int64_t start = shm::monotonic_ns();
  for (int round = 0; round < kRounds && (round < kLeastRounds || shm::monotonic_ns() - start < kLongEnoughNs);
       ++round) {
    for (const bool overlapping : {round % 2 == 0, round % 2 != 0}) {
      const std::int64_t began = shm::monotonic_ns();
      if (!(overlapping ? runs.beside(kInARound) : runs.behind(kInARound))) return failed();
      (overlapping ? beside : behind).push_back((shm::monotonic_ns() - began) / kInARound);
    }
    won += beside.back() < behind.back() ? 1 : 0;
  }
  const auto rounds = static_cast<std::uint32_t>(behind.size());
  return OverlapGain{.behind_ns = median(behind), .beside_ns = median(beside), .rounds = rounds, .won = won};
}

}  // namespace leat::worker
