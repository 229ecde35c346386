// Linear constraints of the user's own on a plan, as a file states them (docs/guide/planning.md). Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "leat/result.hpp"

namespace leat::planner {

// Which modules and classes; an empty word: all.
struct Selection {
  std::string application, module, model, partition_class;
};

struct PlanConstraints {
  struct Memory {  // what a partition (by name, or each one of a class) may be filled with
    std::string partition, partition_class;
    std::int64_t at_most_bytes = 0;
    std::string place;
  };
  struct Apart {  // no two of these models on one class
    std::vector<std::string> models;
    std::string partition_class;  // empty: each
    std::string place;
  };
  struct Term {
    enum class Of : std::uint8_t { partitions, devices, used, rate };
    Of of = Of::partitions;
    Selection where;
    double times = 1;
    std::string place;
  };
  struct Row {
    std::vector<Term> terms;
    double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
    std::string place;  // "FILE:3: row: ", the beginning of a message
  };
  std::vector<Memory> memory;
  std::vector<Apart> apart;
  std::vector<Row> rows;  // [[partitions]] and [[row]], in this order
};

// TOML where the name ends in .toml, else JSON. Error: one line naming file, line (of TOML), key and what to do.
Result<PlanConstraints> parse_constraints(std::string_view text, const std::string& name);
Result<PlanConstraints> read_constraints(const std::string& path);

}  // namespace leat::planner
