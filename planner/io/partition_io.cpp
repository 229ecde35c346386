#include "planner/io/partition_io.h"

namespace leat::planner {

Partition partition_from(const JsonCursor& c) {
  Partition p;
  const std::string kind = c.at("kind").text();
  if (const auto known = kind_named(kind))
    p.kind = *known;
  else
    c.at("kind").fail("'" + kind + "' is no kind of partition; use " +
                      kind_names([](const PartitionKindRow&) { return true; }));
  p.partition_class = c.at("class").text();
  p.share = static_cast<std::uint32_t>(c.integer_or("share", 1, 1, 4096));
  p.size = c.number_or("size", 1, 1e-9, kHuge);
  p.price = c.number_or("price", 1, 0, kHuge);
  p.watts = c.number_or("watts", 0, 0, kHuge);
  p.memory_bytes = c.integer_or("memory_bytes", 0, 0, INT64_MAX);
  p.host = static_cast<std::uint32_t>(c.integer_or("host", 0, 0, 1'000'000'000));
  p.selector = c.text_or("selector", "");
  return p;
}

}  // namespace leat::planner
