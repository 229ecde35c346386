// The second line: the first that is true of what is measured.
#include <algorithm>
#include <cmath>

#include "tools/leat/top/facts/cameras.h"
#include "tools/leat/top/facts/health.h"
#include "tools/leat/top/facts/room.h"
#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {
namespace {

std::string are(std::size_t count) { return count == 1 ? " is " : " are "; }

const ModuleFigures* slowest_queue(const Second& second) {
  const ModuleFigures* worst = nullptr;
  for (const ModuleFigures& m : second.modules)
    if (known(m.wait99) && (worst == nullptr || m.wait99 > worst->wait99)) worst = &m;
  return worst;
}

// A partition that is not there while its modules' tasks wait, or have no other.
std::string lost_partition(const Second& second) {
  std::vector<std::string> down;
  for (const PartitionFigures& p : second.partitions)
    if (p.state == PartitionState::lost || p.state == PartitionState::down || p.state == PartitionState::starting)
      down.push_back(p.name);
  const bool waits =
      std::any_of(second.modules.begin(), second.modules.end(), [](const ModuleFigures& m) { return m.waiting > 0; });
  return down.empty() || !waits ? "" : names_together(down, 40) + are(down.size()) + "lost";
}

// Who asks for more than his share while others keep within theirs.
std::string greedy_user(const Second& second) {
  const UserFigures* greedy = nullptr;
  bool others_within = false;
  for (const UserFigures& u : second.users) {
    if (!known(u.in) || u.in <= 0 || !known(u.within) || u.within <= 0) continue;
    if (u.within < 0.95f * u.in) {
      if (greedy == nullptr || u.in - u.within > greedy->in - greedy->within) greedy = &u;
    } else {
      others_within = true;
    }
  }
  if (greedy == nullptr || !others_within) return {};
  return "; user " + greedy->name + " asks " + two(greedy->in) + "/s, " + two(greedy->within) + "/s of it is his share";
}

std::string full_partitions(const Second& second) {
  std::vector<std::string> full;
  float least = 100;
  for (const PartitionFigures& p : second.partitions) {
    if (!known(p.busy) || p.busy <= 90) continue;
    full.push_back(p.name);
    least = std::min(least, p.busy);
  }
  if (full.empty()) return {};
  return names_together(full, 30) + are(full.size()) + percent(least) + " % busy" + greedy_user(second);
}

std::string reasons_of(const Second& second) {
  std::string text;
  double all = 0;
  for (const ReasonFigures& r : second.reasons)
    if (known(r.minute) && loss_of(r.reason) != Loss::none) all += r.minute;
  int shown = 0;
  for (const ReasonFigures& r : second.reasons) {
    if (all <= 0 || !known(r.minute) || r.minute <= 0 || loss_of(r.reason) == Loss::none || ++shown > 3) continue;
    text +=
        (text.empty() ? "" : ", ") + std::string(leat::name_of(r.reason)) + " " + percent(100 * r.minute / all) + " %";
  }
  return text.empty() ? "late answers" : "reasons: " + text;
}

std::string because_of_load(const Second& second) {
  if (const std::string lost = lost_partition(second); !lost.empty()) return lost;
  if (const std::string full = full_partitions(second); !full.empty()) return full;
  double slo = 0;
  for (const StreamFigures& s : second.streams)
    if (known(s.who->slo_ms) && (slo == 0 || s.who->slo_ms < slo)) slo = s.who->slo_ms;
  const ModuleFigures* queue = slowest_queue(second);
  if (queue != nullptr && slo > 0 && queue->wait99 > slo / 4)
    return queue->name + " waits " + two(queue->wait99) + " ms (p99)";
  const PartitionFigures* fullest = nullptr;
  for (const PartitionFigures& p : second.partitions)
    if (known(p.busy) && (fullest == nullptr || p.busy > fullest->busy)) fullest = &p;
  if (known(second.daemon.own_stalls_minute) && second.daemon.own_stalls_minute >= 3)
    return "leatd's own turns took over 1 ms of CPU time, " + whole(second.daemon.own_stalls_minute) + " times in 60 s";
  if (fullest != nullptr && fullest->busy < 60)
    return fullest->name + " is " + percent(fullest->busy) + " % busy: not load but deadlines; see leat check";
  return "- (nothing measured explains it; " + reasons_of(second) + ")";
}

std::string because_of_faults(const Second& second) {
  if (const std::string lost = lost_partition(second); !lost.empty()) return lost;
  for (const ReasonFigures& r : second.reasons)
    if (known(r.minute) && r.minute > 0 && loss_of(r.reason) == Loss::fault)
      return std::string(leat::name_of(r.reason)) + ": " + std::string(text_of(r.reason));
  return "-";
}

Because of_worker(const Second& second, double faults_since) {
  std::vector<std::string> up;
  for (const PartitionFigures& p : second.partitions)
    if (p.state == PartitionState::up) up.push_back(p.name);
  const std::string streams =
      whole(static_cast<double>(second.streams.size())) + (second.streams.size() == 1 ? " stream" : " streams");
  if (up.empty()) return {"meanwhile", "no other partition is up: the frames of " + streams + " wait or fail"};
  const bool still = known(second.total.failed) && second.total.failed > 0;
  const std::string failed = faults_since <= 0 ? "no frame failed"
                                               : whole(faults_since) + (faults_since == 1 ? " frame" : " frames") +
                                                     " failed" + (still ? ", and more do" : " then, none since");
  return {"meanwhile",
          names_together(up, 30) + (up.size() == 1 ? " carries" : " carry") + " all " + streams + ": " + failed};
}

const StreamFigures* first_away(const Second& second) {
  const StreamFigures* first = nullptr;
  for (const StreamFigures& s : second.streams) {
    if (s.mark != Mark::silent || !s.camera || s.camera->runs() || s.camera->state == "ended") continue;
    if (first == nullptr || s.since_ns < first->since_ns) first = &s;
  }
  return first;
}

// Streams can be well while models answer no numbers: their boxes are left out.
std::string not_finite_text(const Second& second) {
  for (const ModuleFigures& m : second.modules)
    if (known(m.not_finite_minute) && m.not_finite_minute > 0)
      return m.name + " answered NaN or infinity " + whole(m.not_finite_minute) +
             (m.not_finite_minute == 1 ? " time" : " times") + " in 60 s";
  return {};
}

std::string room_text(const Second& second) {
  const PartitionFigures* fullest = nullptr;
  for (const PartitionFigures& p : second.partitions)
    if (known(p.busy) && (fullest == nullptr || p.busy > fullest->busy)) fullest = &p;
  const StreamFigures* slowest = nullptr;
  for (const StreamFigures& s : second.streams) {
    if (!known(s.p99_minute) || !known(s.who->slo_ms)) continue;
    if (slowest == nullptr || s.p99_minute / s.who->slo_ms > slowest->p99_minute / slowest->who->slo_ms) slowest = &s;
  }
  const auto room = room_for_more(second);
  std::string text = !room            ? "-"
                     : room->more < 1 ? "for none more like these"
                                      : "for about " + two(std::floor(room->more)) + " more like " +
                                            (room->application.empty() ? "these" : "those of " + room->application);
  if (fullest != nullptr) text += "; fullest " + fullest->name + " " + percent(fullest->busy) + " %";
  if (slowest != nullptr)
    text += ", slowest p99 " + two(slowest->p99_minute) + "/" + three(slowest->who->slo_ms) + " ms";
  return text;
}

}  // namespace

Because because_of(State state, const Reading& reading, const Second& second, double faults_since) {
  switch (state) {
    case State::starting:
      return {"meanwhile", "clients that come are refused, and try again"};
    case State::stuck: {
      const std::string lost = lost_partition(second);
      return {"because", lost.empty() ? because_of_load(second) : lost};
    }
    case State::failing:
      return {"because", because_of_faults(second)};
    case State::worker_down:
      return of_worker(second, faults_since);
    case State::overload:
    case State::late:
      return {"because", because_of_load(second)};
    case State::silent:
      // The one that broke off first: the others are told by their rows.
      if (const StreamFigures* s = first_away(second); s != nullptr)
        return {"because", s->who->name + " " + short_error(*s->camera)};
      return {"meanwhile", second.streams.size() > 1 ? "the other streams are well; its client is still connected"
                                                     : "its client is still connected"};
    case State::refusing:
      return {"because", "limits of leatd's configuration; leat status --users has each user's"};
    case State::tight: {
      const std::string full = full_partitions(second);
      const ModuleFigures* queue = slowest_queue(second);
      if (!full.empty()) return {"because", full};
      return {"because", queue == nullptr ? "-" : queue->name + " waits " + two(queue->wait99) + " ms (p99)"};
    }
    case State::idle:
    case State::no_leatd:
    case State::watching:
    case State::all_well:
      break;
  }
  if (reading.total.minute.seconds <= 0 || reading.watched_ns < 2 * kSecondNs)
    return {"room", "- (measured from now on)"};
  if (const std::string not_finite = not_finite_text(second); !not_finite.empty()) return {"meanwhile", not_finite};
  return {"room", room_text(second)};
}

}  // namespace leat::tools::top
