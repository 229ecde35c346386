#include "planner/build/constraint_rows.h"

#include <algorithm>
#include <set>

namespace leat::planner {
namespace {

struct Dnn {
  std::string application, module, model;
};

class Rows {
 public:
  Rows(const std::vector<Application>& applications, const HostTypes& types) : types_(types) {
    for (const Application& a : applications)
      for (const Module& m : a.modules) dnns_.push_back({a.name, m.name, m.model});
    for (const GpuType& t : types.types) classes_.insert(t.name);
    for (const Dnn& d : dnns_) applications_.insert(d.application), modules_.insert(d.module), models_.insert(d.model);
  }

  Result<std::vector<MilpRow>> all(const PlanConstraints& constraints) {
    for (const PlanConstraints::Apart& a : constraints.apart) apart(a);
    for (const PlanConstraints::Row& r : constraints.rows) {
      MilpRow out{{}, r.min, r.max};
      for (const PlanConstraints::Term& t : r.terms) term(t, out);
      rows_.push_back(std::move(out));
    }
    if (!error_.empty()) return Error{error_};
    return std::move(rows_);
  }

 private:
  void known(const std::string& place, const char* what, const std::string& name, const std::set<std::string>& names) {
    if (name.empty() || names.contains(name) || !error_.empty()) return;
    std::string list;
    for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
    error_ = place + "there is no " + what + " '" + name + "'; use one of: " + list;
  }

  void term(const PlanConstraints::Term& t, MilpRow& out) {
    const Selection& s = t.where;
    known(t.place, "application", s.application, applications_);
    known(t.place, "module", s.module, modules_);
    known(t.place, "model", s.model, models_);
    known(t.place, "class", s.partition_class, classes_);
    const bool rate = t.of == PlanConstraints::Term::Of::rate;
    const std::size_t before = out.terms.size();
    for (std::uint32_t d = 0; d < dnns_.size(); ++d) {
      if ((!s.application.empty() && s.application != dnns_[d].application) ||
          (!s.module.empty() && s.module != dnns_[d].module) || (!s.model.empty() && s.model != dnns_[d].model))
        continue;
      for (std::uint32_t g = 0; g < (rate ? 1 : types_.types.size()); ++g)
        if (rate || s.partition_class.empty() || types_.types[g].name == s.partition_class)
          out.terms.push_back({static_cast<MilpTerm::Of>(t.of), d, g, t.times});
    }
    if (out.terms.size() == before && error_.empty())
      error_ = t.place + "no module is meant by all of its words together; leave one out";
  }

  void apart(const PlanConstraints::Apart& a) {
    for (const std::string& m : a.models) known(a.place, "model", m, models_);
    known(a.place, "class", a.partition_class, classes_);
    const auto listed = [&](const std::string& model) {
      return std::find(a.models.begin(), a.models.end(), model) != a.models.end();
    };
    for (std::uint32_t x = 0; x < dnns_.size(); ++x) {
      for (std::uint32_t y = x + 1; y < dnns_.size(); ++y) {
        if (dnns_[x].model == dnns_[y].model || !listed(dnns_[x].model) || !listed(dnns_[y].model)) continue;
        for (std::uint32_t g = 0; g < types_.types.size(); ++g)
          for (std::uint32_t h = 0; h < types_.types.size(); ++h)
            if (types_.types[g].name == types_.types[h].name &&
                (a.partition_class.empty() || a.partition_class == types_.types[g].name))
              rows_.push_back({.terms = {{MilpTerm::Of::used, x, g, 1}, {MilpTerm::Of::used, y, h, 1}}, .max = 1});
      }
    }
  }

  const HostTypes& types_;
  std::vector<Dnn> dnns_;
  std::set<std::string> classes_, applications_, modules_, models_;
  std::vector<MilpRow> rows_;
  std::string error_;
};

}  // namespace

Status limit_memory(const PlanConstraints& constraints, Host& host) {
  for (const PlanConstraints::Memory& m : constraints.memory) {
    bool any = false;
    for (HostPartition& h : host.partitions) {
      Partition& p = h.partition;
      if (m.partition.empty() ? p.partition_class != m.partition_class : p.name != m.partition) continue;
      any = true;
      p.memory_bytes = p.memory_bytes == 0 ? m.at_most_bytes : std::min(p.memory_bytes, m.at_most_bytes);
    }
    if (!any)
      return Error{m.place + "the host has no " +
                   (m.partition.empty() ? "class '" + m.partition_class : "partition '" + m.partition) +
                   "'; name one of its file (or of leat doctor)"};
  }
  return Done{};
}

Result<std::vector<MilpRow>> rows_of(const PlanConstraints& constraints, const std::vector<Application>& applications,
                                     const HostTypes& types) {
  return Rows(applications, types).all(constraints);
}

}  // namespace leat::planner
