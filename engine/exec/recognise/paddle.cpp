#include "engine/exec/recognise/paddle.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "engine/exec/recognise/metadata.h"

namespace leat::exec {
namespace {

constexpr const char* kFile = "inference.yml";
constexpr std::size_t kMostLines = 20'000;  // a dictionary of characters is one a line

class Yaml {
 public:
  explicit Yaml(const std::string& path) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line) && lines_.size() < kMostLines;) lines_.push_back(line);
  }
  [[nodiscard]] bool has(const std::string& key) const { return at(key) != lines_.size(); }
  [[nodiscard]] bool mentions(const std::string& from, const std::string& text) const {
    return std::any_of(lines_.begin() + static_cast<std::ptrdiff_t>(at(from)), lines_.end(),
                       [&](const std::string& l) { return l.find(text) != std::string::npos; });
  }
  // Of `key: value`; empty: there is none.
  [[nodiscard]] std::string value(const std::string& key) const {
    const std::size_t i = at(key);
    if (i == lines_.size()) return {};
    const std::size_t from = lines_[i].find_first_not_of(' ', lines_[i].find(':') + 1);
    return from == std::string::npos ? std::string() : lines_[i].substr(from);
  }
  // The entries of `key:` that follow, one a line, or of `key: [a, b]`.
  [[nodiscard]] std::vector<std::string> list(const std::string& key) const {
    const std::string inside = value(key);
    std::vector<std::string> out;
    if (!inside.empty()) {
      const auto names = names_in_literal(inside);
      return {names.begin(), names.end()};
    }
    for (std::size_t i = at(key) + 1; i < lines_.size(); ++i) {
      const std::size_t dash = lines_[i].find_first_not_of(' ');
      if (dash == std::string::npos || lines_[i].compare(dash, 2, "- ") != 0) break;
      std::string entry = lines_[i].substr(dash + 2);
      if (entry.size() > 1 && (entry.front() == '\'' || entry.front() == '"') && entry.back() == entry.front())
        entry = entry.substr(1, entry.size() - 2);
      out.push_back(entry);
    }
    return out;
  }
  [[nodiscard]] bool numbers(const std::string& key, std::size_t count, double* to) const {
    const std::vector<std::string> entries = list(key);
    for (std::size_t i = 0; i < count; ++i) {
      char* end = nullptr;
      if (i >= entries.size()) return false;
      to[i] = std::strtod(entries[i].c_str(), &end);
      if (end == entries[i].c_str()) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::size_t at(const std::string& key) const {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (const std::size_t from = lines_[i].find_first_not_of(" -");
          from != std::string::npos && lines_[i].compare(from, key.size() + 1, key + ":") == 0)
        return i;
    return lines_.size();
  }
  std::vector<std::string> lines_;
};

// Lines of text: PaddleOCR's detectors.
void regions(const ModelFacts& f, const Yaml& yaml, const std::string& order, CompanionFiles& out) {
  std::array<double, 3> mean{}, deviation{};
  if (!yaml.numbers("mean", 3, mean.data()) || !yaml.numbers("std", 3, deviation.data())) return;
  out.postprocess = "lines";
  for (const auto& [key, word] :
       {std::pair{"thresh", " threshold="}, {"box_thresh", " score="}, {"unclip_ratio", " grow="}})
    if (const std::string v = yaml.value(key); !v.empty())
      out.postprocess += word + shown(std::strtod(v.c_str(), nullptr));
  const std::string longest = yaml.value("resize_long");
  const bool open = f.width() < 0 && f.height() < 0;
  out.preprocess = (open ? "longest=" + (longest.empty() ? std::string("960") : longest) + " multiple=32"
                         : "letterbox at=topleft pad=0") +
                   order + norm_words(mean, deviation);
  out.preprocess_from = out.postprocess_from = kFile;
}

// PaddleDetection's: pictures are stretched to target_size (height, width).
void detector(const ModelFacts& f, const Yaml& yaml, CompanionFiles& out) {
  std::array<double, 3> mean{}, deviation = {1, 1, 1};
  double size[2];
  if (yaml.value("keep_ratio") != "false" || !yaml.numbers("target_size", 2, size)) return;
  if (yaml.value("is_scale") == "false") return;
  if (yaml.value("norm_type") != "none" &&
      (!yaml.numbers("mean", 3, mean.data()) || !yaml.numbers("std", 3, deviation.data())))
    return;
  const char* const fit = yaml.value("interp") == "3" ? "stretch resize=area rgb " : "stretch rgb ";  // OpenCV's number
  out.preprocess = fit + norm_words(mean, deviation) + size_words(f, size[1], size[0]);
  if (f.input("scale_factor") != nullptr) out.preprocess += " feed.scale_factor=ones";
  if (f.input("im_shape") != nullptr) out.preprocess += " feed.im_shape=hw";
  out.preprocess_from = kFile;
}

// PaddleClas': the shorter side to resize_short, then the middle.
void classifier(const ModelFacts& f, const Yaml& yaml, const std::string& order, CompanionFiles& out) {
  std::array<double, 3> mean{}, deviation{};
  if (!yaml.numbers("mean", 3, mean.data()) || !yaml.numbers("std", 3, deviation.data())) return;
  const double whole = std::strtod(yaml.value("resize_short").c_str(), nullptr);
  double size[2] = {std::strtod(yaml.value("size").c_str(), nullptr), 0};
  size[1] = size[0];
  if (size[0] < 1 && !yaml.numbers("size", 2, size)) return;  // width, height
  if (size[0] < 1 || size[1] < 1) return;
  const bool pillow = yaml.value("backend") == "pil", bicubic = yaml.value("interpolation") == "bicubic";
  out.preprocess = (whole > 0 ? "cover=" + shown(std::min(1.0, size[0] / whole)) : std::string("stretch")) +
                   (!pillow   ? ""
                    : bicubic ? " resize=cubic"
                              : " resize=antialias") +
                   order + norm_words(mean, deviation) + size_words(f, size[0], size[1]);
  out.preprocess_from = kFile;
}

}  // namespace

void read_paddle(const ModelFacts& f, const std::string& folder, CompanionFiles& out) {
  const Yaml yaml(folder + "/" + kFile);
  // Paddle's readers make RGB of a picture unless the file says otherwise.
  const std::string order = yaml.value("img_mode") == "BGR" ? " bgr " : " rgb ";
  if (yaml.has("PostProcess") && yaml.mentions("PostProcess", "DBPostProcess")) {
    regions(f, yaml, order, out);
  } else if (yaml.has("PostProcess") && yaml.mentions("PostProcess", "CTCLabelDecode")) {
    out.postprocess = std::string("text ctc keys=") + kFile;
    out.preprocess = words_for_lines(f, order == " bgr " ? "bgr" : "rgb");
    out.preprocess_from = out.postprocess_from = kFile;
  } else if (yaml.has("PostProcess") && yaml.mentions("PostProcess", "Topk")) {
    classifier(f, yaml, order, out);
  } else if (yaml.has("Preprocess") && yaml.has("arch")) {
    detector(f, yaml, out);
  }
  if (out.preprocess.empty() || !out.names.empty() || !yaml.has("label_list")) return;
  out.names = yaml.list("label_list"), out.names_from = kFile, out.names_certain = true;
}

}  // namespace leat::exec
