#include "planner/io/ppipe_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include "planner/io/profile_io.h"
#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

constexpr double kMinUs = 1;  // PPipe raises smaller block latencies to this

// A CSV file without quoting: the header names the columns, in any order.
struct Table {
  std::string path;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;

  std::string where(std::size_t row) const { return path + ":" + std::to_string(row + 2) + ": "; }
};

std::vector<std::string> cells(std::string_view line) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t comma = line.find(',');
    out.emplace_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    line.remove_prefix(comma + 1);
  }
}

Result<Table> read_table(const std::string& path, const std::vector<std::string>& columns) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  Table all{path, {}, {}};
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    (all.header.empty() ? all.header : all.rows.emplace_back()) = cells(line);
    if (!all.rows.empty() && all.rows.back().size() != all.header.size()) {
      return Error{all.where(all.rows.size() - 1) + "has " + std::to_string(all.rows.back().size()) +
                   " columns; the header has " + std::to_string(all.header.size())};
    }
  }
  Table out{path, columns, {}};
  out.rows.resize(all.rows.size());
  for (const auto& name : columns) {
    const auto it = std::find(all.header.begin(), all.header.end(), name);
    if (it == all.header.end()) return Error{path + ":1: column '" + name + "' is missing; this is not PPipe's format"};
    const auto c = static_cast<std::size_t>(it - all.header.begin());
    for (std::size_t r = 0; r < all.rows.size(); ++r) out.rows[r].push_back(all.rows[r][c]);
  }
  return out;
}

bool number(const std::string& text, double& out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size() && std::isfinite(out);
}

bool whole(const std::string& text, std::int64_t min, std::int64_t max, std::int64_t& out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size() && out >= min && out <= max;
}

Status read_latencies(const std::string& path, Profile& profile) {
  const auto table = read_table(path, {"gpu", "mps_denominator", "batch", "block", "latency_us"});
  if (!table) return Error{table.error()};
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::size_t> rows;
  for (std::size_t r = 0; r < table->rows.size(); ++r) {
    const auto& cell = table->rows[r];
    std::int64_t share = 0, batch = 0, block = 0;
    double us = 0;
    if (cell[0].empty() || !whole(cell[1], 1, 64, share) || !whole(cell[2], 1, 4096, batch) ||
        !whole(cell[3], 0, static_cast<std::int64_t>(profile.blocks) - 1, block) || !number(cell[4], us) || us < 0) {
      return Error{table->where(r) + "a value is missing, negative or out of range; correct it"};
    }
    const auto [it, fresh] = rows.emplace(std::make_tuple(cell[0], share, batch), profile.rows.size());
    if (fresh) {
      profile.rows.push_back({cell[0], static_cast<std::uint32_t>(share), static_cast<std::uint32_t>(batch), {}});
      profile.rows.back().blocks.resize(profile.blocks);
    }
    Latency& latency = profile.rows[it->second].blocks[static_cast<std::size_t>(block)];
    if (latency.p50_ns != 0) return Error{table->where(r) + "this block stands twice; keep one"};
    latency.p50_ns = latency.p99_ns = std::llround(std::max(us, kMinUs) * 1000);
  }
  return Done{};
}

}  // namespace

Result<std::vector<Profile>> read_ppipe_profiles(const std::string& directory) {
  const auto models = read_table(directory + "/models.csv", {"model", "blocks"});
  if (!models) return Error{models.error()};
  std::map<std::string, Profile> by_model;
  for (std::size_t r = 0; r < models->rows.size(); ++r) {
    const auto& cell = models->rows[r];
    std::int64_t blocks = 0;
    if (!whole(cell[1], 1, 4096, blocks)) return Error{models->where(r) + "blocks must be a whole number >= 1"};
    Profile& p = by_model[cell[0]];
    if (!p.model.empty()) return Error{models->where(r) + "model '" + cell[0] + "' stands twice; keep one"};
    p.model = cell[0];
    p.blocks = static_cast<std::uint32_t>(blocks);
    p.boundary_bytes.assign(p.blocks - 1, -1);
    p.provenance.method = "PPipe's artifact: block timings";
  }
  const auto cuts = read_table(directory + "/boundaries.csv", {"model", "cut", "bytes"});
  if (!cuts) return Error{cuts.error()};
  for (std::size_t r = 0; r < cuts->rows.size(); ++r) {
    const auto& cell = cuts->rows[r];
    const auto it = by_model.find(cell[0]);
    if (it == by_model.end()) return Error{cuts->where(r) + "model '" + cell[0] + "' is not in models.csv"};
    std::int64_t cut = 0, bytes = 0;
    if (!whole(cell[1], 1, static_cast<std::int64_t>(it->second.blocks) - 1, cut) ||
        !whole(cell[2], 0, INT64_MAX, bytes)) {
      return Error{cuts->where(r) + "cut or bytes out of range; correct it"};
    }
    it->second.boundary_bytes[static_cast<std::size_t>(cut - 1)] = bytes;
  }
  std::vector<Profile> out;
  for (auto& [name, profile] : by_model) {
    const std::string path = directory + "/profiles/" + name + ".csv";
    const Status read = read_latencies(path, profile);
    if (!read) return Error{read.error()};
    if (const std::string problem = problem_of(profile); !problem.empty()) return Error{path + ": " + problem};
    out.push_back(std::move(profile));
  }
  return out;
}

}  // namespace leat::planner
