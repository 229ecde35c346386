#include "tools/leat/feed/truth.h"

#include <algorithm>
#include <fstream>

#include "tools/base/json/json.h"

namespace leat::tools {
namespace {

template <class Names>
std::int32_t index_of(const Names& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) throw std::runtime_error("'" + name + "' is no shape or colour of the scene");
  return static_cast<std::int32_t>(it - names.begin());
}

scene::Object object_of(const Json& json) {
  const auto& box = json.at("box");
  return {.x0 = box.at(0).get<float>(),
          .y0 = box.at(1).get<float>(),
          .x1 = box.at(2).get<float>(),
          .y1 = box.at(3).get<float>(),
          .shape = index_of(scene::kShapes, json.at("shape").get<std::string>()),
          .colour = index_of(scene::kColours, json.at("colour").get<std::string>()),
          .visible = json.at("visible").get<float>(),
          .ignore = json.at("ignore").get<bool>(),
          .id = json.value("id", std::uint64_t{0})};
}

}  // namespace

Result<Truth> load_truth(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{"the ground truth '" + path + "' cannot be opened; 'leat-scene --truth' writes it"};
  Truth truth;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      const auto json = Json::parse(line);
      truth.width = json.at("width").get<std::uint32_t>();
      truth.height = json.at("height").get<std::uint32_t>();
      std::vector<scene::Object> objects;
      for (const auto& object : json.at("objects")) objects.push_back(object_of(object));
      truth.pictures.push_back(std::move(objects));
    } catch (const std::exception& problem) {
      return Error{path + ":" + std::to_string(number) + ": not a line of ground truth: " + problem.what()};
    }
  }
  if (truth.pictures.empty()) return Error{"the ground truth '" + path + "' is empty"};
  return truth;
}

std::optional<double> Judge::idf1() const {
  const std::lock_guard lock(mutex_);
  scene::IdentityMeter::Counts all;
  for (const auto& [stream, meter] : identities_) {
    const auto counts = meter.counts();
    all.right += counts.right, all.all += counts.all;
  }
  return identities_.empty() ? std::nullopt : std::optional(all.idf1());
}

}  // namespace leat::tools
