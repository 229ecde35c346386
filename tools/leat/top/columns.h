// The figures of `leat top`: one table a pane. Screen, text, JSON and the help page all read it, so that a number has
// one name, one unit and one formula. Window figures (rates, percentiles, busy) are of the time between the last two
// samples; counts are since the record began. Unknown is empty, never zero.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tools/leat/top/sample.h"

namespace leat::tools {

enum class Pane : std::uint8_t { daemon, total, streams, modules, partitions, edges, users };
inline constexpr Pane kTables[] = {Pane::streams, Pane::modules, Pane::partitions, Pane::edges,
                                   Pane::users};  // panes of many rows

using Value = std::variant<std::monostate, double, std::string>;  // monostate: unknown

enum class Unit : std::uint8_t { text, count, rate, ms, us, percent, bytes, seconds };

struct Column {
  std::string_view name;   // in JSON
  std::string_view title;  // on the screen
  std::string_view text;   // what it is
  Unit unit;
  int width;  // on the screen; 0: in JSON only
  int rank;   // the higher, the earlier it gives way on a narrow screen; 0 never
  Value (*value)(const Window& window, const shm::RecordSnapshot& record, const shm::RecordSnapshot* before);
};

[[nodiscard]] std::span<const Column> columns_of(Pane pane);
[[nodiscard]] std::string_view name_of(Pane pane);  // "streams"
[[nodiscard]] std::span<const shm::RecordSnapshot> records_of(Pane pane, const Sample& sample);
[[nodiscard]] std::string shown(const Value& value, Unit unit);  // "-" when unknown

// Answers given up, by reason, from the total record: name and count, most first.
struct ReasonCount {
  std::string_view name, text;
  std::uint64_t count = 0;
};
[[nodiscard]] std::vector<ReasonCount> reasons(const Sample& sample);

// Everything as one JSON object: daemon{}, total{.., reasons{}}, streams[], modules[], partitions[], edges[],
// users[{.., refusals{}, violations{}}], window_seconds.
[[nodiscard]] std::string top_json(const Window& window);
[[nodiscard]] std::string users_json(const Window& window);  // its list of users alone
// The columns with their meaning, for `--columns` and the help page.
[[nodiscard]] std::string column_help();

}  // namespace leat::tools
