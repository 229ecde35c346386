#include "planner/io/plan_io.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/io/application_io.h"
#include "planner/io/latency_io.h"
#include "planner/io/partition_io.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/json/json.h"

namespace leat::planner {
namespace {

constexpr const char* kPlanSchema = "leat-plan/1";
constexpr std::int64_t kMany = 1'000'000'000;

std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

Partition named_partition_from(const JsonCursor& c) {
  c.only({"name", "kind", "class", "share", "size", "price", "watts", "memory_bytes", "device", "host", "selector"});
  Partition p = partition_from(c);
  p.name = c.at("name").text();
  p.device = u32(c.integer_or("device", 0, 0, kMany));
  return p;
}

Stage stage_from(const JsonCursor& c) {
  c.only({"first_block", "end_block", "pool", "latency_by_batch", "transfer_bytes"});
  Stage s;
  s.first_block = u32(c.integer_or("first_block", 0, 0, kMany));
  s.end_block = u32(c.integer_or("end_block", 1, 1, kMany));
  for (const auto& item : c.at("pool").items()) s.pool.push_back(u32(item.integer(0, kMany)));
  for (const auto& item : c.at("latency_by_batch").items()) s.latency_by_batch.push_back(latency_from(item));
  s.transfer_bytes = c.integer_or("transfer_bytes", 0, 0, INT64_MAX);
  return s;
}

Route route_from(const JsonCursor& c) {
  c.only({"application", "module", "batch", "rate_rps", "stages"});
  Route r;
  r.application = u32(c.at("application").integer(0, kMany));
  r.module = u32(c.at("module").integer(0, kMany));
  r.batch = u32(c.at("batch").integer(1, 1 << 16));
  r.rate_rps = c.number_or("rate_rps", 0, 0, kHuge);
  for (const auto& item : c.at("stages").items()) r.stages.push_back(stage_from(item));
  return r;
}

Certificate certificate_from(const JsonCursor& c) {
  c.only({"objective", "upper_bound", "gap", "binding", "method", "seconds"});
  Certificate out;
  out.objective = c.number_or("objective", 0, -kHuge, kHuge);
  out.upper_bound = c.number_or("upper_bound", 0, -kHuge, kHuge);
  out.gap = c.number_or("gap", 0, -kHuge, kHuge);
  out.binding = c.text_or("binding", "");
  out.method = c.text_or("method", "");
  out.seconds = c.number_or("seconds", 0, 0, kHuge);
  return out;
}

Plan plan_from(const JsonCursor& root) {
  Plan plan;
  for (const auto& item : root.at("partitions").items()) plan.partitions.push_back(named_partition_from(item));
  if (root.has("hosts")) {
    for (const auto& item : root.at("hosts").items()) {
      item.only({"up_gbps", "down_gbps"});
      plan.hosts.push_back({item.number_or("up_gbps", 0, 0, kHuge), item.number_or("down_gbps", 0, 0, kHuge)});
    }
  }
  for (const auto& item : root.at("routes").items()) plan.routes.push_back(route_from(item));
  if (root.has("budget_ns")) {
    for (const auto& row : root.at("budget_ns").items()) {
      plan.budget_ns.emplace_back();
      for (const auto& item : row.items()) plan.budget_ns.back().push_back(item.integer(0, INT64_MAX));
    }
  }
  if (root.has("certificate")) plan.certificate = certificate_from(root.at("certificate"));
  return plan;
}

Json to_json(const Application& a) {
  Json out = {{"name", a.name}, {"slo_ns", a.slo_ns}};
  if (a.rate_rps > 0) out["rate_rps"] = a.rate_rps;
  out["weight"] = a.weight;
  out["module"] = Json::array();
  for (const Module& m : a.modules) {
    Json after = Json::array();
    for (const auto before : m.after) after.push_back(a.modules[before].name);
    out["module"].push_back({{"name", m.name},
                             {"model", m.model},
                             {"after", after},
                             {"items_per_request", m.items_per_request},
                             {"fan_out_cap", m.fan_out_cap}});
  }
  return out;
}

Json to_json(const Partition& p) {
  Json out = {{"name", p.name},     {"kind", name_of(p.kind)}, {"class", p.partition_class},
              {"share", p.share},   {"size", p.size},          {"price", p.price},
              {"device", p.device}, {"host", p.host},          {"selector", p.selector}};
  if (p.watts > 0) out["watts"] = p.watts;
  if (p.memory_bytes > 0) out["memory_bytes"] = p.memory_bytes;
  return out;
}

Json to_json(const Route& r) {
  Json stages = Json::array();
  for (const Stage& s : r.stages) {
    Json latency = Json::array();
    for (const Latency& l : s.latency_by_batch) {
      latency.push_back({{"p50_ns", l.p50_ns}, {"p99_ns", l.p99_ns}, {"samples", l.samples}});
    }
    stages.push_back({{"first_block", s.first_block},
                      {"end_block", s.end_block},
                      {"pool", s.pool},
                      {"latency_by_batch", latency},
                      {"transfer_bytes", s.transfer_bytes}});
  }
  return {{"application", r.application},
          {"module", r.module},
          {"batch", r.batch},
          {"rate_rps", r.rate_rps},
          {"stages", stages}};
}

std::string problem_of_partitions(const Plan& plan) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < plan.partitions.size(); ++i) {
    const Partition& p = plan.partitions[i];
    const std::string where = "partitions[" + std::to_string(i) + "]";
    if (p.name.empty()) return where + ".name: empty; name it";
    if (!names.insert(p.name).second) return where + ".name: '" + p.name + "' stands twice; rename one";
    if (p.partition_class.empty()) return where + ".class: empty; name the class its profiles use";
    if (p.share < 1) return where + ".share: must be 1 or more";
    if (!(p.size > 0)) return where + ".size: must be positive";
    if (!plan.hosts.empty() && p.host >= plan.hosts.size()) {
      return where + ".host: is " + std::to_string(p.host) + ", but there are " + std::to_string(plan.hosts.size()) +
             " hosts";
    }
  }
  return {};
}

std::string problem_of_stage(const Plan& plan, const Route& r, std::size_t s, const std::string& where) {
  const Stage& stage = r.stages[s];
  const std::uint32_t expected = s == 0 ? 0 : r.stages[s - 1].end_block;
  if (stage.first_block != expected) {
    return where + ".first_block: is " + std::to_string(stage.first_block) + "; must be " + std::to_string(expected) +
           ", where the stage before ends";
  }
  if (stage.end_block <= stage.first_block) return where + ".end_block: must be larger than first_block";
  if (stage.pool.empty()) return where + ".pool: empty; a stage needs at least one partition";
  std::set<std::uint32_t> seen;
  for (const auto p : stage.pool) {
    if (p >= plan.partitions.size()) {
      return where + ".pool: names partition " + std::to_string(p) + ", but there are " +
             std::to_string(plan.partitions.size());
    }
    if (!seen.insert(p).second) return where + ".pool: names partition " + std::to_string(p) + " twice";
  }
  if (stage.latency_by_batch.size() != r.batch) {
    return where + ".latency_by_batch: has " + std::to_string(stage.latency_by_batch.size()) +
           " entries; needs one for each batch 1.." + std::to_string(r.batch);
  }
  for (const Latency& l : stage.latency_by_batch) {
    if (l.p50_ns <= 0 || l.p99_ns < l.p50_ns) return where + ".latency_by_batch: needs 0 < p50_ns <= p99_ns";
  }
  if (stage.transfer_bytes < 0) return where + ".transfer_bytes: negative";
  return {};
}

std::string problem_of_routes(const PlanFile& file) {
  for (std::size_t i = 0; i < file.plan.routes.size(); ++i) {
    const Route& r = file.plan.routes[i];
    const std::string where = "routes[" + std::to_string(i) + "]";
    if (r.application >= file.applications.size()) {
      return where + ".application: is " + std::to_string(r.application) + ", but there are " +
             std::to_string(file.applications.size());
    }
    if (r.module >= file.applications[r.application].modules.size()) {
      return where + ".module: is " + std::to_string(r.module) + ", but '" + file.applications[r.application].name +
             "' has " + std::to_string(file.applications[r.application].modules.size());
    }
    if (r.batch < 1) return where + ".batch: must be 1 or more";
    if (!(r.rate_rps >= 0)) return where + ".rate_rps: must not be negative";
    if (r.stages.empty()) return where + ".stages: empty; a route needs at least one";
    for (std::size_t s = 0; s < r.stages.size(); ++s) {
      const std::string problem = problem_of_stage(file.plan, r, s, where + ".stages[" + std::to_string(s) + "]");
      if (!problem.empty()) return problem;
    }
  }
  return {};
}

}  // namespace

std::string problem_of(const PlanFile& file) {
  for (const auto& a : file.applications) {
    if (std::string problem = problem_of(a); !problem.empty()) return problem;
  }
  if (std::string problem = problem_of_partitions(file.plan); !problem.empty()) return problem;
  if (std::string problem = problem_of_routes(file); !problem.empty()) return problem;
  const auto& budget = file.plan.budget_ns;
  if (budget.empty()) return {};
  if (budget.size() != file.applications.size())
    return "budget_ns: needs one list for each application, or none at all";
  for (std::size_t a = 0; a < budget.size(); ++a) {
    if (budget[a].size() != file.applications[a].modules.size()) {
      return "budget_ns[" + std::to_string(a) + "]: needs one budget for each module of '" + file.applications[a].name +
             "'";
    }
  }
  return {};
}

Result<PlanFile> parse_plan(std::string_view json, const std::string& name) {
  JsonDocument document(name, json);
  const JsonCursor root = document.root();
  root.only({"schema", "applications", "partitions", "hosts", "routes", "budget_ns", "certificate"});
  const std::string schema = root.at("schema").text();
  if (schema != kPlanSchema) root.at("schema").fail("is '" + schema + "'; this program reads " + kPlanSchema);
  PlanFile file;
  file.applications = applications_from(root.at("applications"));
  file.plan = plan_from(root);
  if (document.failed()) return document.error();
  const std::string problem = problem_of(file);
  if (!problem.empty()) return Error{name + ": " + problem};
  return file;
}

Result<PlanFile> read_plan(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  return parse_plan(*text, path);
}

std::string plan_to_json(const PlanFile& file) {
  Json out = {{"schema", kPlanSchema}};
  out["applications"] = Json::array();
  for (const auto& a : file.applications) out["applications"].push_back(to_json(a));
  out["partitions"] = Json::array();
  for (const auto& p : file.plan.partitions) out["partitions"].push_back(to_json(p));
  out["hosts"] = Json::array();
  for (const auto& h : file.plan.hosts) out["hosts"].push_back({{"up_gbps", h.up_gbps}, {"down_gbps", h.down_gbps}});
  out["routes"] = Json::array();
  for (const auto& r : file.plan.routes) out["routes"].push_back(to_json(r));
  if (!file.plan.budget_ns.empty()) out["budget_ns"] = file.plan.budget_ns;
  const Certificate& c = file.plan.certificate;
  out["certificate"] = {{"objective", c.objective}, {"upper_bound", c.upper_bound}, {"gap", c.gap},
                        {"binding", c.binding},     {"method", c.method},           {"seconds", c.seconds}};
  return out.dump(1) + "\n";
}

Status write_plan(const std::string& path, const PlanFile& file) { return write_text_file(path, plan_to_json(file)); }

}  // namespace leat::planner
