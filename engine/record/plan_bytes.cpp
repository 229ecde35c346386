#include "engine/record/plan_bytes.h"

#include <algorithm>
#include <cmath>

#include "engine/record/bytes.h"

namespace leat::record {
namespace {

using core::TimeNs;

constexpr std::size_t kMaxText = 256;
constexpr std::size_t kMaxList = 1 << 16;
constexpr TimeNs kMaxTimeNs = TimeNs{24} * 3600 * 1'000'000'000;
constexpr std::uint32_t kMaxLimit = 1 << 20;  // streams, requests, tasks, ...
constexpr std::uint32_t kMaxStreams = 4096;
constexpr double kMaxReal = 1e15;

// Each structure's fields stand once, in one order, for both ways.
class Out {
 public:
  template <class Number>
  void number(const Number& value) {
    to_.number(static_cast<std::uint64_t>(value));
  }
  void time(const TimeNs& value) { to_.time(value); }
  void real(const double& value) { to_.real(value); }
  void text(const std::string& value) { to_.text(value); }
  template <class T, class Each>
  void list(const std::vector<T>& values, Each&& each) {
    to_.number(values.size());
    for (const T& v : values) each(*this, v);
  }
  ByteWriter& to() { return to_; }

 private:
  ByteWriter to_;
};

class In {
 public:
  explicit In(std::span<const std::byte> bytes) : from_(bytes) {}
  template <class Number>
  void number(Number& value) {
    const std::uint64_t read = from_.number();
    value = static_cast<Number>(read);
    if (static_cast<std::uint64_t>(value) != read) from_.fail();
  }
  void number(bool& value) {
    const std::uint64_t read = from_.number();
    value = read != 0;
    if (read > 1) from_.fail();
  }
  void time(TimeNs& value) { value = from_.time(); }
  void real(double& value) {
    value = from_.real();
    if (!std::isfinite(value) || std::abs(value) > kMaxReal) from_.fail();
  }
  void text(std::string& value) {
    value = from_.text(kMaxText);
    std::erase_if(value, [](unsigned char c) { return c < 0x20 || c == 0x7f; });  // it may be printed
  }
  template <class T, class Each>
  void list(std::vector<T>& values, Each&& each) {
    values.resize(from_.count(1, kMaxList));
    for (T& v : values) {
      each(*this, v);
      if (!from_.ok()) return;
    }
  }
  [[nodiscard]] bool done() const { return from_.ok() && from_.left() == 0; }

 private:
  ByteReader from_;
};

constexpr auto kNumber = [](auto& io, auto& v) { io.number(v); };
constexpr auto kTime = [](auto& io, auto& v) { io.time(v); };
constexpr auto kText = [](auto& io, auto& v) { io.text(v); };

template <class Io, class Limits>
void walk_limits(Io& io, Limits& l) {
  for (auto* v : {&l.streams, &l.requests, &l.tasks, &l.batches, &l.partitions, &l.actions, &l.coordinated,
                  &l.applications, &l.modules})
    io.number(*v);
  io.number(l.samples);
}

template <class Io, class Policy>
void walk_policy(Io& io, Policy& p) {
  io.number(p.queue_ahead);
  io.time(p.ahead_within_ns);
  io.time(p.goes_on_within_ns);
  io.number(p.seed);
  io.number(p.batch_latency_share_permille);
  io.number(p.risk_permille);
  io.number(p.canaries);
  io.number(p.look_ahead);
  io.time(p.background_budget_ns);
  io.time(p.background_window_ns);
}

template <class Io, class Topology>
void walk_topology(Io& io, Topology& t) {
  io.list(t.applications, [](auto& o, auto& a) {
    o.time(a.slo_ns);
    o.real(a.rate_rps);
    o.number(a.weight);
    o.list(a.modules, kNumber);
    o.number(a.retired);
    o.number(a.heir);
  });
  io.list(t.modules, [](auto& o, auto& m) {
    o.number(m.application);
    o.list(m.before, kNumber);
    o.real(m.items_per_request);
    o.real(m.units_per_item);
    o.number(m.differs_in_size);
    o.number(m.fan_out_cap);
    o.time(m.budget_ns);
    o.list(m.routes, kNumber);
  });
  io.list(t.routes, [](auto& o, auto& r) {
    o.number(r.module);
    o.number(r.batch);
    o.real(r.rate_rps);
    o.list(r.stages, [](auto& s, auto& stage) {
      s.list(stage.pool, kNumber);
      s.list(stage.latency.p50_ns, kTime);
      s.list(stage.latency.p99_ns, kTime);
      s.time(stage.transfer_bytes);
      s.number(stage.overlap_permille);
    });
  });
  io.list(t.partitions, [](auto& o, auto& p) {
    o.real(p.size);
    o.real(p.price);
    o.number(p.device);
    o.number(p.host);
  });
  io.list(t.hosts, [](auto& o, auto& h) {
    o.real(h.up_bytes_per_ns);
    o.real(h.down_bytes_per_ns);
  });
}

template <class Io, class Names>
void walk_names(Io& io, Names& n) {
  io.list(n.applications, kText);
  io.list(n.modules, kText);
  io.list(n.partitions, kText);
  io.text(n.preset);
  io.list(n.settings, [](auto& o, auto& s) {
    o.text(s.first);
    o.text(s.second);
  });
}

template <class Io, class Plan>
void walk(Io& io, Plan& plan) {
  walk_names(io, plan.names);
  walk_limits(io, plan.limits);
  walk_policy(io, plan.policy);
  walk_topology(io, plan.topology);
}

bool within(TimeNs ns, TimeNs least = 0) { return ns >= least && ns <= kMaxTimeNs; }

// What Topology::problem() leaves to whoever made it, and what would let a core take any amount of memory.
bool sound(RecordedPlan& plan) {
  core::Topology& t = plan.topology;
  const core::Limits& l = plan.limits;
  if (t.partitions.size() > kMaxStreams || t.modules.size() > kMaxStreams || t.routes.size() > kMaxStreams ||
      t.applications.size() > kMaxStreams || l.streams > kMaxStreams || l.coordinated > kMaxStreams ||
      l.partitions > kMaxStreams || l.applications > kMaxStreams || l.modules > kMaxStreams || l.streams == 0 ||
      l.batches == 0 || l.requests == 0 || l.tasks == 0 ||
      std::max({l.requests, l.tasks, l.batches, l.actions}) > kMaxLimit)
    return false;
  const auto some_time = [](TimeNs ns) { return ns == core::kNever || within(ns); };
  const core::Policy& p = plan.policy;
  if (!some_time(p.ahead_within_ns) || !some_time(p.goes_on_within_ns) || !within(p.background_budget_ns) ||
      !within(p.background_window_ns, 1) || p.queue_ahead > kMaxStreams)
    return false;
  for (core::ModuleSpec& m : t.modules) m.after.clear();
  std::vector<std::uint8_t> listed(t.routes.size());
  for (std::size_t i = 0; i < t.modules.size(); ++i) {
    const core::ModuleSpec& m = t.modules[i];
    if (m.application >= t.applications.size() || !(m.items_per_request > 0 && m.items_per_request < 1e6) ||
        !(m.units_per_item > 0 && m.units_per_item < 1e6) || m.fan_out_cap > 1 << 16 || !within(m.budget_ns))
      return false;
    for (const core::ModuleId before : m.before) {
      if (before >= i) return false;
      t.modules[before].after.push_back(static_cast<core::ModuleId>(i));
    }
    for (const core::RouteId r : m.routes) {
      if (r >= t.routes.size() || t.routes[r].module != i || listed[r]++ != 0) return false;
    }
  }
  for (const core::ApplicationSpec& a : t.applications)
    if (!within(a.slo_ns, 1) || (a.heir != core::kNone && a.heir >= t.applications.size()) || a.rate_rps < 0)
      return false;
  for (const core::RouteSpec& r : t.routes) {
    if (r.rate_rps < 0) return false;
    for (const core::StageSpec& s : r.stages) {
      if (s.latency.p50_ns.size() > 16 * core::kMaxBatch || s.pool.size() > t.partitions.size() ||
          s.transfer_bytes > std::int64_t{1} << 40 || s.overlap_permille >= 1000)
        return false;
      for (const auto* table : {&s.latency.p50_ns, &s.latency.p99_ns})
        if (!std::ranges::all_of(*table, [](TimeNs ns) { return within(ns, 1); })) return false;
    }
  }
  return true;
}

std::string name_or(const std::vector<std::string>& names, std::uint32_t i, const char* kind) {
  return i < names.size() && !names[i].empty() ? names[i] : kind + std::to_string(i);
}

}  // namespace

std::string application_name(const RecordedPlan& plan, std::uint32_t application) {
  return name_or(plan.names.applications, application, "application ");
}
std::string module_name(const RecordedPlan& plan, core::ModuleId module) {
  return name_or(plan.names.modules, module, "module ");
}
std::string partition_name(const RecordedPlan& plan, core::PartitionId partition) {
  return name_or(plan.names.partitions, partition, "partition ");
}

std::string encode(const RecordedPlan& plan) {
  Out out;
  walk(out, plan);
  return out.to().take();
}

Result<RecordedPlan> decode_plan(std::span<const std::byte> bytes) {
  RecordedPlan plan;
  In in(bytes);
  walk(in, plan);
  if (!in.done()) return Error{"a plan in it is cut short or of another format"};
  if (!sound(plan)) return Error{"a plan in it is none that leatd can have made"};
  if (const std::string problem = plan.topology.problem(); !problem.empty())
    return Error{"a plan in it is not valid: " + problem};
  return plan;
}

}  // namespace leat::record
