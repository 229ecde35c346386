#include "tools/leat/feed/cameras/camera_config.h"

#include <cmath>
#include <set>

#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::tools {
namespace {

constexpr std::size_t kMaxCameras = 256;   // streams that leatd serves
constexpr std::size_t kMaxNameBytes = 31;  // leat_stream_options.name keeps as many

CameraConfig read_camera(const JsonCursor& t) {
  t.only({"name",   "url",     "application", "priority",    "overload",     "transport", "decoder",
          "slo_ms", "rate",    "min_score",   "accuracy",    "stall_s",      "depth",     "track",
          "loop",   "classes", "tasks",       "color_range", "color_matrix", "damaged"});
  CameraConfig c;
  c.name = t.needed_text("name");
  c.url = t.needed_text("url");
  if (c.name.size() > kMaxNameBytes)
    t.find("name").fail("has " + std::to_string(c.name.size()) + " bytes, at most " + std::to_string(kMaxNameBytes) +
                        "; give it a shorter one");
  if (c.url == "-") t.find("url").fail("is standard input, which a file of cameras cannot name; give --stdin");
  if (t.has("application")) c.application = t.needed_text("application");
  if (t.has("priority")) c.priority = t.choice_or("priority", "", {"background", "normal", "high", "protected"});
  if (t.has("overload"))
    c.overload = t.choice_or("overload", "", {"auto", "latest", "fifo", "latest_per_key", "never_drop"});
  if (t.has("transport")) c.transport = t.choice_or("transport", "", {"tcp", "udp"});
  if (t.has("decoder")) c.decoder = t.choice_or("decoder", "", {"auto", "cpu", "vaapi", "cuda"});
  if (t.has("color_range")) c.color_range = t.choice_or("color_range", "", {"auto", "limited", "full"});
  if (t.has("color_matrix")) c.color_matrix = t.choice_or("color_matrix", "", {"auto", "bt601", "bt709", "bt2020"});
  if (t.has("damaged")) c.damaged = t.choice_or("damaged", "", {"mark", "drop", "keep"});
  const auto number = [&](const char* key, double max, std::optional<double>& to) {
    if (t.has(key)) to = t.number_or(key, 0, 0, max);
  };
  number("slo_ms", 3'600'000, c.slo_ms);
  number("rate", 100'000, c.rate);
  number("min_score", 1, c.min_score);
  number("accuracy", 0.5, c.accuracy);
  number("stall_s", 86'400, c.stall_s);
  if (t.has("depth")) c.depth = t.integer_or("depth", 0, 1, 64);
  if (t.has("track")) c.track = t.find("track").boolean();
  if (t.has("loop")) c.loop = t.find("loop").boolean();
  if (t.has("classes")) c.classes = t.texts("classes");
  if (t.has("tasks")) c.tasks = t.texts("tasks");
  if (const auto options = options_of(c, {}); !options.ok()) t.fail(options.error());
  return c;
}

}  // namespace

Result<std::vector<CameraConfig>> parse_cameras(const std::string& name, const std::string& toml) {
  const auto document = JsonDocument::from_toml(name, toml);
  const JsonCursor root = document->root();
  root.only({"camera"});
  std::vector<CameraConfig> out;
  std::set<std::string> names;
  for (const JsonCursor& t : root.tables("camera")) {
    out.push_back(read_camera(t));
    if (!names.insert(out.back().name).second) t.find("name").fail("is another camera's name too; give each its own");
  }
  if (document->failed()) return document->error();
  if (out.empty()) return Error{name + ": there is no [[camera]] in it; write one with a name and a url"};
  if (out.size() > kMaxCameras)
    return Error{name + ": there are " + std::to_string(out.size()) + " cameras, and one feeder has at most " +
                 std::to_string(kMaxCameras) + "; run several"};
  return out;
}

Result<std::vector<CameraConfig>> read_cameras(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text.ok()) return Error{text.error()};
  return parse_cameras(path, *text);
}

void set_overload(FeederOptions& options, const std::string& word) {
  options.overload_chosen = word != "auto";
#define X(name, value, text) \
  if (word == #name) options.overload = LEAT_OVERLOAD_##name;
  LEAT_OVERLOADS(X)
#undef X
}

leat_priority priority_of(const std::string& word) {
  return word == "background"  ? LEAT_PRIORITY_BACKGROUND
         : word == "high"      ? LEAT_PRIORITY_HIGH
         : word == "protected" ? LEAT_PRIORITY_PROTECTED
                               : LEAT_PRIORITY_NORMAL;
}

std::uint8_t color_range_of(const std::string& word) {
  return word == "full"      ? LEAT_COLOR_RANGE_full
         : word == "limited" ? LEAT_COLOR_RANGE_limited
                             : LEAT_COLOR_RANGE_unspecified;
}

std::uint8_t color_matrix_of(const std::string& word) {
  return word == "bt601"    ? LEAT_COLOR_MATRIX_bt601
         : word == "bt709"  ? LEAT_COLOR_MATRIX_bt709
         : word == "bt2020" ? LEAT_COLOR_MATRIX_bt2020
                            : LEAT_COLOR_MATRIX_unspecified;
}

DamagedPictures damaged_of(const std::string& word) {
  return word == "drop" ? DamagedPictures::drop : word == "keep" ? DamagedPictures::keep : DamagedPictures::mark;
}

Result<FeederOptions> options_of(const CameraConfig& camera, FeederOptions all) {
  FeederOptions o = std::move(all);
  o.name = camera.name;
  o.source = camera.url;
  if (camera.application) o.application = *camera.application;
  if (camera.slo_ms) o.slo_ns = std::llround(*camera.slo_ms * 1e6);
  if (camera.depth) o.depth = static_cast<std::uint32_t>(*camera.depth);
  if (camera.overload) set_overload(o, *camera.overload);
  if (camera.priority) o.priority = priority_of(*camera.priority);
  if (camera.rate) o.rate = o.source_options.rate = *camera.rate;
  if (camera.loop) o.loop = *camera.loop;
  if (camera.stall_s) o.stall_ns = std::llround(*camera.stall_s * 1e9);
  if (camera.transport) o.source_options.transport = *camera.transport;
  if (camera.decoder) o.source_options.decoder = *camera.decoder;
  if (camera.color_range) o.source_options.color.range = color_range_of(*camera.color_range);
  if (camera.color_matrix) o.source_options.color.matrix = color_matrix_of(*camera.color_matrix);
  if (camera.damaged) o.damaged = damaged_of(*camera.damaged);
  if (camera.track) o.tracks = *camera.track;
  if (camera.min_score) o.min_score = *camera.min_score;
  if (camera.classes) o.classes = *camera.classes;
  if (camera.accuracy) o.accuracy = *camera.accuracy;
  if (camera.tasks) {
    o.tasks.clear();
    for (const std::string& text : *camera.tasks) {
      auto task = parse_task(text);
      if (!task.ok()) return Error{task.error()};
      o.tasks.push_back(std::move(*task));
    }
  }
  if (!o.tasks.empty() && o.accuracy <= 0)
    return Error{"tasks are for streams whose boxes are tracked; give an accuracy too"};
  if (o.tasks.size() == 1 || o.tasks.size() > kMaxTasks)
    return Error{"tasks take turns, so there must be two to four of them"};
  return o;
}

}  // namespace leat::tools
