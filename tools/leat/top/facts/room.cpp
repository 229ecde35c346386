#include "tools/leat/top/facts/room.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace leat::tools::top {
namespace {

struct Load {
  std::set<std::size_t> partitions;  // that ran its modules in the last minute
  double held = 0;                   // partitions' worth of time
  double streams = 0;
};

std::map<std::string, Load> loads_of(const Second& second) {
  std::map<std::uint32_t, std::string> application_of;
  std::map<std::string, Load> loads;
  for (const ModuleFigures& m : second.modules) {
    application_of[m.key.index] = m.application;
    if (known(m.held)) loads[m.application].held += m.held;
  }
  for (std::size_t p = 0; p < second.partitions.size(); ++p)
    for (const auto& [module, share] : second.partitions[p].modules)
      if (const auto found = application_of.find(module); found != application_of.end())
        loads[found->second].partitions.insert(p);
  for (const StreamFigures& s : second.streams)
    if (known(s.in) && s.in > 0) loads[s.who->application].streams += 1;
  std::erase_if(loads, [](const auto& entry) { return entry.second.streams == 0; });
  return loads;
}

// How much of a set is free, in partitions.
double free_of(const Second& second, const std::set<std::size_t>& set) {
  double free = 0;
  for (const std::size_t p : set) {
    const PartitionFigures& partition = second.partitions[p];
    if (known(partition.busy))
      free += kFillable - (partition.busy + (known(partition.over) ? partition.over : 0)) / 100;
  }
  return std::max(free, 0.0);
}

}  // namespace

std::optional<Room> room_for_more(const Second& second) {
  if (known(second.total.miss) && second.total.miss > 1) return std::nullopt;
  std::optional<Room> least;
  const auto loads = loads_of(second);
  for (const auto& [application, load] : loads) {
    if (load.held <= 0 || load.partitions.empty()) continue;
    Room room;
    room.more = free_of(second, load.partitions) / (load.held / load.streams);
    if (loads.size() > 1) room.application = application;
    for (const std::size_t p : load.partitions) room.partitions.push_back(second.partitions[p].name);
    if (!least || room.more < least->more) least = std::move(room);
  }
  return least;
}

std::vector<OneMore> one_more_like(const Second& second) {
  const auto loads = loads_of(second);
  std::map<std::pair<std::string, long>, OneMore> kinds;
  for (const StreamFigures& s : second.streams) {
    if (!known(s.in) || s.in <= 0) continue;
    OneMore& like = kinds[{s.who->application, std::lround(s.in)}];
    if (like.stream != nullptr) continue;
    like.stream = &s;
    like.percent = s.busy;
    const auto load = loads.find(s.who->application);
    like.fits = load != loads.end() && known(s.busy) && !(second.total.miss > 1) &&
                s.busy / 100 < free_of(second, load->second.partitions);
  }
  std::vector<OneMore> out;
  for (const auto& [kind, like] : kinds) out.push_back(like);
  std::stable_sort(out.begin(), out.end(), [](const OneMore& a, const OneMore& b) {
    return (known(a.percent) ? a.percent : 0) > (known(b.percent) ? b.percent : 0);
  });
  return out;
}

}  // namespace leat::tools::top
