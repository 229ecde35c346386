#include "tools/leat/top/facts/backfill.h"

#include <algorithm>

#include "tools/leat/top/facts/reading.h"

namespace leat::tools::top {
namespace {

struct Counted {
  float came = 0, done = 0, lost = 0, good = 0;
  std::vector<double> ms;

  void add(const shm::Event& e) {
    if (e.kind == shm::EventKind::submitted) ++came;
    if (e.kind != shm::EventKind::answered) return;
    const auto outcome = static_cast<Outcome>(e.a);
    const bool answered = outcome == Outcome::completed || outcome == Outcome::late;
    ++done;
    good += outcome == Outcome::completed;
    lost += outcome == Outcome::late || (!answered && loss_of(static_cast<Reason>(e.b)) != Loss::none);
    if (answered) ms.push_back(static_cast<double>(e.c) / 1e6);
  }
  [[nodiscard]] StreamFigures figures() {
    StreamFigures out;
    out.in = out.came = came;
    out.good = good;
    out.done = done;
    out.lost = lost;
    if (done > 0) out.miss = 100 * lost / done;
    if (ms.empty()) return out;
    std::sort(ms.begin(), ms.end());
    out.p50 = static_cast<float>(ms[ms.size() / 2]);
    out.p99 = static_cast<float>(ms[ms.size() * 99 / 100]);
    return out;
  }
};

}  // namespace

std::vector<Second> backfilled(std::span<const shm::Event> events, std::int64_t now_ns,
                               std::span<const std::shared_ptr<const StreamIdentity>> streams) {
  std::vector<Second> out;
  if (events.empty()) return out;
  const std::int64_t covered = (now_ns - events.front().at_ns) / kSecondNs;
  const auto seconds = static_cast<std::size_t>(std::clamp<std::int64_t>(covered, 0, kBackfillSeconds));
  if (seconds == 0) return out;
  std::vector<Counted> total(seconds);
  std::vector<std::vector<Counted>> of_stream(streams.size(), std::vector<Counted>(seconds));
  for (const shm::Event& e : events) {
    const std::int64_t back = (now_ns - e.at_ns) / kSecondNs;
    if (e.at_ns > now_ns || back >= static_cast<std::int64_t>(seconds)) continue;
    const std::size_t at = seconds - 1 - static_cast<std::size_t>(back);
    if (e.kind != shm::EventKind::submitted && e.kind != shm::EventKind::answered) continue;
    total[at].add(e);
    // A record of this index that lived before is another stream.
    if (e.stream < streams.size() && streams[e.stream] && e.at_ns >= streams[e.stream]->opened_ns)
      of_stream[e.stream][at].add(e);
  }
  for (std::size_t s = 0; s < seconds; ++s) {
    Second second;
    second.at_ns = now_ns - static_cast<std::int64_t>(seconds - 1 - s) * kSecondNs - kSecondNs / 2;
    second.total = total[s].figures();
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (!streams[i] || streams[i]->opened_ns > second.at_ns) continue;
      second.streams.push_back(of_stream[i][s].figures());
      second.streams.back().who = streams[i];
    }
    second.sentence.text = "not yet: this is from before, by the flight recorder";
    out.push_back(std::move(second));
  }
  return out;
}

}  // namespace leat::tools::top
