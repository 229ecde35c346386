#include "engine/daemon/changes/arrangement.h"

#include <algorithm>
#include <set>

#include "engine/daemon/deployment/worker_setups.h"
#include "shm/src/counters/counters.h"

namespace leat::daemon {
namespace {

constexpr std::size_t kMaxModules = shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::module)];

void add(std::string& to, const std::string& word) { to += std::to_string(word.size()) + ":" + word; }

// One session of a module, as it answers.
void add_session(std::string& to, const worker::ModuleSetup& m) {
  add(to, m.executor);
  if (m.files.empty()) add(to, m.model_path);
  for (const exec::ModelFile& f : m.files) add(to, f.location), add(to, f.sha256);
  for (const std::string* word : {&m.as, &m.preprocess, &m.postprocess}) add(to, *word);
  for (const std::string& l : m.labels) add(to, l);
  for (const auto& [key, value] : m.extra) add(to, key), add(to, value);
}

void add_module(std::string& to, const planner::Module& m) {
  add(to, m.name);
  add(to, std::to_string(m.fan_out_cap));
  for (const auto before : m.after) add(to, std::to_string(before));
}

}  // namespace

bool same_worker(worker::Setup a, worker::Setup b) {
  for (worker::Setup* s : {&a, &b}) {
    s->calibrate = s->alone_only = false;
    s->yields = 0;
    s->device.environment.clear();
    for (worker::EdgeSetup& e : s->edges) e.make = false;
  }
  return worker::encode(a) == worker::encode(b);
}

std::vector<std::string> identities(const Config& config, const Deployment& d) {
  std::vector<std::string> out(config.applications.size());
  for (std::uint32_t a = 0; a < out.size(); ++a) {
    const ApplicationConfig& app = config.applications[a];
    if (app.retired) continue;
    for (std::uint32_t m = 0; m < app.modules.size(); ++m) {
      add_module(out[a], app.application.modules[m]);
      const worker::ModuleSetup* found = nullptr;
      for (std::uint32_t p = 0; p < d.setups.size() && found == nullptr; ++p)
        if (const auto s = d.session_of[p][d.first_module[a] + m]; s != UINT32_MAX) found = &d.setups[p].modules[s];
      if (found != nullptr) add_session(out[a], *found);
    }
  }
  return out;
}

Result<Arrangement> arrange(const Config& running, std::span<const std::string> running_identity, const Config& wanted,
                            std::span<const std::string> identity) {
  Arrangement out{.config = wanted, .heirs = {}, .retiring = {}};
  std::vector<ApplicationConfig> applications = running.applications;
  for (ApplicationConfig& a : applications) a.retired = true;
  std::size_t modules = 0;
  for (const ApplicationConfig& a : applications) modules += a.modules.size();
  const auto is_free = [&](std::uint32_t n, const ApplicationConfig& app) {
    return running.applications[n].retired && applications[n].retired &&
           applications[n].modules.size() == app.modules.size();
  };
  for (std::size_t w = 0; w < wanted.applications.size(); ++w) {
    const ApplicationConfig& app = wanted.applications[w];
    const auto before = std::ranges::find_if(running.applications, [&](const ApplicationConfig& r) {
      return !r.retired && r.application.name == app.application.name;
    });
    const auto old = static_cast<std::uint32_t>(before - running.applications.begin());
    if (before != running.applications.end() && running_identity[old] == identity[w]) {
      applications[old] = app;
      continue;
    }
    std::uint32_t number = 0;
    while (number < running.applications.size() && !is_free(number, app)) ++number;
    if (number == running.applications.size()) {
      number = static_cast<std::uint32_t>(applications.size());
      applications.emplace_back();
      modules += app.modules.size();
    }
    applications[number] = app;
    if (before != running.applications.end()) out.heirs.push_back({old, number});
  }
  if (modules > kMaxModules)
    return Error{wanted.file + ": there is no number left for another application, of " + std::to_string(kMaxModules) +
                 " modules since leatd started; restart it"};
  for (std::uint32_t a = 0; a < running.applications.size(); ++a) {
    if (!applications[a].retired || running.applications[a].retired) continue;
    applications[a].application.rate_rps = 0;
    applications[a].expected.clear();
    out.retiring.push_back(a);
  }
  out.config.applications = std::move(applications);
  return out;
}

Result<std::vector<std::uint8_t>> give_slots(const Deployment& running, Deployment& wanted, std::uint32_t slots) {
  std::set<std::uint32_t> taken(running.slots.begin(), running.slots.end());
  std::vector<std::uint8_t> fresh(wanted.partitions.size(), 1);
  std::uint32_t next = 0;
  for (std::uint32_t p = 0; p < wanted.partitions.size(); ++p) {
    for (std::uint32_t q = 0; q < running.partitions.size(); ++q) {
      if (running.partitions[q].partition.name != wanted.partitions[p].partition.name) continue;
      if (!same_worker(running.setups[q], wanted.setups[p]) ||
          (wanted.setups[p].calibrate && !running.setups[q].calibrate))
        continue;
      fresh[p] = 0;
      wanted.slots[p] = running.slots[q];
    }
    if (fresh[p] == 0) continue;
    while (next + 1 < slots && taken.contains(next)) ++next;
    if (next + 1 >= slots)
      return Error{"there is no room for " + std::to_string(wanted.partitions.size()) +
                   " workers beside those that run; change fewer partitions at once, or restart leatd"};
    wanted.slots[p] = next;
    taken.insert(next);
  }
  return fresh;
}

std::vector<std::vector<std::uint32_t>> waves_of(std::span<const std::uint8_t> fresh) {
  const std::size_t most = std::max<std::size_t>(1, fresh.size() / 4);
  std::vector<std::vector<std::uint32_t>> out;
  for (std::uint32_t p = 0; p < fresh.size(); ++p) {
    if (fresh[p] == 0) continue;
    if (out.empty() || out.back().size() == most) out.emplace_back();
    out.back().push_back(p);
  }
  return out;
}

Status number_edges(std::span<const FeatureEdge> running, Deployment& wanted) {
  std::set<std::uint32_t> taken;
  for (const FeatureEdge& e : running) taken.insert(e.number);
  std::uint32_t next = 0;
  for (FeatureEdge& e : wanted.edges) {
    const auto same = std::ranges::find_if(running, [&](const FeatureEdge& r) {
      return r.application == e.application && r.module == e.module && r.boundary == e.boundary && r.place == e.place &&
             r.spec.rows == e.spec.rows && r.spec.scrap == e.spec.scrap && r.spec.row_bytes == e.spec.row_bytes;
    });
    if (same != running.end()) {
      e.number = same->number;
      continue;
    }
    while (taken.contains(next)) ++next;
    if (next >= shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::edge)])
      return Error{"there is no room for the features of both plans; at most 128 places between stages"};
    e.number = next;
    taken.insert(next);
  }
  for (worker::Setup& setup : wanted.setups)
    for (worker::EdgeSetup& e : setup.edges) e.edge = wanted.edges[e.edge].number;
  return Done{};
}

}  // namespace leat::daemon
