// What a turn costs where streams wait for grants: its end when its picture comes, and when it expires as all others do
// at once. With one, 64 and 1024 streams that all have a turn at the same time.
#include "engine/core/grants/grants.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;
using core::Grants;
using core::StreamId;
using core::TimeNs;

constexpr std::uint32_t kStreams[] = {1, 64, 1024};
constexpr StreamId kOthers = 0;  // a stream that does not wait; by its request there is room for all turns
constexpr TimeNs kApartNs = 10, kLongNs = 1'000'000'000;

constexpr cli::Option kOptions[] = {
    cli::integer_option("rounds", "200", 1, 1e6, "in which every stream has its turn"),
    cli::integer_option("repeats", "9", 1, 1000, "the median of so many times"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {.name = "grants", .summary = "what the end of a turn costs", .options = kOptions};

// Everybody has a picture, or nobody.
struct Pictures final : Grants::Asked {
  [[nodiscard]] std::uint8_t level_of(StreamId) const noexcept override { return 0; }
  [[nodiscard]] bool has_waiting(StreamId) const noexcept override { return false; }
  [[nodiscard]] std::optional<TimeNs> picture_ns(StreamId) const noexcept override {
    return there ? std::optional<TimeNs>(1) : std::nullopt;
  }
  [[nodiscard]] TimeNs worth_ns(StreamId, TimeNs) const noexcept override { return 1; }
  bool there = true;
};

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Cost {
  double used = 0, expired = 0;  // ns a turn
};

Cost cost_of(std::uint32_t streams, std::int64_t rounds) {
  core::Limits limits;
  limits.streams = streams + 1;
  Grants grants(limits, 1);
  Pictures pictures;
  for (StreamId s = 0; s <= streams; ++s) grants.open(s, {.waits_for_grants = s != kOthers}, 0, kLongNs, 1);
  TimeNs now = 1;
  (void)grants.accepted(now, kOthers, 0);
  const auto answer = [&](StreamId s, Grants::End end) { grants.answered(now, s, grants.accepted(now, s, 0), end); };
  // Each has its turn, the later the higher its number.
  const auto all_have_turns = [&] {
    grants.submitted(now, 1, now);
    answer(1, Grants::End::lost);
    pictures.there = true;
    grants.decide(now += kApartNs, pictures);
    grants.told_all();
    pictures.there = false;
  };
  Cost out;
  for (std::int64_t r = 0; r < rounds; ++r) {
    all_have_turns();
    double began = now_ns();
    for (StreamId s = 1; s <= streams; ++s, now += kApartNs) grants.submitted(now, s, now);
    out.used += now_ns() - began;
    for (StreamId s = 1; s <= streams; ++s) answer(s, Grants::End::ran);
    all_have_turns();
    now += kLongNs;
    began = now_ns();
    grants.decide(now, pictures);
    out.expired += now_ns() - began;
    grants.told_all();
  }
  const double turns = static_cast<double>(rounds) * streams;
  return {out.used / turns, out.expired / turns};
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  Json out;
  if (!json.alone())
    std::printf("ns a turn: median [least, most]\n%8s %30s %30s\n", "streams", "used", "expired with all");
  for (const std::uint32_t streams : kStreams) {
    std::vector<double> used, expired;
    for (std::int64_t r = 0; r < args.integer("repeats"); ++r) {
      const Cost cost = cost_of(streams, std::max<std::int64_t>(1, args.integer("rounds") / streams + 1));
      used.push_back(cost.used);
      expired.push_back(cost.expired);
    }
    std::ranges::sort(used);
    std::ranges::sort(expired);
    const auto text = [](const std::vector<double>& v) {
      char line[64];
      std::snprintf(line, sizeof line, "%.0f [%.0f, %.0f]", v[v.size() / 2], v.front(), v.back());
      return std::string(line);
    };
    out["streams"][std::to_string(streams)] = {{"used_ns", used[used.size() / 2]},
                                               {"expired_ns", expired[expired.size() / 2]}};
    if (!json.alone()) std::printf("%8u %30s %30s\n", streams, text(used).c_str(), text(expired).c_str());
  }
  return json.write(out.dump(1));
}
