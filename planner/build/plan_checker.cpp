#include "planner/build/plan_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "planner/build/latency_budget.h"

namespace leat::planner {
namespace {

// p50 and p99 of blocks [first, end), from the rows alone; a batch between two measured ones lies between them.
bool profiled(const Profile& profile, const Partition& at, const Stage& stage, std::uint32_t batch, Latency& min,
              Latency& max) {
  const ProfileRow* below = nullptr;
  const ProfileRow* above = nullptr;
  for (const ProfileRow& r : profile.rows) {
    if (r.partition_class != at.partition_class || r.share != at.share) continue;
    if (r.batch <= batch && (below == nullptr || r.batch > below->batch)) below = &r;
    if (r.batch >= batch && (above == nullptr || r.batch < above->batch)) above = &r;
  }
  if (below == nullptr || above == nullptr || stage.end_block > profile.blocks) return false;
  min = max = {};
  for (std::uint32_t k = stage.first_block; k < stage.end_block; ++k) {
    const Latency &a = below->blocks[k], &b = above->blocks[k];
    min.p50_ns += std::min(a.p50_ns, b.p50_ns), max.p50_ns += std::max(a.p50_ns, b.p50_ns);
    min.p99_ns += std::min(a.p99_ns, b.p99_ns), max.p99_ns += std::max(a.p99_ns, b.p99_ns);
  }
  return true;
}

class PromiseChecker {
 public:
  PromiseChecker(const PlanFile& file, const std::vector<Profile>& profiles) : file_(file) {
    for (const Profile& p : profiles) by_model_[p.model] = &p;
  }

  std::string check() {
    for (std::size_t r = 0; r < file_.plan.routes.size() && text_.str().empty(); ++r) check_route(r);
    if (text_.str().empty()) check_devices();
    if (text_.str().empty()) check_work();
    if (text_.str().empty()) check_memory();
    for (std::size_t a = 0; a < file_.applications.size() && text_.str().empty(); ++a) check_application(a);
    return text_.str();
  }

 private:
  void check_route(std::size_t index) {
    const Route& route = file_.plan.routes[index];
    const Module& module = file_.applications[route.application].modules[route.module];
    const std::string where = "routes[" + std::to_string(index) + "] (" + module.name + ")";
    const auto it = by_model_.find(module.model);
    if (it == by_model_.end()) {
      text_ << where << ": no profile of model '" << module.model << "'";
      return;
    }
    const Profile& profile = *it->second;
    if (route.stages.back().end_block != profile.blocks) {
      text_ << where << ": ends at block " << route.stages.back().end_block << " of " << profile.blocks;
      return;
    }
    double latency_us = 0;
    for (std::size_t s = 0; s < route.stages.size(); ++s) {
      const Stage& stage = route.stages[s];
      for (const auto p : stage.pool) {
        work_[p] += route.rate_rps * request_ns(route, stage) / 1e9 / static_cast<double>(stage.pool.size());
        check_stage(where + ", stage " + std::to_string(s), profile, route, stage, file_.plan.partitions[p]);
        if (!text_.str().empty()) return;
      }
      const double rate = static_cast<double>(stage.pool.size()) * 1e9 / request_ns(route, stage);
      if (rate < route.rate_rps * (1 - 1e-6)) {
        text_ << where << ", stage " << s << ": carries " << rate << " of " << route.rate_rps << " requests per second";
        return;
      }
      latency_us += static_cast<double>(stage.latency_by_batch.back().p99_ns) / 1000;
      const Partition& first = file_.plan.partitions[stage.pool[0]];
      const double gbps = file_.plan.hosts.empty() ? 0 : file_.plan.hosts[first.host].up_gbps;
      if (gbps > 0) latency_us += static_cast<double>(stage.transfer_bytes) * 8 * route.batch / (gbps * 1000);
    }
    double& worst = slowest_us_[{route.application, route.module}];
    worst = std::max(worst, latency_us);
  }

  // What a request takes of a partition's time. A module that runs whole may run any batch up to the route's, so also
  // the one that costs least; the stages of a pipeline run what the first of them has formed.
  static double request_ns(const Route& route, const Stage& stage) {
    double min = static_cast<double>(stage.latency_by_batch.back().p50_ns) / route.batch;
    for (std::uint32_t b = 1; b < route.batch && route.stages.size() == 1; ++b)
      min = std::min(min, static_cast<double>(stage.latency_by_batch[b - 1].p50_ns) / b);
    return min;
  }

  void check_stage(const std::string& where, const Profile& profile, const Route& route, const Stage& stage,
                   const Partition& at) {
    for (std::uint32_t b = 1; b <= route.batch; ++b) {
      Latency min, max;
      if (!profiled(profile, at, stage, b, min, max)) {
        text_ << where << ": '" << profile.model << "' has no profile of batch " << b << " on class '"
              << at.partition_class << "', share " << at.share;
        return;
      }
      const Latency& planned = stage.latency_by_batch[b - 1];
      const std::int64_t slack = profile.blocks + 1;  // rounding of what lies between two measured batches
      if (planned.p50_ns < min.p50_ns - slack || planned.p50_ns > max.p50_ns + slack ||
          planned.p99_ns < min.p99_ns - slack || planned.p99_ns > max.p99_ns + slack) {
        text_ << where << ": states " << planned.p50_ns << " ns for batch " << b << "; the profile says " << max.p50_ns;
        return;
      }
    }
  }

  // Shares cut from one device add up to one at most; a device given whole is given once.
  void check_devices() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> given;
    for (const Partition& p : file_.plan.partitions) {
      double& sum = given[{p.host, p.device}];
      sum += 1.0 / p.share;
      if (sum > 1 + 1e-9) {
        text_ << "device " << p.device << ": its partitions (the last is '" << p.name << "') add up to " << sum
              << " of it";
        return;
      }
    }
  }

  // Stages that share partitions in time: their planned rates, spread evenly over their pools, leave no partition more
  // work than time.
  void check_work() {
    const auto worst =
        std::max_element(work_.begin(), work_.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
    if (worst != work_.end() && worst->second > 1 + 1e-6)
      text_ << "partition '" << file_.plan.partitions[worst->first].name << "': its stages need " << worst->second
            << " of its time";
  }

  // A partition holds every block range that a route runs there once, however many routes do.
  void check_memory() {
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> held;
    std::vector<std::int64_t> bytes(file_.plan.partitions.size(), 0);
    for (const Route& route : file_.plan.routes) {
      const Profile& profile = *by_model_.at(file_.applications[route.application].modules[route.module].model);
      for (const Stage& stage : route.stages)
        for (const auto p : stage.pool)
          if (held.emplace(p, route.application, route.module, stage.first_block, stage.end_block).second)
            for (std::uint32_t k = stage.first_block; k < stage.end_block && !profile.block_memory_bytes.empty(); ++k)
              bytes[p] += profile.block_memory_bytes[k];
    }
    for (std::size_t p = 0; p < bytes.size(); ++p) {
      const Partition& at = file_.plan.partitions[p];
      if (at.memory_bytes == 0 || bytes[p] <= at.memory_bytes) continue;
      text_ << "partition '" << at.name << "': its models need " << bytes[p] << " bytes; it has " << at.memory_bytes;
      return;
    }
  }

  void check_application(std::size_t a) {
    const Application& app = file_.applications[a];
    std::vector<double> need;
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      const auto it = slowest_us_.find({static_cast<std::uint32_t>(a), m});
      if (it == slowest_us_.end()) {
        text_ << "application '" << app.name << "': module '" << app.modules[m].name << "' has no route";
        return;
      }
      need.push_back(it->second);
    }
    const double longest = longest_path(app, need) / 1000, slo = static_cast<double>(app.slo_ns) / 1e6;
    if (longest > slo)
      text_ << "application '" << app.name << "': its longest path takes " << longest << " ms of " << slo;
  }

  const PlanFile& file_;
  std::map<std::string, const Profile*> by_model_;
  std::map<std::uint32_t, double> work_;  // by partition
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> slowest_us_;
  std::ostringstream text_;
};

}  // namespace

std::string broken_promise(const PlanFile& file, const std::vector<Profile>& profiles) {
  return PromiseChecker(file, profiles).check();
}

}  // namespace leat::planner
