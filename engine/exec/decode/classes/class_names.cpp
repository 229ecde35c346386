#include "engine/exec/decode/classes/class_names.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/exec/model_files/pinned_models.h"
#include "tools/base/json/json.h"

namespace leat::exec {
namespace {

// COCO's categories by number; those that its pictures do not use stand in brackets there, and are gaps here.
constexpr std::string_view kCoco[] = {"",
                                      "person",
                                      "bicycle",
                                      "car",
                                      "motorcycle",
                                      "airplane",
                                      "bus",
                                      "train",
                                      "truck",
                                      "boat",
                                      "traffic light",
                                      "fire hydrant",
                                      "",
                                      "stop sign",
                                      "parking meter",
                                      "bench",
                                      "bird",
                                      "cat",
                                      "dog",
                                      "horse",
                                      "sheep",
                                      "cow",
                                      "elephant",
                                      "bear",
                                      "zebra",
                                      "giraffe",
                                      "",
                                      "backpack",
                                      "umbrella",
                                      "",
                                      "",
                                      "handbag",
                                      "tie",
                                      "suitcase",
                                      "frisbee",
                                      "skis",
                                      "snowboard",
                                      "sports ball",
                                      "kite",
                                      "baseball bat",
                                      "baseball glove",
                                      "skateboard",
                                      "surfboard",
                                      "tennis racket",
                                      "bottle",
                                      "",
                                      "wine glass",
                                      "cup",
                                      "fork",
                                      "knife",
                                      "spoon",
                                      "bowl",
                                      "banana",
                                      "apple",
                                      "sandwich",
                                      "orange",
                                      "broccoli",
                                      "carrot",
                                      "hot dog",
                                      "pizza",
                                      "donut",
                                      "cake",
                                      "chair",
                                      "couch",
                                      "potted plant",
                                      "bed",
                                      "",
                                      "dining table",
                                      "",
                                      "",
                                      "toilet",
                                      "",
                                      "tv",
                                      "laptop",
                                      "mouse",
                                      "remote",
                                      "keyboard",
                                      "cell phone",
                                      "microwave",
                                      "oven",
                                      "toaster",
                                      "sink",
                                      "refrigerator",
                                      "",
                                      "book",
                                      "clock",
                                      "vase",
                                      "scissors",
                                      "teddy bear",
                                      "hair drier",
                                      "toothbrush"};
static_assert(std::size(kCoco) == 91);

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r\n");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

void put(ClassNames& names, std::size_t at, std::string_view name) {
  constexpr std::size_t kLongest = 200;
  if (at >= kMaxClassNames) return;
  if (names.size() <= at) names.resize(at + 1);
  names[at] = trimmed(name).substr(0, kLongest);
  for (char& c : names[at])
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
}

bool number_in(std::string_view text, std::size_t* out) {
  text = trimmed(text);
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'')) text = text.substr(1, text.size() - 2);
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return fault == std::errc() && end == text.data() + text.size();
}

// One scalar at the beginning of `text`, quoted or up to one of `ends`; what it took is removed.
std::string scalar(std::string_view& text, std::string_view ends) {
  text = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::string out;
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
    const char quote = text.front();
    text.remove_prefix(1);
    while (!text.empty() && text.front() != quote) {
      if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
      out += text.front();
      text.remove_prefix(1);
    }
    if (!text.empty()) text.remove_prefix(1);
    text = text.substr(std::min(text.find_first_of(ends), text.size()));
    return out;
  }
  const std::size_t end = std::min(text.find_first_of(ends), text.size());
  out = trimmed(text.substr(0, end));
  text.remove_prefix(end);
  return out;
}

// The value of `names:`, or of PaddleOCR's `character_dict:`, in YAML: in brackets behind it, or one a line below it,
// with
// "- " or "0: " before each.
ClassNames names_in_yaml(const std::string& text) {
  ClassNames out;
  std::size_t at = text.starts_with("names:") ? 0 : text.find("\nnames:");
  if (at == std::string::npos) at = text.find("\n  character_dict:");
  if (at == std::string::npos) return out;
  at = text.find(':', at) + 1;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const std::string_view behind = trimmed(std::string_view(text).substr(at, end - at));
  if (!behind.empty() && behind.front() != '#') return names_in_literal(std::string_view(text).substr(at));
  for (std::size_t from = end + 1; from < text.size();) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    const std::string_view line = std::string_view(text).substr(from, to - from);
    from = to + 1;
    std::string_view entry = trimmed(line);
    if (entry.empty() || entry.front() == '#') continue;
    const bool item = entry.starts_with("- ");
    if (!item && line.front() != ' ' && line.front() != '\t') break;
    std::size_t index = out.size();
    if (item) {
      entry.remove_prefix(2);
    } else if (const std::size_t colon = entry.find(':');
               colon == std::string_view::npos || !number_in(entry.substr(0, colon), &index)) {
      break;
    } else {
      entry.remove_prefix(colon + 1);
    }
    put(out, index, scalar(entry, "#"));
  }
  return out;
}

ClassNames names_in_json(const std::string& text) {
  ClassNames out;
  const std::optional<Json> json = Json::try_parse(text);
  if (!json) return out;
  const Json* const labels = json->find("id2label");
  const Json& list = labels != nullptr ? *labels : *json;
  if (list.is_array()) {
    for (const Json& name : list) put(out, out.size(), name.is_string() ? name.get<std::string>() : "");
  } else if (list.is_object()) {
    for (const auto& [key, name] : list.items()) {
      std::size_t index = 0;
      if (name.is_string() && number_in(key, &index)) put(out, index, name.get<std::string>());
    }
  }
  return out;
}

}  // namespace

ClassNames preset_names(std::string_view preset) {
  ClassNames out;
  for (const std::string_view name : kCoco)
    if (preset == "coco-91" || (preset == "coco-80" && !name.empty())) out.emplace_back(name);
  return out;
}

ClassNames names_in_literal(std::string_view text) {
  ClassNames out;
  text = trimmed(text);
  if (text.empty() || (text.front() != '{' && text.front() != '[')) return out;
  const bool by_number = text.front() == '{';
  const char end = by_number ? '}' : ']';
  text.remove_prefix(1);
  while (true) {
    text = text.substr(std::min(text.find_first_not_of(" \t\r\n,"), text.size()));
    if (text.empty()) return {};
    if (text.front() == end) return out;
    std::size_t index = out.size();
    if (by_number) {
      if (!number_in(scalar(text, ":"), &index) || text.empty()) return {};
      text.remove_prefix(1);
    }
    put(out, index, scalar(text, by_number ? ",}" : ",]"));
  }
}

Result<ClassNames> names_in_file(const std::string& path) {
  constexpr std::uintmax_t kMax = 4 << 20;
  const std::string from_where = pinned_path(path);
  std::ifstream file(from_where, std::ios::binary);
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(from_where, failed);
  if (!file || failed) return Error{path + " cannot be read; name a file with one name a line"};
  if (bytes > kMax) return Error{path + " is larger than 4 MiB; name a file with one name a line"};
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string kind = std::filesystem::path(path).extension().string();
  ClassNames out;
  if (kind == ".yaml" || kind == ".yml") {
    out = names_in_yaml(text);
  } else if (kind == ".json") {
    out = names_in_json(text);
  } else {
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t to = std::min(text.find('\n', from), text.size());
      put(out, out.size(), std::string_view(text).substr(from, to - from));
      from = to + 1;
    }
    while (!out.empty() && out.back().empty()) out.pop_back();
  }
  if (out.empty()) return Error{path + " has no names of classes; write one a line"};
  return out;
}

std::string joined(const ClassNames& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : "\t") + names[i];
  return out;
}

Status fits(std::string_view names, std::size_t classes) {
  const auto count = static_cast<std::size_t>(std::count(names.begin(), names.end(), '\t')) + 1;
  if (count == classes) return Done{};
  return Error{"labels: there are " + std::to_string(count) + " names ('" +
               std::string(names.substr(0, names.find('\t'))) + "' first), and the model's output has " +
               std::to_string(classes) + " classes; write one name a class"};
}

Status fit(std::span<const std::string> names, std::span<const std::size_t> classes) {
  if (names.empty()) return Done{};
  if (names.size() != classes.size())
    return Error{"labels: " + std::to_string(names.size()) + " lists are given for " + std::to_string(classes.size()) +
                 " outputs; write one list of names an output"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (auto status = fits(names[i], classes[i]); !status) return status;
  return Done{};
}

}  // namespace leat::exec
