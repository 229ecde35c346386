// What a coordinated stream's client pays to ask whether a frame is wanted: on a page that is as it was, and on one
// that has been written anew; beside it the floor, a plain copy of as many bytes. Least of many repeats, one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "shm/src/rings/frame_clock.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;

constexpr cli::Option kOptions[] = {
    cli::integer_option("repeats", "50", 1, 1e6, "of 20000 frames each; the least counts"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "schedule_page", .summary = "what asking for a schedule costs a client", .options = kOptions};

constexpr int kFrames = 20'000;
constexpr std::int64_t kPeriod = 16'666'667;

template <class Each>
double least_ns(int repeats, Each&& each) {
  double min = 1e9;
  for (int r = 0; r < repeats; ++r) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kFrames; ++i) each(i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    min = std::min(min, took.count() / kFrames);
  }
  return min;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const int repeats = static_cast<int>(args.integer("repeats"));
  auto page = std::make_unique<shm::SchedulePage>();
  shm::Schedule told;
  told.standing = LEAT_STANDING_ADMITTED;
  told.count = shm::kScheduleFrames;
  for (std::uint32_t i = 0; i < told.count; ++i)
    told.frames[i] = static_cast<std::uint64_t>(1'000'000'000 + 10 * i * kPeriod);
  page->write(told);

  shm::Schedule to;
  const double floor = least_ns(repeats, [&](int i) {
    told.evictions = static_cast<std::uint32_t>(i);
    std::memcpy(&to, &told, sizeof told);
    asm volatile("" : : "r"(&to) : "memory");
  });
  std::uint64_t seen = 0, wanted = 0;
  const double read = least_ns(repeats, [&](int) {
    seen = 0;  // as if it were new
    wanted += page->read(seen, to) ? 1 : 0;
    asm volatile("" : : "r"(&to) : "memory");
  });
  shm::FrameClock clock(kPeriod);
  std::int64_t capture = 0;
  const double same = least_ns(repeats, [&](int) { wanted += clock.wanted(*page, capture += kPeriod) ? 1 : 0; });
  const double write = least_ns(repeats, [&](int) { page->write(told); });
  asm volatile("" : : "r"(&wanted) : "memory");
  const Json out = {{"bytes", sizeof told},     {"floor_ns", floor}, {"read_ns", read},
                    {"should_submit_ns", same}, {"write_ns", write}, {"read_over_floor", read / floor}};
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf(
      "a copy of %zu bytes %.1f ns; reading a new page %.1f ns; asking on an old one %.1f ns; writing it %.1f ns\n",
      sizeof told, floor, read, same, write);
  return 0;
}
