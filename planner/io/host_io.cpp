#include <algorithm>
#include <map>

#include "planner/build/cpu_host.h"
#include "planner/host.h"
#include "planner/io/partition_io.h"
#include "planner/profile_table.h"
#include "tools/base/cores/cores.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

constexpr const char* kHostSchema = "leat-host/1";

}  // namespace

double Host::gbps(std::uint32_t from, std::uint32_t to) const {
  if (from == to && !handovers.empty()) return 0;
  const auto known =
      std::find_if(handovers.begin(), handovers.end(), [&](const Handover& h) { return h.from == from && h.to == to; });
  return known != handovers.end() ? known->gbps : handover_gbps;
}

Result<Host> parse_host(std::string_view json, const std::string& name) {
  JsonDocument document(name, json);
  const JsonCursor root = document.root();
  root.only({"schema", "handover_gbps", "handover", "partitions"});
  if (root.at("schema").text() != kHostSchema) root.at("schema").fail(std::string("this program reads ") + kHostSchema);
  Host host;
  host.handover_gbps = root.number_or("handover_gbps", 0, 0, kHuge);
  std::uint32_t device = 0;
  for (const auto& c : root.at("partitions").items()) {
    c.only({"name", "kind", "class", "share", "size", "price", "watts", "memory_bytes", "device", "host", "selector",
            "count", "max_share"});
    HostPartition h{.partition = partition_from(c)};
    Partition& p = h.partition;
    h.max_share = static_cast<std::uint32_t>(c.integer_or("max_share", 1, 1, 64));
    if (h.max_share > 1 && p.share > 1)
      c.at("max_share").fail("a partition that is cut already (share > 1) cannot be cut further; give one of the two");
    const auto count = c.integer_or("count", 1, 1, 100'000);
    const std::string stem = c.text_or("name", p.partition_class);
    for (std::int64_t k = 0; k < count; ++k) {
      p.name = count == 1 && c.has("name") ? stem : stem + "/" + std::to_string(k);
      p.device = static_cast<std::uint32_t>(c.integer_or("device", device, 0, 1'000'000'000));
      ++device;
      host.partitions.push_back(h);
    }
  }
  if (host.partitions.empty()) root.at("partitions").fail("a host needs at least one partition");
  std::map<std::string, std::uint32_t> names;
  for (std::uint32_t k = 0; k < host.partitions.size(); ++k) {
    const std::string& own = host.partitions[k].partition.name;
    if (!names.emplace(own, k).second) root.at("partitions").fail("two partitions are named '" + own + "'; rename one");
  }
  if (root.has("handover")) {
    const auto named = [&names](const JsonCursor& c) {
      const auto found = names.find(c.text());
      if (found == names.end()) c.fail("there is no partition '" + c.text() + "'; name one of this file");
      return found == names.end() ? 0 : found->second;
    };
    for (const auto& c : root.at("handover").items()) {
      c.only({"from", "to", "gbps"});
      host.handovers.push_back({named(c.at("from")), named(c.at("to")), c.at("gbps").number(0, kHuge)});
    }
  }
  if (document.failed()) return document.error();
  return host;
}

Result<Host> read_host(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  return parse_host(*text, path);
}

Result<Host> this_host(std::uint32_t cores_each, std::span<const Application> applications,
                       std::span<const Profile> profiles) {
  const auto cores = usable_cores();
  if (!cores.ok()) return Error{cores.error()};
  const std::string partition_class = "cpu:" + std::to_string(cores_each);
  double min = kHuge;
  for (const Application& app : applications) {
    MeanItem mean;
    for (const Module& m : app.modules) {
      const auto profile = std::find_if(profiles.begin(), profiles.end(), [&](const Profile& p) {
        return p.model == (m.model.empty() ? m.name : m.model);
      });
      std::vector<Latency> latency;
      if (profile != profiles.end()) {
        const ProfileTable table(*profile);
        for (std::uint32_t b = 1; b <= table.largest_batch(partition_class, 1); ++b)
          latency.push_back({.p50_ns = table.p50_ns(partition_class, 1, b, 0, profile->blocks)});
      }
      mean.add(m.items_per_request, item_ns(latency));
    }
    min = std::min(min, mean.ns());
  }
  Host host;
  for (Partition& p : cpu_partitions(*cores, cores_each, min)) host.partitions.push_back({.partition = std::move(p)});
  return host;
}

}  // namespace leat::planner
