// Profiles as JSON files (docs/guide/profiles.md), and PPipe's CSV directory (models.csv, boundaries.csv,
// profiles/MODEL.csv). Any thread. Errors are one line: file, line or key, what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"
#include "planner/profile.h"

namespace leat::planner {

// What is read is valid: problem_of() is empty.
Result<Profile> parse_profile(std::string_view json, const std::string& name);
Result<Profile> read_profile(const std::string& path);
std::string profile_to_json(const Profile& profile);
Status write_profile(const std::string& path, const Profile& profile);

// Every *.json of a directory, by model name; or PPipe's CSV directory where it holds models.csv. Two profiles of one
// model are an error. PPipe's latencies below 1 us are raised to 1 us, as its planner does.
Result<std::vector<Profile>> read_profiles(const std::string& directory);

// Empty: block counts agree, every latency is positive with p99 >= p50, batch 1 stands for each (class, share), no row
// stands twice. Otherwise one line.
std::string problem_of(const Profile& profile);

}  // namespace leat::planner
