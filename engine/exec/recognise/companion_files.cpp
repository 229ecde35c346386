#include "engine/exec/recognise/companion_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "engine/exec/recognise/paddle.h"
#include "tools/base/json/json.h"

namespace leat::exec {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string name;
  Json json;
};

std::optional<File> json_file(const fs::path& folder, const char* name) {
  constexpr std::size_t kMax = 16 << 20;
  std::ifstream file(folder / name, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto json = text.size() > kMax ? std::nullopt : Json::try_parse(text);
  if (!json || !json->is_object()) return std::nullopt;
  return File{name, std::move(*json)};
}

std::optional<std::array<double, 3>> triple(const Json& json, const char* key) {
  const Json* const at = json.find(key);
  if (at == nullptr || !at->is_array() || (at->size() != 3 && at->size() != 1)) return std::nullopt;
  std::array<double, 3> out{};
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& v = at->at(at->size() == 3 ? i : 0);
    if (!v.is_number()) return std::nullopt;
    out[i] = v.get<double>();
  }
  return out;
}

double number_of(const Json& json, const char* key, double other) {
  const Json* const at = json.find(key);
  return at != nullptr && at->is_number() ? at->get<double>() : other;
}
bool says(const Json& json, const char* key, bool other) {
  const Json* const at = json.find(key);
  return at != nullptr && at->is_boolean() ? at->get<bool>() : other;
}
std::string text_of(const Json& json, const char* key) {
  const Json* const at = json.find(key);
  return at != nullptr && at->is_string() ? at->get<std::string>() : std::string();
}

// Height and width of {"height": h, "width": w} or one number.
std::optional<std::pair<double, double>> sides(const Json& json, const char* key) {
  const Json* const at = json.find(key);
  if (at == nullptr) return std::nullopt;
  if (at->is_number()) return std::pair{at->get<double>(), at->get<double>()};
  if (!at->is_object() || !at->contains("height") || !at->contains("width")) return std::nullopt;
  return std::pair{number_of(*at, "height", 0), number_of(*at, "width", 0)};
}

// Pillow's name or number of a way to resize, as a word; none: no word stands for it.
std::optional<std::string> pillow_words(const std::string& way) {
  constexpr std::pair<std::string_view, const char*> kWays[] = {
      {"0", " resize=nearest"},       {"nearest", " resize=nearest"}, {"1", " resize=lanczos"},
      {"lanczos", " resize=lanczos"}, {"2", " resize=antialias"},     {"bilinear", " resize=antialias"},
      {"3", " resize=cubic"},         {"bicubic", " resize=cubic"}};
  const auto at = std::ranges::find(kWays, way, [](const auto& w) { return w.first; });
  return at == std::end(kWays) ? std::nullopt : std::optional<std::string>(at->second);
}

// What a processor resizes by that does not say it: its class' own default.
const char* default_resample(const Json& processor) {
  const std::string type = text_of(
      processor, processor.contains("image_processor_type") ? "image_processor_type" : "feature_extractor_type");
  if (type.starts_with("EfficientNet")) return "nearest";
  constexpr const char* kBicubic[] = {"CLIP", "Siglip", "DPT",        "Beit", "Deit",
                                      "DeiT", "Levit",  "PoolFormer", "Blip", "Bit"};
  const bool bicubic = std::ranges::any_of(kBicubic, [&](const char* name) { return type.starts_with(name); });
  return bicubic ? "bicubic" : "bilinear";
}

// Hugging Face's image processors.
void from_processor(const ModelFacts& f, const File& file, CompanionFiles& out) {
  const Json& j = file.json;
  std::string words;
  const auto crop = says(j, "do_center_crop", false) ? sides(j, "crop_size") : std::nullopt;
  const Json* const size = j.find("size");
  const double shortest =
      size != nullptr && size->is_object() ? number_of(*size, "shortest_edge", 0) : number_of(j, "size", 0);
  // ConvNeXt's: shorter side to size / crop_pct, then its middle; from 384 on the whole picture.
  const double part = number_of(j, "crop_pct", 0);
  const auto resize = pillow_words(j.contains("resample") ? shown(number_of(j, "resample", -1)) : default_resample(j));
  if (!resize) return;
  const std::string order = *resize + (says(j, "do_flip_channel_order", false) ? " bgr" : " rgb");
  // What pads, or rounds sides down, makes a size that no word stands for.
  if ((says(j, "do_pad", false) && j.contains("pad_size")) || j.contains("size_divisor") ||
      says(j, "rescale_offset", false))
    return;
  if (crop) {
    const auto whole = sides(j, "size");
    const double from = shortest > 0 ? shortest : whole ? whole->first : crop->first;
    words = "cover=" + shown(std::min(1.0, crop->first / std::max(from, 1.0))) + order;
  } else if (part > 0 && shortest > 0 && shortest < 384) {
    words = "cover=" + shown(part) + order;
  } else {
    words = std::string("stretch") + order;
  }
  const double scale = says(j, "do_rescale", true) ? number_of(j, "rescale_factor", 1.0 / 255) : 1;
  std::array<double, 3> mean{}, deviation = {1, 1, 1};
  if (says(j, "do_normalize", true)) {
    const auto m = triple(j, "image_mean"), d = triple(j, "image_std");
    if (!m || !d) return;
    mean = *m, deviation = *d;
    if (says(j, "include_top", false))  // EfficientNet divides by the deviation once more
      for (double& v : deviation) v *= v;
  }
  for (std::size_t i = 0; i < 3; ++i) {  // (pixel * scale - mean) / std, in pixel / 255
    mean[i] /= 255 * scale;
    deviation[i] /= 255 * scale;
  }
  words += std::abs(deviation[0] * 255 - 1) < 1e-6 && mean[0] == 0 ? " norm=raw" : " " + norm_words(mean, deviation);
  const auto target = crop                       ? crop
                      : part > 0 && shortest > 0 ? std::optional(std::pair{shortest, shortest})
                                                 : sides(j, "size");
  if (target && says(j, "keep_aspect_ratio", false)) {  // DPT's: near that size, in the picture's proportions
    out.size = size_words(f, target->second, target->first);
  } else if (target) {
    words += size_words(f, target->second, target->first);
  } else if (const double longest = size != nullptr && size->is_object() ? number_of(*size, "longest_edge", 0)
                                                                         : number_of(j, "max_size", 0);
             shortest > 0 && longest >= shortest && f.width() < 0 && f.height() < 0) {
    words += " edge=" + shown(shortest) + " longest=" + shown(longest);
  } else if (shortest > 0) {  // the picture's own proportions: no size is the model's
    out.size = size_words(f, std::round(shortest * 4 / 3), shortest);
  }
  if (f.input("pixel_mask") != nullptr) words += " feed.pixel_mask=ones";
  out.preprocess = words, out.preprocess_from = file.name;
}

// timm's config.json: pretrained_cfg.
void from_timm(const ModelFacts& f, const File& file, CompanionFiles& out) {
  const Json* const at = file.json.find("pretrained_cfg");
  if (at == nullptr || !at->is_object()) return;
  const auto mean = triple(*at, "mean"), deviation = triple(*at, "std");
  if (!mean || !deviation) return;
  const std::string way = text_of(*at, "interpolation");
  out.preprocess = "cover=" + shown(number_of(*at, "crop_pct", 0.875)) +
                   pillow_words(way).value_or(pillow_words("bicubic").value()) + " rgb " +
                   norm_words(*mean, *deviation);
  if (const Json* const size = at->find("input_size");
      size != nullptr && size->is_array() && size->size() == 3 && size->at(1).is_number() && size->at(2).is_number())
    out.preprocess += size_words(f, size->at(2).get<double>(), size->at(1).get<double>());
  out.preprocess_from = file.name;
  if (out.architecture.empty()) out.architecture = "timm ForImageClassification", out.task_from = file.name;
}

// mmdeploy's pipeline.json: the transforms of its first task.
void from_pipeline(const ModelFacts& f, const File& file, CompanionFiles& out) {
  const Json* const pipeline = file.json.find("pipeline");
  const Json* const tasks = pipeline != nullptr ? pipeline->find("tasks") : nullptr;
  if (tasks == nullptr || !tasks->is_array() || tasks->empty()) return;
  const Json* const transforms = tasks->at(0).find("transforms");
  if (transforms == nullptr || !transforms->is_array()) return;
  std::string fit = "stretch", resize, colours, size;
  for (const Json& t : *transforms) {
    const std::string type = text_of(t, "type");
    if (type == "Resize") {
      if (says(t, "keep_ratio", false)) fit = "letterbox at=topleft";
      const std::string way = text_of(t, "interpolation");  // of OpenCV, where it does not say Pillow
      if (text_of(t, "backend") == "pillow")
        resize = pillow_words(way.empty() ? "bilinear" : way).value_or("");
      else if (way == "area")
        resize = " resize=area";
      const Json* const wh = t.find("size");
      if (wh != nullptr && wh->is_array() && wh->size() == 2 && wh->at(0).is_number() && wh->at(1).is_number())
        size = size_words(f, wh->at(0).get<double>(), wh->at(1).get<double>());
    } else if (type == "Pad" && fit != "stretch") {
      fit += " pad=0";
    } else if (type == "Normalize") {
      auto mean = triple(t, "mean"), deviation = triple(t, "std");
      if (!mean || !deviation) return;
      for (std::size_t i = 0; i < 3; ++i) (*mean)[i] /= 255, (*deviation)[i] /= 255;  // of pixels there
      // By channel: pixels of the picture are BGR there until to_rgb turns them.
      colours = std::string(says(t, "to_rgb", true) ? " rgb " : " bgr ") + norm_words(*mean, *deviation);
    }
  }
  if (colours.empty()) return;
  out.preprocess = fit + resize + colours + size, out.preprocess_from = file.name;
}

void from_json_files(const ModelFacts& f, const fs::path& folder, CompanionFiles& out) {
  if (const auto config = json_file(folder, "config.json")) {
    const Json& j = config->json;
    const Json* const names = j.find("architectures");
    if (names != nullptr && names->is_array() && !names->empty() && names->at(0).is_string() &&
        out.architecture.empty())
      out.architecture = names->at(0).get<std::string>(), out.task_from = config->name;
    if (out.preprocess.empty()) from_timm(f, *config, out);
    if (out.names.empty() && j.contains("id2label")) {
      if (auto list = names_in_file((folder / config->name).string()); list.ok())
        out.names = std::move(*list), out.names_from = config->name, out.names_certain = true;
    }
  }
  if (const auto processor = json_file(folder, "preprocessor_config.json")) from_processor(f, *processor, out);
  if (const auto pipeline = json_file(folder, "pipeline.json"); pipeline && out.preprocess.empty())
    from_pipeline(f, *pipeline, out);
}

}  // namespace

std::string shown(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

std::string norm_words(const std::array<double, 3>& mean, const std::array<double, 3>& deviation) {
  struct Known {
    const char* name;
    std::array<double, 3> mean, deviation;
  };
  static constexpr Known kKnown[] = {{"unit", {0, 0, 0}, {1, 1, 1}},
                                     {"half", {.5, .5, .5}, {.5, .5, .5}},
                                     {"imagenet", {.485, .456, .406}, {.229, .224, .225}},
                                     {"clip", {.48145466, .4578275, .40821073}, {.26862954, .26130258, .27577711}}};
  for (const Known& k : kKnown) {
    bool same = true;
    for (std::size_t i = 0; i < 3; ++i)
      same = same && std::abs(k.mean[i] - mean[i]) < 1e-6 && std::abs(k.deviation[i] - deviation[i]) < 1e-6;
    if (same) return std::string("norm=") + k.name;
  }
  const auto list = [](const std::array<double, 3>& v) { return shown(v[0]) + "," + shown(v[1]) + "," + shown(v[2]); };
  return "mean=" + list(mean) + " std=" + list(deviation);
}

std::string size_words(const ModelFacts& f, double width, double height) {
  const bool open = f.width() < 0 || f.height() < 0;
  return open && width >= 1 && height >= 1 ? " size=" + shown(width) + "x" + shown(height) : "";
}

CompanionFiles read_companion_files(const ModelFacts& f) {
  CompanionFiles out;
  std::error_code failed;
  const fs::path model = fs::absolute(f.path, failed), here = model.parent_path();
  from_json_files(f, here, out);
  if (out.preprocess.empty() && out.architecture.empty() && out.names.empty() && here.has_parent_path())
    from_json_files(f, here.parent_path(), out);
  if (out.preprocess.empty()) read_paddle(f, here.string(), out);
  const std::string own = model.stem().string() + ".labels.txt";
  for (const auto& [name, certain] : {std::pair{own.c_str(), true}, {"data.yaml", false}, {"labels.txt", false}}) {
    if (!out.names.empty() || !fs::is_regular_file(here / name, failed)) continue;
    if (auto list = names_in_file((here / name).string()); list.ok())
      out.names = std::move(*list), out.names_from = name, out.names_certain = certain;
  }
  return out;
}

std::string lines_beside(const ModelFacts& f, std::int64_t classes) {
  constexpr std::uintmax_t kMaxBytes = 1 << 20;
  std::error_code failed;
  const fs::path model = fs::absolute(f.path, failed);
  std::string found;
  for (const auto& entry : fs::directory_iterator(model.parent_path(), failed)) {
    if (entry.path().extension() != ".txt" || !entry.is_regular_file(failed) || entry.file_size(failed) > kMaxBytes)
      continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::int64_t lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    if (lines != classes - 1 && lines != classes - 2) continue;
    if (!found.empty()) return {};
    found = entry.path().filename().string();
  }
  return found;
}

}  // namespace leat::exec
