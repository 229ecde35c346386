#include "tools/leat/top/facts/changes.h"

#include <algorithm>

#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {
namespace {

std::string streams_text(const std::vector<const StreamIdentity*>& streams) {
  std::vector<std::string> names;
  std::string application;
  bool same = true;
  double fps = 0;
  for (const StreamIdentity* s : streams) {
    names.push_back(s->name);
    if (!application.empty() && s->application != application) same = false;
    application = s->application;
    if (known(s->period_ms) && s->period_ms > 0) fps = 1000 / s->period_ms;
  }
  std::string text = names_together(std::move(names), 40);
  if (same && !application.empty()) text += ": " + application;
  if (fps > 0) text += ", " + three(fps) + "/s" + (streams.size() > 1 ? " each" : "");
  return text;
}

}  // namespace

void Changes::add(std::int64_t at_ns, std::string text, Mark meaning, Key stream, Key partition) {
  lines_.push_back({at_ns, std::move(text), meaning, stream, partition});
  if (lines_.size() > kChangesKept) lines_.pop_front();
}

// What records tell of themselves lies before what is seen now.
void Changes::sort_tail() {
  std::stable_sort(lines_.begin(), lines_.end(), [](const Change& a, const Change& b) { return a.at_ns < b.at_ns; });
}

void Changes::first(const Second& second, const std::string& version) {
  if (second.daemon.started_ns != 0)
    add(second.daemon.started_ns,
        "leatd " + (version.empty() ? "" : version + " ") + "began, process " + std::to_string(second.daemon.pid));
  std::vector<std::string> up;
  std::int64_t up_ns = 0;
  for (const PartitionFigures& p : second.partitions) {
    if (p.state != PartitionState::up || p.started_ns == 0 || (known(p.restarts) && p.restarts > 0)) continue;
    up.push_back(p.name);
    up_ns = std::max(up_ns, p.started_ns);
  }
  if (!up.empty()) add(up_ns, names_together(up, 50) + " up");
}

void Changes::clients(const Second& second) {
  std::map<Key, std::string> now;
  for (const ClientFigures& c : second.clients) now[c.key] = c.name;
  for (const auto& [key, name] : clients_)
    if (!now.contains(key)) add(second.at_ns, name + " is gone");
  for (const ClientFigures& c : second.clients) {
    if (clients_.contains(c.key)) continue;
    const bool opens_too = std::any_of(second.streams.begin(), second.streams.end(), [&](const StreamFigures& s) {
      return s.who->client_index == c.key.index && !streams_.contains(s.who->key);
    });
    if (!opens_too)
      add(c.connected_ns != 0 ? c.connected_ns : second.at_ns,
          c.name + " (process " + std::to_string(c.pid) + ") connected");
  }
  clients_ = std::move(now);
}

void Changes::streams(const Second& second) {
  std::map<Key, std::shared_ptr<const StreamIdentity>> now;
  std::map<std::uint32_t, std::vector<const StreamIdentity*>> opened, closed;
  for (const StreamFigures& s : second.streams) {
    if (s.who->key.index >= kCameraRows) continue;
    now[s.who->key] = s.who;
    if (!streams_.contains(s.who->key)) opened[s.who->client_index].push_back(s.who.get());
  }
  for (const auto& [key, who] : streams_)
    if (!now.contains(key)) closed[who->client_index].push_back(who.get());
  for (const auto& [client, list] : closed) {
    const bool gone = std::none_of(second.clients.begin(), second.clients.end(),
                                   [&](const ClientFigures& c) { return c.name == list.front()->client; });
    if (gone) continue;  // its client's line says it
    std::vector<std::string> names;
    for (const StreamIdentity* s : list) names.push_back(s->name);
    add(second.at_ns, names_together(names, 50) + " closed", Mark::well, list.size() == 1 ? list.front()->key : Key{});
  }
  for (const auto& [client, list] : opened) {
    std::int64_t at_ns = 0;
    for (const StreamIdentity* s : list) at_ns = std::max(at_ns, s->opened_ns);
    add(at_ns != 0 ? at_ns : second.at_ns,
        list.front()->client + " (process " + std::to_string(list.front()->pid) + ") opened " + streams_text(list),
        Mark::well, list.size() == 1 ? list.front()->key : Key{});
  }
  streams_ = std::move(now);
}

void Changes::partitions(const Second& second) {
  for (const PartitionFigures& p : second.partitions) {
    PartitionWas& was = partitions_[p.key];
    const bool first = was.name.empty();
    const bool ended = !first && known(p.restarts) && known(was.restarts) && p.restarts > was.restarts;
    const bool lost = p.state == PartitionState::lost || p.state == PartitionState::down;
    if (!first && lost && was.state == PartitionState::up)
      add(p.lost_ns != 0 ? p.lost_ns : second.at_ns, p.name + " lost", Mark::failing, {}, p.key);
    else if (ended && was.state == PartitionState::up && p.state == PartitionState::up)
      add(p.lost_ns != 0 ? p.lost_ns : second.at_ns, p.name + " lost", Mark::failing, {}, p.key);
    else if (!first && lost && was.state == PartitionState::starting)
      add(second.at_ns, p.name + " ended before it was ready", Mark::failing, {}, p.key);
    if (!first && p.state == PartitionState::starting && was.state != PartitionState::starting)
      add(second.at_ns, p.name + " starting", Mark::well, {}, p.key);
    if (!first && p.state == PartitionState::up && p.started_ns != was.started_ns)
      add(p.started_ns != 0 ? p.started_ns : second.at_ns, p.name + " up", Mark::well, {}, p.key);
    was = {p.name, p.state, p.restarts, p.started_ns};
  }
  for (const UserFigures& u : second.users) {
    const auto was = refused_.find(u.key);
    if (was != refused_.end() && u.refused > was->second)
      add(u.last_refusal_ns != 0 ? u.last_refusal_ns : second.at_ns,
          "user " + u.name + " was refused: " + u.last_refusal, Mark::late);
    refused_[u.key] = u.refused;
  }
}

// Streams whose mark became worse, or who recovered, together.
void Changes::marks(const Second& second) {
  std::map<Mark, std::vector<const StreamIdentity*>> worse;
  std::vector<const StreamIdentity*> well;
  std::map<Key, Mark> now;
  for (const StreamFigures& s : second.streams) {
    now[s.who->key] = s.mark;
    const auto was = marks_.find(s.who->key);
    if (was == marks_.end() ? s.mark > Mark::near : s.mark > was->second && s.mark > Mark::near)
      worse[s.mark].push_back(s.who.get());
    if (was != marks_.end() && was->second > Mark::near && s.mark <= Mark::near) well.push_back(s.who.get());
  }
  const auto line = [&](const std::vector<const StreamIdentity*>& list, const char* one, const char* many, Mark mark) {
    std::vector<std::string> names;
    for (const StreamIdentity* s : list) names.push_back(s->name);
    add(second.at_ns, names_together(names, 40) + (list.size() == 1 ? one : many), mark,
        list.size() == 1 ? list.front()->key : Key{});
  };
  for (const auto& [mark, list] : worse) {
    if (mark == Mark::failing) line(list, " has frames that fail", " have frames that fail", mark);
    if (mark == Mark::dropping) line(list, " loses frames", " lose frames", mark);
    if (mark == Mark::late) line(list, " answers late", " answer late", mark);
    if (mark == Mark::silent) line(list, " sends nothing", " send nothing", mark);
  }
  if (!well.empty()) line(well, " is well again", " are well again", Mark::well);
  marks_ = std::move(now);
}

// Other configurations, plans and models, put in force while it serves.
void Changes::served(const Second& second) {
  const DaemonFigures& d = second.daemon;
  if (known(in_force_) && known(d.changes) && d.changes > in_force_)
    add(second.at_ns, "what is served has changed: it is in force");
  if (known(given_up_) && known(d.changes_failed) && d.changes_failed > given_up_)
    add(second.at_ns, "a change of what is served was given up; leat status says why", Mark::late);
  in_force_ = d.changes;
  given_up_ = d.changes_failed;
}

void Changes::take(const Second& second, const std::string& version) {
  if (second.gone) {
    if (!gone_) add(second.at_ns, "leatd is gone", Mark::failing);
    gone_ = true;
    return;
  }
  if (gone_ || !begun_) {
    const bool again = gone_;
    const auto kept = std::move(lines_);
    *this = Changes();
    lines_ = kept;
    begun_ = true;
    if (again) add(second.at_ns, "leatd is back, process " + std::to_string(second.daemon.pid));
    first(second, version);
  }
  clients(second);
  streams(second);
  partitions(second);
  marks(second);
  served(second);
  const State state = second.sentence.state;
  if (state != state_ && state != State::watching) {
    const Mark meaning = state <= State::worker_down ? Mark::failing
                         : state <= State::overload  ? Mark::dropping
                         : state <= State::tight     ? Mark::late
                                                     : Mark::well;
    if (state_ != State::watching || state < State::watching)
      add(second.at_ns, std::string(name_of(state)) + (state < State::watching ? " began" : ""), meaning);
  }
  state_ = state;
  sort_tail();
}

}  // namespace leat::tools::top
