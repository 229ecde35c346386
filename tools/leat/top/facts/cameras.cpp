#include "tools/leat/top/facts/cameras.h"

#include <algorithm>

#include "tools/leat/top/facts/text.h"

namespace leat::tools::top {

namespace {

// Which application has its pictures: a feeder that names none takes the only one there is.
std::string application_of(const CameraFigures& camera, const Second& second) {
  if (!camera.application.empty()) return printable(camera.application);
  std::string only;
  for (const ModuleFigures& m : second.modules) {
    if (!only.empty() && m.application != only) return {};
    only = m.application;
  }
  return only;
}

}  // namespace

void CameraRows::add(const std::vector<CameraFigures>& cameras, Second* second) {
  std::map<std::string, std::shared_ptr<const CameraFigures>> without;
  std::map<std::string, std::vector<StreamFigures*>> streams;
  for (StreamFigures& s : second->streams) streams[s.who->name].push_back(&s);
  for (const CameraFigures& c : cameras) {
    const auto camera = std::make_shared<const CameraFigures>(c);
    const std::string name = printable(c.name);
    bool found = false;
    // Its stream has its name, or those of its tasks begin with it.
    for (auto at = streams.lower_bound(name); at != streams.end() && at->first.starts_with(name); ++at) {
      if (at->first.size() != name.size() && at->first[name.size()] != ' ') continue;
      for (StreamFigures* s : at->second) s->camera = camera;
      found = true;
    }
    if (!found && c.state != "ended") without[name] = camera;
  }
  std::erase_if(rows_, [&](const auto& row) { return !without.contains(row.first); });
  std::vector<StreamFigures> added;
  for (const auto& [name, camera] : without) {
    auto& who = rows_[name];
    if (!who) {
      // The first number that is free: a row that stays keeps its own.
      std::uint32_t index = kCameraRows;
      while (std::any_of(rows_.begin(), rows_.end(),
                         [&](const auto& row) { return row.second && row.second->key.index == index; }))
        ++index;
      auto made = std::make_shared<StreamIdentity>();
      made->key = {index, 0};
      made->name = name;
      made->application = application_of(*camera, *second);
      who = std::move(made);
    }
    StreamFigures row;
    row.who = who;
    row.camera = camera;
    added.push_back(std::move(row));
  }
  std::sort(added.begin(), added.end(),
            [](const auto& a, const auto& b) { return a.who->key.index < b.who->key.index; });
  for (StreamFigures& row : added) second->streams.push_back(std::move(row));
}

std::string short_error(const CameraFigures& camera) {
  if (camera.error.empty()) return camera.state;
  // "'rtsp://...' cannot be opened: Connection refused": whose it is is known.
  const std::size_t end = camera.error.starts_with('\'') ? camera.error.find("' ", 1) : std::string::npos;
  return printable(end == std::string::npos ? camera.error : camera.error.substr(end + 2));
}

}  // namespace leat::tools::top
