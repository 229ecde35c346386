#include "tools/leat/top/facts/health.h"

#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {
namespace {

constexpr double kFew = 15;                            // answers in 5 s: fewer are judged by a minute
constexpr float kFullComes = 90, kFullGoes = 80;       // busy, per cent
constexpr double kNearComes = 0.85, kNearGoes = 0.75;  // of the SLO

bool lost_enough(const Losses& five, const Losses& minute, double lost_five, double lost_minute) {
  return (five.answers > 0 && lost_five >= 3 && lost_five >= 0.01 * five.answers) ||
         (five.answers < kFew && minute.answers > 0 && lost_minute >= 2 && lost_minute >= 0.10 * minute.answers);
}

// The others that it shares work with, or that had none, are full too: work goes to the first that is free, so that one
// full partition beside idle ones says nothing.
bool none_to_help(const Second& second, const PartitionFigures& full) {
  double busy = 0, count = 0;
  for (const PartitionFigures& p : second.partitions) {
    if (p.state != PartitionState::up || !known(p.busy)) continue;
    const bool helps = p.modules.empty() || std::any_of(p.modules.begin(), p.modules.end(), [&](const auto& m) {
                         return std::any_of(full.modules.begin(), full.modules.end(),
                                            [&](const auto& other) { return other.first == m.first; });
                       });
    if (!helps && p.key != full.key) continue;
    busy += p.busy;
    ++count;
  }
  return count == 0 || busy / count > kFullGoes;
}

bool all_but_none(const Losses& five, double lost_five) { return lost_five <= 0.003 * five.answers; }

}  // namespace

std::string_view name_of(State state) noexcept {
  static constexpr std::string_view kNames[] = {"NO LEATD", "STARTING", "STUCK",   "FAILING",  "WORKER DOWN",
                                                "OVERLOAD", "LATE",     "SILENT",  "REFUSING", "TIGHT",
                                                "WATCHING", "IDLE",     "ALL WELL"};
  static_assert(std::size(kNames) == kStates);
  return kNames[static_cast<std::size_t>(state)];
}

const StreamFigures* find(const Second& second, Key key) noexcept {
  const auto at =
      std::lower_bound(second.streams.begin(), second.streams.end(), key.index,
                       [](const StreamFigures& s, std::uint32_t index) { return s.who->key.index < index; });
  return at != second.streams.end() && at->who->key == key ? &*at : nullptr;
}

// ---- one stream ----

void Health::judge_silence(std::int64_t now, const StreamFigures& s, StreamMemory* m) {
  if (!known(s.came)) return;
  if (s.came > 0) {
    m->last_came_ns = now;
    m->quiet = false;
  }
  const bool steady = known(s.in) && s.in >= 1;
  if (s.came > 0 && !steady) m->steady_since_ns = 0;
  if (steady && m->steady_since_ns == 0) m->steady_since_ns = now;
  if (steady && s.came > 0) m->steady_rate = s.in;
  if (s.who->coordinated || m->last_came_ns == 0) return;
  const double period_ms = known(s.who->period_ms) ? s.who->period_ms : 1000 / std::max(m->steady_rate, 0.01f);
  const auto patience = static_cast<std::int64_t>(std::max(3e9, 10 * period_ms * 1e6));
  const bool was_steady = m->steady_since_ns != 0 && m->last_came_ns - m->steady_since_ns >= 55 * kSecondNs;
  const std::int64_t missing = now - m->last_came_ns;
  if (missing > 600 * kSecondNs) {
    m->quiet = true;
    m->steady_since_ns = 0;
  }
  const bool came = !m->silent.on() && was_steady && missing >= patience && !m->quiet;
  const bool again = m->quiet || (known(s.in) && s.in * 5 >= 3 && s.came > 0);
  m->silent.step(came, m->silent.on() && again, now, 0);
  if (came) m->silent.since(m->last_came_ns);
  if (!came && m->silent.on() && s.came > 0 && s.in * 5 >= 3) m->steady_since_ns = now;
}

// A source that is being opened for the first time has a while for it; one that broke off is away until it has
// pictures.
void Health::judge_camera(std::int64_t now, const StreamFigures& s, StreamMemory* m) {
  if (!s.camera) return m->away.step(false, true, now, 0);
  if (m->known_since_ns == 0) m->known_since_ns = now;
  const CameraFigures& c = *s.camera;
  const bool new_one = c.state == "opening" && c.last_picture_ns == 0 && !(known(c.breaks) && c.breaks > 0) &&
                       now - m->known_since_ns < 10 * kSecondNs;
  const bool away = !c.runs() && c.state != "ended" && !new_one;
  const bool was = m->away.on();
  m->away.step(away, !away, now, 0);
  if (!was && away && c.last_picture_ns != 0 && c.last_picture_ns < now) m->away.since(c.last_picture_ns);
}

void Health::judge_stream(const StreamReading& r, std::int64_t now, StreamFigures* s) {
  StreamMemory& m = streams_[s->who->key];
  judge_silence(now, *s, &m);
  judge_camera(now, *s, &m);
  if (r.together && r.five.seconds > 0) {
    // A stream whose rule is to take the newest frame lives by what it supersedes.
    const bool by_rule = r.five.superseded < 0.10 * r.five.answers;
    const double load5 = r.five.load - (by_rule ? r.five.superseded : 0);
    const double load60 = r.minute.load - (r.minute.superseded < 0.10 * r.minute.answers ? r.minute.superseded : 0);
    m.failing.step(r.five.faults >= 3, r.five.faults == 0, now, 25 * kSecondNs);
    m.dropping.step(lost_enough(r.five, r.minute, load5, load60), all_but_none(r.five, load5), now, 15 * kSecondNs);
    m.late.step(lost_enough(r.five, r.minute, r.five.late, r.minute.late), all_but_none(r.five, r.five.late), now,
                15 * kSecondNs);
    const double near = known(s->who->slo_ms) && known(s->p99_minute) ? s->p99_minute / s->who->slo_ms : 0;
    m.near.step(near > kNearComes, near < kNearGoes, now, 15 * kSecondNs);
  }
  const std::pair<const Latch*, Mark> marks[] = {{&m.failing, Mark::failing}, {&m.dropping, Mark::dropping},
                                                 {&m.late, Mark::late},       {&m.away, Mark::silent},
                                                 {&m.silent, Mark::silent},   {&m.near, Mark::near}};
  for (const auto& [latch, mark] : marks) {
    if (!latch->on()) continue;
    s->mark = mark;
    s->since_ns = latch->since_ns();
    return;
  }
}

// ---- one partition ----

void Health::judge_partition(std::int64_t now, const PartitionFigures& p) {
  PartitionMemory& m = partitions_[p.key];
  const bool up = p.state == PartitionState::up;
  m.been_up = m.been_up || up || p.started_ns != 0;
  const bool down = !up && p.state != PartitionState::unknown && m.been_up;
  if (known(p.restarts) && known(m.restarts) && p.restarts > m.restarts) {
    // An end that no sample saw: down and up again within a second.
    if (!m.down.on()) m.down.step(true, false, now, 0);
  }
  const bool was = m.down.on();
  m.down.step(down, up, now, 10 * kSecondNs);
  if (!was && m.down.on() && p.lost_ns != 0 && now - p.lost_ns < 5 * kSecondNs) m.down.since(p.lost_ns);
  m.restarts = p.restarts;
  const bool full = known(p.busy) && p.busy > kFullComes;
  if (!full) m.full_since_ns = 0;
  if (full && m.full_since_ns == 0) m.full_since_ns = now;
  m.full.step(full && now - m.full_since_ns >= 10 * kSecondNs, known(p.busy) && p.busy < kFullGoes, now,
              15 * kSecondNs);
}

// ---- all of it ----

void Health::judge_all(const Reading& reading, const Second& second) {
  const std::int64_t now = second.at_ns;
  const auto latch = [&](State state) -> Latch& { return latches_[static_cast<std::size_t>(state)]; };
  const auto any = [&](auto&& of) { return std::any_of(second.streams.begin(), second.streams.end(), of); };
  const auto stream_state = [&](State state, Latch StreamMemory::*which) {
    const bool on = any([&](const StreamFigures& s) { return (streams_[s.who->key].*which).on(); });
    latch(state).step(on, !on, now, 0);
  };
  stream_state(State::failing, &StreamMemory::failing);
  stream_state(State::overload, &StreamMemory::dropping);
  stream_state(State::late, &StreamMemory::late);
  const bool silent = any([&](const StreamFigures& s) {
    const StreamMemory& m = streams_[s.who->key];
    return m.silent.on() || m.away.on();
  });
  latch(State::silent).step(silent, !silent, now, 0);

  bool starting = known(second.daemon.phase) && second.daemon.phase == 0, down = false, full = false;
  for (const PartitionFigures& p : second.partitions) {
    const PartitionMemory& m = partitions_[p.key];
    starting = starting || (p.state == PartitionState::starting && !m.been_up);
    down = down || m.down.on();
    full = full || (m.full.on() && none_to_help(second, p));
  }
  latch(State::starting).step(starting, !starting, now, 0);
  const bool was_down = latch(State::worker_down).on();
  latch(State::worker_down).step(down && !starting, !down, now, 0);
  if (!was_down) faults_at_down_ = faults_before_;
  faults_before_ = reading.faults_ever;

  if (reading.last_answer_ns != last_answer_ns_) {
    last_answer_ns_ = reading.last_answer_ns;
    stuck_seen_ns_ = 0;
  }
  const double patience = std::max(1e9, 2 * reading.longest_slo_ns);
  const bool waits = second.total.in_flight > 0 && reading.watched_ns > 0 &&
                     static_cast<double>(now - last_answer_ns_) > patience && last_answer_ns_ != 0;
  if (!waits) stuck_seen_ns_ = 0;
  const bool twice = waits && stuck_seen_ns_ != 0;
  if (waits && stuck_seen_ns_ == 0) stuck_seen_ns_ = now;
  latch(State::stuck).step(twice, !waits, now, 0);
  if (twice && latch(State::stuck).since_ns() == now) latch(State::stuck).since(last_answer_ns_);

  const double refusals = reading.refused + reading.violated;
  const bool refused = refused_ >= 0 && refusals > refused_;
  refused_ = refusals;
  if (refused) refusal_ = reading.refusal;
  latch(State::refusing).step(refused, !refused, now, 60 * kSecondNs);

  const bool tight = full || any([&](const StreamFigures& s) { return streams_[s.who->key].near.on(); });
  latch(State::tight).step(tight, !tight, now, 0);
  latch(State::watching).step(reading.watched_ns < 5 * kSecondNs, reading.watched_ns >= 5 * kSecondNs, now, 0);
  if (second.total.came > 0) last_came_ns_ = now;
  if (second.total.lost > 0) last_missed_ns_ = now;
  const bool idle = reading.watched_ns >= 5 * kSecondNs && now - std::max(last_came_ns_, first_ns_) >= 5 * kSecondNs;
  latch(State::idle).step(idle, !idle, now, 0);
}

bool Health::in_force(State state) const {
  return state == State::all_well || latches_[static_cast<std::size_t>(state)].on();
}

std::int64_t Health::since_of(State state) const {
  return state == State::all_well ? 0 : latches_[static_cast<std::size_t>(state)].since_ns();
}

void Health::judge(const Reading& reading, Second* second) {
  if (gone_since_ns_ != 0) *this = Health();  // another leatd: nothing of the old one's holds
  if (first_ns_ == 0) first_ns_ = second->at_ns;
  for (std::size_t i = 0; i < second->streams.size(); ++i)
    judge_stream(reading.streams[i], second->at_ns, &second->streams[i]);
  for (const PartitionFigures& p : second->partitions) judge_partition(second->at_ns, p);
  judge_all(reading, *second);
  show(reading, second);
  if (streams_.size() > 2 * second->streams.size() + 64)
    std::erase_if(streams_, [&](const auto& entry) { return find(*second, entry.first) == nullptr; });
}

void Health::show(const Reading& reading, Second* second) {
  const std::int64_t now = second->at_ns;
  State worst = State::all_well;
  std::vector<State> others;
  for (std::size_t i = 1; i < kStates; ++i) {
    const auto state = static_cast<State>(i);
    if (!in_force(state)) continue;
    if (worst == State::all_well) {
      worst = state;
      continue;
    }
    const bool beside = state != State::all_well && state != State::watching && state != State::idle;
    const bool tight_beside_load =
        state == State::tight && (worst == State::overload || worst == State::late ||
                                  std::find(others.begin(), others.end(), State::overload) != others.end() ||
                                  std::find(others.begin(), others.end(), State::late) != others.end());
    if (beside && !tight_beside_load) others.push_back(state);
  }
  const bool better = shown_ && worst > shown_->state;
  // A watch that begins may turn into anything at once: nothing was claimed.
  const bool too_soon = better && shown_->state != State::watching && now - last_down_ns_ < kSettleNs;
  const bool changed = !shown_ || worst != shown_->state;
  if (!too_soon && (changed || now - text_at_ns_ >= kSettleNs)) {
    if (better) last_down_ns_ = now;
    Sentence next;
    next.state = worst;
    next.since_ns = since_of(worst);
    next.text = text_of(worst, reading, *second);
    const Because because = because_of(worst, reading, *second, reading.faults_ever - faults_at_down_);
    next.word = because.word;
    next.reason = because.text;
    next.others = std::move(others);
    shown_ = std::move(next);
    text_at_ns_ = now;
  }
  second->sentence = *shown_;
}

void Health::judge_gone(Second* second) {
  if (gone_since_ns_ == 0) gone_since_ns_ = second->at_ns;
  Sentence& s = second->sentence;
  s = {};
  s.state = State::no_leatd;
  s.since_ns = gone_since_ns_;
  s.text =
      "gone for " + span_of(second->at_ns - gone_since_ns_) + ", waiting for it at its socket; all below is as it was";
  s.word = "because";
  s.reason = "leatd ended, or was stopped; its log says why";
}

// ---- words ----

std::string Health::losing_text(State state, const Second& second) const {
  std::vector<std::pair<float, const StreamFigures*>> who;
  double lost = 0, came = 0;
  for (const StreamFigures& s : second.streams) {
    const auto memory = streams_.find(s.who->key);
    if (known(s.in)) came += s.in;
    if (memory == streams_.end()) continue;
    const Latch& latch = state == State::failing    ? memory->second.failing
                         : state == State::overload ? memory->second.dropping
                                                    : memory->second.late;
    if (!latch.on()) continue;
    who.emplace_back(known(s.miss10) ? s.miss10 : 0, &s);
  }
  for (const auto& [miss, s] : who) {
    const float of = state == State::failing ? s->failed : state == State::late ? s->late : s->in * s->miss / 100;
    if (known(of)) lost += of;
  }
  std::stable_sort(who.begin(), who.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string names = who.size() <= 2 ? ""
                                      : whole(static_cast<double>(who.size())) + " of " +
                                            whole(static_cast<double>(second.streams.size())) + " streams";
  if (who.size() <= 2) {
    for (const auto& [miss, s] : who) names += (names.empty() ? "" : ", ") + s->who->name;
  }
  const std::string of = two(lost) + " of " + two(came) + " frames a second";
  if (state == State::late) return names + ": " + of;
  if (state == State::overload)
    return names + (who.size() == 1 ? " loses" : " lose") + " frames: " + two(lost) + " of " + two(came) + " a second";
  const Reason cause = who.empty() ? Reason::none : who.front().second->cause;
  return names + ": " + of + (cause == Reason::none ? "" : ", " + std::string(leat::name_of(cause)));
}

std::string Health::down_text(const Second& second) const {
  std::vector<std::string> down;
  const PartitionFigures* first = nullptr;
  bool back = true;
  for (const PartitionFigures& p : second.partitions) {
    const auto memory = partitions_.find(p.key);
    if (memory == partitions_.end() || !memory->second.down.on()) continue;
    down.push_back(p.name);
    back = back && p.state == PartitionState::up;
    if (first == nullptr || p.state != PartitionState::up) first = &p;
  }
  if (first == nullptr) return "a partition";
  std::string text = names_together(down, 24);
  const std::int64_t wait = first->next_start_ns - second.at_ns;
  if (back) return text + (down.size() == 1 ? " was" : " were") + " lost, and serves again";
  if (known(first->failures) && first->failures > 1 && down.size() == 1)
    text += " ended " + whole(first->failures) + " times in a row";
  else
    text += down.size() == 1 ? " is lost" : " are lost";
  if (first->state == PartitionState::starting) return text + "; starting again";
  if (first->next_start_ns != 0 && wait > 0) return text + "; starts within " + span_of(wait + kSecondNs / 10, true);
  return text;
}

std::string Health::well_text(const Reading& reading, const Second& second) const {
  const std::string streams =
      whole(static_cast<double>(second.streams.size())) + (second.streams.size() == 1 ? " stream, " : " streams, ");
  const double lost = reading.total.minute.missed();
  if (reading.total.minute.seconds > 0 && lost > 0)
    return streams + whole(lost) + " of " + whole(reading.total.minute.answers) + " frames missed in " +
           span_of(static_cast<std::int64_t>(reading.total.minute.seconds * 1e9));
  if (known(second.daemon.missed_ever) && second.daemon.missed_ever == 0 && second.daemon.started_ns != 0)
    return streams + "no frame missed since leatd began " + span_of(second.at_ns - second.daemon.started_ns) + " ago";
  return streams + "no frame missed for " + span_of(second.at_ns - std::max(last_missed_ns_, first_ns_));
}

std::string Health::silent_text(const Second& second) const {
  std::vector<std::string> silent, away;
  float rate = 0;
  for (const StreamFigures& s : second.streams) {
    const auto memory = streams_.find(s.who->key);
    if (memory == streams_.end()) continue;
    if (memory->second.away.on()) {
      away.push_back(s.who->name);
    } else if (memory->second.silent.on()) {
      silent.push_back(s.who->name);
      if (known(memory->second.steady_rate)) rate = std::max(rate, memory->second.steady_rate);
    }
  }
  std::string text;
  if (!away.empty()) {
    const bool one = away.size() == 1;
    text = names_together(std::move(away), 30) + (one ? " has no pictures" : " have no pictures");
  }
  if (!silent.empty())
    text += (text.empty() ? "" : "; ") + names_together(std::move(silent), 30) + " sent nothing, before it " +
            two(rate) + "/s";
  return text;
}

std::string Health::text_of(State state, const Reading& reading, const Second& second) const {
  const std::int64_t now = second.at_ns;
  switch (state) {
    case State::starting: {
      std::size_t up = 0;
      std::vector<std::string> starting;
      for (const PartitionFigures& p : second.partitions) {
        up += p.state == PartitionState::up;
        if (p.state == PartitionState::starting) starting.push_back(p.name);
      }
      return std::to_string(up) + " of " + std::to_string(second.partitions.size()) + " partitions up" +
             (starting.empty()
                  ? ""
                  : "; " + names_together(starting, 24) + " starting for " + span_of(now - since_of(state)));
    }
    case State::stuck:
      return whole(second.total.in_flight) + " frames in flight, no answer for " + span_of(now - last_answer_ns_, true);
    case State::failing:
    case State::overload:
    case State::late:
      return losing_text(state, second);
    case State::worker_down:
      return down_text(second);
    case State::silent:
      return silent_text(second);
    case State::refusing:
      return refusal_;
    case State::tight: {
      const StreamFigures* worst = nullptr;
      for (const StreamFigures& s : second.streams) {
        const auto memory = streams_.find(s.who->key);
        if (memory == streams_.end() || !memory->second.near.on() || !known(s.p99_minute)) continue;
        if (worst == nullptr || s.p99_minute / s.who->slo_ms > worst->p99_minute / worst->who->slo_ms) worst = &s;
      }
      if (worst != nullptr)
        return worst->who->name + " answers in " + two(worst->p99_minute) + " of " + three(worst->who->slo_ms) +
               " ms (p99), no frame missed";
      std::vector<std::string> full;
      for (const PartitionFigures& p : second.partitions)
        if (const auto m = partitions_.find(p.key); m != partitions_.end() && m->second.full.on())
          full.push_back(p.name);
      return names_together(full, 30) + (full.size() == 1 ? " is" : " are") + " over 90 % busy, no frame missed";
    }
    case State::watching:
      return "for " + span_of(reading.watched_ns) + "; no frame missed so far";
    case State::idle:
      return whole(static_cast<double>(second.streams.size())) + (second.streams.size() == 1 ? " stream" : " streams") +
             ", nothing sent for " + span_of(now - std::max(last_came_ns_, first_ns_));
    case State::no_leatd:
    case State::all_well:
      break;
  }
  return well_text(reading, second);
}

}  // namespace leat::tools::top
