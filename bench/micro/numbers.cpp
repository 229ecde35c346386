// What it costs a worker to look through the outputs of an item for values that are no numbers (engine/exec/decode/
// finite.h): each item at first, one in 32 later. Of outputs as large as models have, each time from memory as a run
// that is over leaves them, and once more when they are at hand; beside it a memcpy of the same bytes.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine/exec/decode/finite.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;

constexpr std::size_t kPoolBytes = std::size_t{96} << 20;  // more than caches hold
constexpr std::size_t kSizes[] = {4'000, 1'000 * 80, 84 * 8'400 * 4, std::size_t{16} << 20};

constexpr cli::Option kOptions[] = {
    cli::integer_option("repeats", "9", 1, 1000, "the median time of so many rounds of each"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "numbers",
    .summary = "what looking through a model's outputs for values that are no numbers costs",
    .options = kOptions};

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Microseconds of one item.
template <class Use>
double median_us(std::int64_t repeats, std::size_t items, const Use& use) {
  std::vector<double> each;
  for (std::int64_t r = 0; r < repeats; ++r) {
    const double before = now_us();
    for (std::size_t i = 0; i < items; ++i) use(i);
    each.push_back((now_us() - before) / static_cast<double>(items));
  }
  std::ranges::sort(each);
  return each[each.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  const std::vector<float> pool(kPoolBytes / sizeof(float), 0.5F);
  std::vector<float> copy(kSizes[std::size(kSizes) - 1] / sizeof(float));
  const std::int64_t repeats = args.integer("repeats");
  Json out = {{"sizes", Json::array()}};
  bool all = true;
  std::string text;
  for (const std::size_t bytes : kSizes) {
    const std::size_t values = bytes / sizeof(float), items = pool.size() / values;
    const auto item = [&](std::size_t i) {
      exec::ItemTensor t{.data = pool.data() + i * values, .name = "out", .rank = 1};
      t.shape[0] = static_cast<std::int64_t>(values);
      return t;
    };
    const double far = median_us(repeats, items, [&](std::size_t i) { all = exec::all_finite(item(i)) && all; });
    const double near = median_us(repeats, items, [&](std::size_t) { all = exec::all_finite(item(0)) && all; });
    const double memcpy_us = median_us(repeats, items, [&](std::size_t i) {
      std::memcpy(copy.data(), pool.data() + i * values, bytes);
      asm volatile("" ::: "memory");
    });
    out["sizes"].push_back({{"bytes", bytes}, {"far_us", far}, {"near_us", near}, {"memcpy_us", memcpy_us}});
    char line[160];
    std::snprintf(
        line, sizeof line,
        "%9zu bytes of float32: %8.2f us an item from memory, %8.2f at hand; memcpy %8.2f; one in 32: %6.3f\n", bytes,
        far, near, memcpy_us, far / 32);
    text += line;
  }
  out["all_finite"] = all ? 1 : 0;
  if (!json.alone()) std::fputs(text.c_str(), stdout);
  if (const int failed = json.write(out.dump(2)); failed != 0) return failed;
  return all ? 0 : 1;
}
