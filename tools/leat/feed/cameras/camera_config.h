// What is wanted of one camera: a file of cameras says it, or the command line.
//
//   [[camera]]
//   name = "yard"
//   url = "rtsp://user:password@10.0.0.7/main"
//
// Every other key is optional, and what it leaves out is as the command line has it for all. docs/guide/cameras.md has
// them. Thread rule: values. Errors: one line with file, line and key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/leat/feed/feeder.h"

namespace leat::tools {

struct CameraConfig {
  std::string name, url;
  std::optional<std::string> application, priority, overload, transport, decoder, color_range, color_matrix, damaged;
  std::optional<double> slo_ms, rate, min_score, accuracy, stall_s;
  std::optional<std::int64_t> depth;
  std::optional<bool> track, loop;
  std::optional<std::vector<std::string>> classes, tasks;
  bool operator==(const CameraConfig&) const = default;
};

// Names are told apart, and there is one camera at least.
Result<std::vector<CameraConfig>> read_cameras(const std::string& path);
Result<std::vector<CameraConfig>> parse_cameras(const std::string& name, const std::string& toml);

// The words of a rule and a class, as the table of options has them. Precondition: it is one of them.
void set_overload(FeederOptions& options, const std::string& word);  // "auto" too
[[nodiscard]] leat_priority priority_of(const std::string& word);
[[nodiscard]] std::uint8_t color_range_of(const std::string& word);   // "auto": unspecified
[[nodiscard]] std::uint8_t color_matrix_of(const std::string& word);  // likewise
[[nodiscard]] DamagedPictures damaged_of(const std::string& word);

// `all`: what holds for all cameras.
Result<FeederOptions> options_of(const CameraConfig& camera, FeederOptions all);

}  // namespace leat::tools
