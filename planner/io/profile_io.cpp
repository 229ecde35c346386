#include "planner/io/profile_io.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "planner/io/latency_io.h"
#include "planner/io/ppipe_csv.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/json/json.h"

namespace leat::planner {
namespace {

constexpr const char* kProfileSchema = "leat-profile/1";

ProfileRow row_from(const JsonCursor& c) {
  c.only({"class", "share", "batch", "blocks"});
  ProfileRow row;
  row.partition_class = c.at("class").text();
  row.share = static_cast<std::uint32_t>(c.integer_or("share", 1, 1, 4096));
  row.batch = static_cast<std::uint32_t>(c.at("batch").integer(1, 1 << 16));
  for (const auto& item : c.at("blocks").items()) row.blocks.push_back(latency_from(item));
  return row;
}

SizeRow size_from(const JsonCursor& c) {
  c.only({"class", "share", "width", "height", "latency"});
  SizeRow row;
  row.partition_class = c.at("class").text();
  row.share = static_cast<std::uint32_t>(c.integer_or("share", 1, 1, 4096));
  row.width = static_cast<std::uint32_t>(c.at("width").integer(1, 1 << 16));
  row.height = static_cast<std::uint32_t>(c.at("height").integer(1, 1 << 16));
  row.latency = latency_from(c.at("latency"));
  return row;
}

std::vector<std::int64_t> bytes_from(const JsonCursor& root, const char* key) {
  std::vector<std::int64_t> out;
  if (!root.has(key)) return out;
  for (const auto& item : root.at(key).items()) out.push_back(item.integer(0, INT64_MAX));
  return out;
}

std::string problem_of_row(const Profile& p, const ProfileRow& row) {
  if (row.blocks.size() != p.blocks) {
    return "has " + std::to_string(row.blocks.size()) + " block latencies; the model has " + std::to_string(p.blocks) +
           " blocks";
  }
  for (std::size_t k = 0; k < row.blocks.size(); ++k) {
    const Latency& l = row.blocks[k];
    if (l.p50_ns > 0 && l.p99_ns >= l.p50_ns) continue;
    return "block " + std::to_string(k) + " has p50_ns " + std::to_string(l.p50_ns) + " and p99_ns " +
           std::to_string(l.p99_ns) + "; latencies must be positive and p99 not below p50; measure again";
  }
  return {};
}

}  // namespace

std::string problem_of(const Profile& p) {
  if (p.model.empty()) return "model: empty; name the model";
  if (p.blocks < 1) return "blocks: must be 1 or more";
  if (p.boundary_bytes.size() + 1 != p.blocks) {
    return "boundary_bytes: has " + std::to_string(p.boundary_bytes.size()) + " entries; " + std::to_string(p.blocks) +
           " blocks have " + std::to_string(p.blocks - 1) + " cuts";
  }
  for (const auto b : p.boundary_bytes) {
    if (b < 0) return "boundary_bytes: negative";
  }
  if (!p.cuts.empty() && p.cuts.size() + 1 != p.blocks) return "cuts: needs one name for each cut, or none";
  if (std::any_of(p.cuts.begin(), p.cuts.end(),
                  [](const std::string& c) { return c.empty() || c.find_first_of("\t\n") != std::string::npos; }))
    return "cuts: a tensor's name is empty, or holds a tab or a line break";
  if (!p.block_memory_bytes.empty() && p.block_memory_bytes.size() != p.blocks)
    return "block_memory_bytes: needs one entry for each block, or none";
  if (p.rows.empty()) return "rows: empty; measure at least one (class, share) at batch 1";
  std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, std::size_t> seen;
  for (std::size_t i = 0; i < p.rows.size(); ++i) {
    const ProfileRow& row = p.rows[i];
    const std::string where = "rows[" + std::to_string(i) + "] (class '" + row.partition_class + "', share " +
                              std::to_string(row.share) + ", batch " + std::to_string(row.batch) + "): ";
    if (row.partition_class.empty() || row.share < 1 || row.batch < 1)
      return where + "needs a class, a share >= 1 and a batch >= 1";
    if (std::string problem = problem_of_row(p, row); !problem.empty()) return where + problem;
    const auto [it, fresh] = seen.emplace(std::make_tuple(row.partition_class, row.share, row.batch), i);
    if (!fresh) return where + "stands twice, first as rows[" + std::to_string(it->second) + "]; keep one";
  }
  for (const SizeRow& row : p.sizes) {
    if (row.partition_class.empty() || row.latency.p50_ns <= 0 || row.latency.p99_ns < row.latency.p50_ns)
      return "sizes (" + std::to_string(row.width) + "x" + std::to_string(row.height) +
             "): needs a class, and latencies that are positive with p99 not below p50; measure again";
  }
  for (const auto& [key, index] : seen) {
    if (seen.count(std::make_tuple(std::get<0>(key), std::get<1>(key), 1u)) != 0) continue;
    return "rows: class '" + std::get<0>(key) + "', share " + std::to_string(std::get<1>(key)) +
           " has no batch 1; measure it (larger batches may leave gaps, batch 1 may not be missing)";
  }
  return {};
}

Result<Profile> parse_profile(std::string_view json, const std::string& name) {
  JsonDocument document(name, json);
  const JsonCursor root = document.root();
  const std::string schema = root.at("schema").text();
  if (schema != kProfileSchema) root.at("schema").fail("is '" + schema + "'; this program reads " + kProfileSchema);
  root.only(
      {"schema", "model", "blocks", "boundary_bytes", "cuts", "block_memory_bytes", "rows", "sizes", "provenance"});
  Profile p;
  p.model = root.at("model").text();
  p.blocks = static_cast<std::uint32_t>(root.at("blocks").integer(1, 4096));
  p.boundary_bytes = bytes_from(root, "boundary_bytes");
  if (root.has("cuts")) {
    for (const auto& item : root.at("cuts").items()) p.cuts.push_back(item.text());
  }
  p.block_memory_bytes = bytes_from(root, "block_memory_bytes");
  for (const auto& item : root.at("rows").items()) p.rows.push_back(row_from(item));
  if (root.has("sizes")) {
    for (const auto& item : root.at("sizes").items()) p.sizes.push_back(size_from(item));
  }
  if (root.has("provenance")) {
    const JsonCursor c = root.at("provenance");
    c.only({"machine", "libraries", "date", "method", "model_sha256"});
    p.provenance = {c.text_or("machine", ""), c.text_or("libraries", ""), c.text_or("date", ""),
                    c.text_or("method", ""), c.text_or("model_sha256", "")};
  }
  if (document.failed()) return document.error();
  const std::string problem = problem_of(p);
  if (!problem.empty()) return Error{name + ": " + problem};
  return p;
}

Result<Profile> read_profile(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  return parse_profile(*text, path);
}

namespace {

Json json_of(const Latency& l) {
  Json out = {{"p50_ns", l.p50_ns}, {"p99_ns", l.p99_ns}, {"samples", l.samples}};
  if (l.spread_ns > 0) out["spread_ns"] = l.spread_ns;
  return out;
}

}  // namespace

std::string profile_to_json(const Profile& p) {
  Json out = {
      {"schema", kProfileSchema}, {"model", p.model}, {"blocks", p.blocks}, {"boundary_bytes", p.boundary_bytes}};
  if (!p.cuts.empty()) out["cuts"] = p.cuts;
  if (!p.block_memory_bytes.empty()) out["block_memory_bytes"] = p.block_memory_bytes;
  out["rows"] = Json::array();
  for (const ProfileRow& row : p.rows) {
    Json blocks = Json::array();
    for (const Latency& l : row.blocks) blocks.push_back(json_of(l));
    out["rows"].push_back(
        {{"class", row.partition_class}, {"share", row.share}, {"batch", row.batch}, {"blocks", blocks}});
  }
  for (const SizeRow& row : p.sizes)
    out["sizes"].push_back({{"class", row.partition_class},
                            {"share", row.share},
                            {"width", row.width},
                            {"height", row.height},
                            {"latency", json_of(row.latency)}});
  out["provenance"] = {{"machine", p.provenance.machine},
                       {"libraries", p.provenance.libraries},
                       {"date", p.provenance.date},
                       {"method", p.provenance.method}};
  if (!p.provenance.model_sha256.empty()) out["provenance"]["model_sha256"] = p.provenance.model_sha256;
  return out.dump(1) + "\n";
}

Status write_profile(const std::string& path, const Profile& profile) {
  return write_text_file(path, profile_to_json(profile));
}

Result<std::vector<Profile>> read_profiles(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_directory(directory, failed))
    return Error{directory + ": is no directory; name the one that holds the profiles"};
  if (fs::exists(directory + "/models.csv", failed)) return read_ppipe_profiles(directory);
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  if (failed) return Error{directory + ": cannot be listed: " + failed.message()};
  std::sort(paths.begin(), paths.end());
  std::map<std::string, Profile> by_model;
  for (const auto& path : paths) {
    auto profile = read_profile(path);
    if (!profile) return Error{profile.error()};
    const std::string model = profile->model;
    if (!by_model.emplace(model, std::move(*profile)).second)
      return Error{path + ": a second profile of model '" + model + "'; keep one"};
  }
  if (by_model.empty())
    return Error{directory + ": holds no profile (*.json, or models.csv of PPipe's format); run leat profile first"};
  std::vector<Profile> out;
  for (auto& [model, profile] : by_model) out.push_back(std::move(profile));
  return out;
}

}  // namespace leat::planner
