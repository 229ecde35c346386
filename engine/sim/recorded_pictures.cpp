#include "engine/sim/recorded_pictures.h"

#include <algorithm>
#include <span>

namespace leat::sim {
namespace {

using core::TimeNs;
using record::History;

constexpr TimeNs kShortestNs = 100'000;  // no camera takes pictures faster
constexpr TimeNs kSeldomSeen = 8;        // one of so many is seen at least
constexpr std::size_t kUsual = 10;       // the tenth part of a list is not less than this one

template <class List>
TimeNs least_usual(List list) {
  if (list.empty()) return 0;
  const auto at = list.begin() + static_cast<std::ptrdiff_t>(list.size() / kUsual);
  std::ranges::nth_element(list, at);
  return *at;
}

// What is known of one stream that waits for grants, each in the order of time.
struct Waiting {
  std::vector<std::uint32_t> frames;
  std::vector<const History::Offer*> offers;
  std::vector<const History::Told*> told;
};

struct Known {  // a picture
  TimeNs capture_ns = 0;
  TimeNs seen_ns = 0;  // it was at hand by then
  std::uint32_t frame = core::kNone;
};

class StreamPictures {
 public:
  StreamPictures(const History& h, std::uint32_t stream, const Waiting& of) : h_(h), stream_(stream), of_(of) {}
  void add_to(std::vector<RecordedPicture>& out);

 private:
  void find_known();
  void find_lag();
  void find_period();
  [[nodiscard]] bool open_at(TimeNs at) const;
  [[nodiscard]] TimeNs wanted_ns(const History::Frame& f, TimeNs since) const;
  void find_missing();

  const History& h_;
  const std::uint32_t stream_;
  const Waiting& of_;
  std::vector<Known> known_;  // by capture_ns, each later than the one before
  TimeNs lag_ns_ = 0;         // from its capture until a picture is at hand
  TimeNs period_ns_ = 0;      // 0: not known
};

void StreamPictures::find_known() {
  for (const std::uint32_t f : of_.frames)
    known_.push_back({.capture_ns = h_.frames[f].capture_ns, .seen_ns = h_.frames[f].at_ns, .frame = f});
  for (const History::Offer* o : of_.offers)
    known_.push_back({.capture_ns = o->capture_ns > 0 ? o->capture_ns : o->at_ns, .seen_ns = o->at_ns});
  // Of one picture the frame is kept, and that it was seen before.
  std::ranges::stable_sort(known_, {}, &Known::capture_ns);
  std::vector<Known> once;
  for (const Known& k : known_) {
    if (once.empty() || once.back().capture_ns != k.capture_ns ||
        (once.back().frame != core::kNone && k.frame != core::kNone)) {
      once.push_back(k);
      continue;
    }
    once.back().seen_ns = std::min(once.back().seen_ns, k.seen_ns);
    if (k.frame != core::kNone) once.back().frame = k.frame;
  }
  known_ = std::move(once);
}

// The core sees it soon where it asks often; what is submitted at once was at hand before.
void StreamPictures::find_lag() {
  std::vector<TimeNs> seen, submitted;
  for (const Known& k : known_) (k.frame == core::kNone ? seen : submitted).push_back(k.seen_ns - k.capture_ns);
  if (!seen.empty()) lag_ns_ = std::min(least_usual(std::move(seen)), least_usual(std::move(submitted)));
}

void StreamPictures::find_period() {
  std::vector<TimeNs> apart;
  for (std::size_t i = 1; i < known_.size(); ++i)
    if (known_[i].capture_ns > known_[i - 1].capture_ns)
      apart.push_back(known_[i].capture_ns - known_[i - 1].capture_ns);
  const TimeNs least = least_usual(apart);
  std::erase_if(apart, [&](TimeNs ns) { return ns < least / 4 * 3 || ns > least / 2 * 3; });
  if (apart.empty()) return;
  const auto middle = apart.begin() + static_cast<std::ptrdiff_t>(apart.size() / 2);
  std::ranges::nth_element(apart, middle);
  period_ns_ = std::max(*middle, kShortestNs);
  // Its client's word is taken as far as what was seen bears it out.
  const TimeNs said = h_.streams[stream_].config.period_ns;
  if (said < period_ns_ && said > period_ns_ / kSeldomSeen) period_ns_ = std::max(said, kShortestNs);
}

// As it was told last.
bool StreamPictures::open_at(TimeNs at) const {
  const auto later = std::ranges::upper_bound(of_.told, at, {}, &History::Told::at_ns);
  return later == of_.told.begin() || (*std::prev(later))->open;
}

// When the stream was told that it may submit that frame, having submitted one at `since`.
TimeNs StreamPictures::wanted_ns(const History::Frame& f, TimeNs since) const {
  const auto later = std::ranges::upper_bound(of_.told, f.at_ns, {}, &History::Told::at_ns);
  if (later == of_.told.begin() || (*std::prev(later))->at_ns < since) return 0;
  return (*std::prev(later))->at_ns;
}

// What the core did not see while the stream took turns.
void StreamPictures::find_missing() {
  if (period_ns_ <= 0) return;
  std::vector<Known> all;
  const auto fill = [&](TimeNs from, TimeNs to, bool both) {  // between them, `to` being a picture too or an end
    const TimeNs count = both ? (to - from + period_ns_ / 2) / period_ns_ : (to - from) / period_ns_ + 1;
    for (TimeNs i = 1; i < count; ++i) {
      const TimeNs at = both ? from + (to - from) / count * i : from + period_ns_ * i;
      if (!open_at(at + lag_ns_) || !open_at(at + lag_ns_ + period_ns_))
        all.push_back({.capture_ns = at, .seen_ns = core::kNever});
    }
  };
  for (std::size_t i = 0; i < known_.size(); ++i) {
    all.push_back(known_[i]);
    const bool last = i + 1 == known_.size();
    fill(known_[i].capture_ns, last ? std::min(h_.streams[stream_].closed_ns, h_.end_ns) : known_[i + 1].capture_ns,
         !last);
  }
  known_ = std::move(all);
}

void StreamPictures::add_to(std::vector<RecordedPicture>& out) {
  if (of_.frames.empty()) return;
  find_known();
  find_lag();
  find_period();
  find_missing();
  const std::size_t first = out.size();
  TimeNs before_ns = 0;
  for (const Known& k : known_) {
    RecordedPicture p{
        .at_ns = std::min(k.capture_ns + lag_ns_, k.seen_ns), .capture_ns = k.capture_ns, .frame = k.frame};
    if (k.frame != core::kNone) {
      const History::Frame& f = h_.frames[k.frame];
      p.submitted = true;
      p.write_ns = f.at_ns - std::clamp(wanted_ns(f, before_ns), p.at_ns, f.at_ns);
      before_ns = f.at_ns;
    }
    const History::Stream& stream = h_.streams[stream_];
    p.at_ns = std::max(p.at_ns, stream.opened_ns);
    if (p.submitted || p.at_ns < stream.closed_ns) out.push_back(p);
  }
  // What was not submitted is like its nearest.
  const std::span<RecordedPicture> mine(out.data() + first, out.size() - first);
  std::vector<std::size_t> submitted;
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i].submitted) submitted.push_back(i);
  for (std::size_t i = 0, next = 0; i < mine.size(); ++i) {
    if (mine[i].submitted) continue;
    while (next + 1 < submitted.size() && submitted[next + 1] < i) ++next;
    std::size_t near = submitted[next];
    if (next + 1 < submitted.size() && submitted[next + 1] - i < i - std::min(i, near)) near = submitted[next + 1];
    mine[i].frame = mine[near].frame;
    mine[i].write_ns = mine[near].write_ns;
  }
}

}  // namespace

std::vector<RecordedPicture> recorded_pictures(const History& h) {
  std::vector<Waiting> waiting(h.streams.size());
  std::vector<RecordedPicture> out;
  for (std::uint32_t i = 0; i < h.frames.size(); ++i) {
    const History::Frame& f = h.frames[i];
    if (h.streams[f.stream].config.waits_for_grants)
      waiting[f.stream].frames.push_back(i);
    else
      out.push_back({.at_ns = f.at_ns, .capture_ns = f.capture_ns, .frame = i, .submitted = true});
  }
  for (const History::Offer& o : h.offers) waiting[o.stream].offers.push_back(&o);
  for (const History::Told& t : h.told) waiting[t.stream].told.push_back(&t);
  for (std::uint32_t s = 0; s < h.streams.size(); ++s) StreamPictures(h, s, waiting[s]).add_to(out);
  std::ranges::stable_sort(out, {}, &RecordedPicture::at_ns);
  return out;
}

}  // namespace leat::sim
