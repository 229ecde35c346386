#include "tools/leat/top/source/seen_json.h"

#include <algorithm>
#include <cmath>

namespace leat::tools::top {
namespace {

constexpr std::size_t kMost = 1024;                 // cameras, of all feeders of a user
constexpr double kLongestAgoSeconds = 1e9;          // more is nonsense
constexpr std::int64_t kRunningNs = 2'000'000'000;  // a picture that is no older is of now

float number(const Json& of, const char* key) {
  const Json* const value = of.find(key);
  return value != nullptr && value->is_number() ? static_cast<float>(value->get<double>()) : kUnknownFigure;
}
std::int64_t time(const Json& of, const char* key) {
  const Json* const value = of.find(key);
  return value != nullptr && value->is_integer() ? value->get<std::int64_t>() : 0;
}
std::string text(const Json& of, const char* key) {
  const Json* const value = of.find(key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}
Json number_json(float value) {
  return known(value) ? Json(std::round(static_cast<double>(value) * 100) / 100) : Json(nullptr);
}

float rounded(float rate) { return !known(rate) ? rate : rate >= 10 ? std::round(rate) : std::round(rate * 10) / 10; }
// Tenths of seconds were told, so that the same moment is told a little differently each time.
std::int64_t moment(std::int64_t now_ns, float seconds_ago) {
  if (!known(seconds_ago) || seconds_ago < 0 || seconds_ago > kLongestAgoSeconds) return 0;
  return (now_ns - static_cast<std::int64_t>(static_cast<double>(seconds_ago) * 1e9)) / kSecondNs * kSecondNs;
}

template <class Of, class Read>
std::vector<Of> list_of(const Json& list, const Read& read) {
  std::vector<Of> out;
  if (!list.is_array()) return out;
  for (const Json& entry : list)
    if (entry.is_object() && out.size() < kMost) out.push_back(read(entry));
  return out;
}

HeatFigures heat_of(const Json& g) {
  return {.uuid = text(g, "uuid"),
          .held_back = text(g, "held_back"),
          .temperature_c = number(g, "temperature_c"),
          .power_w = number(g, "power_w"),
          .power_cap_w = number(g, "power_cap_w"),
          .sm_clock_mhz = number(g, "sm_clock_mhz"),
          .memory_used_mib = number(g, "memory_used_mib"),
          .memory_mib = number(g, "memory_mib")};
}

}  // namespace

std::vector<CameraFigures> cameras_told(const Json& states, std::int64_t now_ns) {
  return list_of<CameraFigures>(states, [&](const Json& c) {
    CameraFigures out{.name = text(c, "name"),
                      .source = text(c, "source"),
                      .application = text(c, "application"),
                      .state = text(c, "state"),
                      .error = text(c, "last_error"),
                      .rate = rounded(number(c, "rate")),
                      .breaks = number(c, "breaks"),
                      .damaged = number(c, "damaged"),
                      .format_changes = number(c, "format_changes")};
    out.last_picture_ns = moment(now_ns, number(c, "last_picture_s"));
    out.error_ns = moment(now_ns, number(c, "last_error_s"));
    if (out.runs() && now_ns - out.last_picture_ns < kRunningNs + kSecondNs) out.last_picture_ns = 0;
    return out;
  });
}

std::vector<HeatFigures> gpus_told(const Json& line) {
  if (!line.is_object() || !line.contains("gpus")) return {};
  return list_of<HeatFigures>(line["gpus"], [](const Json& g) {
    HeatFigures out = heat_of(g);
    out.memory_mib = number(g, "memory_bytes") / (1 << 20);
    out.memory_used_mib = number(g, "memory_used_bytes") / (1 << 20);
    const Json* const reasons = g.find("held_back");
    if (reasons != nullptr && reasons->is_array())
      for (const Json& reason : *reasons)
        if (reason.is_string()) out.held_back += (out.held_back.empty() ? "" : ", ") + reason.get<std::string>();
    return out;
  });
}

Json to_json(const std::vector<CameraFigures>& cameras) {
  Json out = Json::array();
  for (const CameraFigures& c : cameras)
    out.push_back({{"name", c.name},
                   {"source", c.source},
                   {"application", c.application},
                   {"state", c.state},
                   {"error", c.error},
                   {"rate", number_json(c.rate)},
                   {"breaks", number_json(c.breaks)},
                   {"damaged", number_json(c.damaged)},
                   {"format_changes", number_json(c.format_changes)},
                   {"last_picture_ns", c.last_picture_ns},
                   {"error_ns", c.error_ns}});
  return out;
}

Json to_json(const std::vector<HeatFigures>& gpus) {
  Json out = Json::array();
  for (const HeatFigures& g : gpus)
    out.push_back({{"uuid", g.uuid},
                   {"held_back", g.held_back},
                   {"temperature_c", number_json(g.temperature_c)},
                   {"power_w", number_json(g.power_w)},
                   {"power_cap_w", number_json(g.power_cap_w)},
                   {"sm_clock_mhz", number_json(g.sm_clock_mhz)},
                   {"memory_used_mib", number_json(g.memory_used_mib)},
                   {"memory_mib", number_json(g.memory_mib)}});
  return out;
}

std::vector<CameraFigures> cameras_recorded(const Json& list) {
  return list_of<CameraFigures>(list, [](const Json& c) {
    return CameraFigures{.name = text(c, "name"),
                         .source = text(c, "source"),
                         .application = text(c, "application"),
                         .state = text(c, "state"),
                         .error = text(c, "error"),
                         .rate = number(c, "rate"),
                         .breaks = number(c, "breaks"),
                         .damaged = number(c, "damaged"),
                         .format_changes = number(c, "format_changes"),
                         .last_picture_ns = time(c, "last_picture_ns"),
                         .error_ns = time(c, "error_ns")};
  });
}

std::vector<HeatFigures> gpus_recorded(const Json& list) { return list_of<HeatFigures>(list, heat_of); }

}  // namespace leat::tools::top
