// A profile: measured latency of a model's blocks by partition class, share and batch (PPipe section 5.1, PARIS section
// IV-A). Plain data; profile_io reads and writes the JSON schema of docs/guide/profiles.md and PPipe's CSV directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::planner {

struct Latency {
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;     // equals p50_ns where the source has one figure only
  std::uint32_t samples = 0;   // 0: not measured (analytic, or from a source that does not say)
  std::int64_t spread_ns = 0;  // between the first and the third quartile; 0: not known
};

// Latency of every block at one (class, share, batch).
struct ProfileRow {
  std::string partition_class;  // "cpu:1", "mig:1g.10gb", "V100", ...: free text, equal text = same class
  std::uint32_t share = 1;      // the partition is 1/share of its device, the other shares busy (PPipe's v)
  std::uint32_t batch = 1;      // items per batch
  std::vector<Latency> blocks;  // one per block; a stage's latency is the sum over its blocks
};

// One picture of a size of a model whose pictures vary; the largest is that of the rows.
struct SizeRow {
  std::string partition_class;
  std::uint32_t share = 1;
  std::uint32_t width = 0, height = 0;
  Latency latency;  // of the whole model
};

struct Provenance {
  std::string machine, libraries, date, method;
  std::string model_sha256;  // of the model's file; empty: not known
};

struct Profile {
  std::string model;
  std::uint32_t blocks = 1;
  std::vector<std::int64_t>
      boundary_bytes;  // blocks - 1 entries: bytes of one item crossing the cut before block c = 1..blocks-1
  std::vector<std::string>
      cuts;  // blocks - 1 names: the model's tensor that crosses there; empty: not known, nothing can be split
  std::vector<std::int64_t>
      block_memory_bytes;  // weights and work space of each block; empty: not known, no limit applies
  std::vector<ProfileRow> rows;
  std::vector<SizeRow> sizes;  // of each (class, share) all, smallest first, or none
  Provenance provenance;
};

}  // namespace leat::planner
