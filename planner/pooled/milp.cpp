#include "planner/pooled/milp.h"

#include <glpk.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "planner/pooled/candidates.h"
#include "planner/pooled/solver.h"
#include "tools/base/subprocess/run.h"

namespace leat::planner {
namespace {

using Clock = std::chrono::steady_clock;
using Program = std::unique_ptr<glp_prob, void (*)(glp_prob*)>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::chrono::milliseconds kGrace{3000};  // for what GLPK does between two looks at its clock

// A candidate as columns: its rate, and its virtual GPUs stage by stage.
struct Use {
  std::uint32_t dnn = 0, slot = 0, candidate = 0;
  int rate = 0;
  int count[kMaxStages] = {};
};

class Statement {
 public:
  Statement(const PooledProblem& problem, const MilpRules& rules, const std::vector<std::vector<Slot>>& slots)
      : problem_(problem), rules_(rules), slots_(slots), program_(glp_create_prob(), glp_delete_prob) {}

  glp_prob* program() { return program_.get(); }
  const std::vector<Use>& uses() const { return uses_; }

  // maximise z: weight z <= sum of rates; rate <= count x rate of a virtual GPU; counts within the devices.
  void state(std::span<const MilpRow> rows) {
    glp_set_obj_dir(program(), GLP_MAX);
    const int z = column(GLP_CV, kInfinity);
    glp_set_obj_coef(program(), z, 1);
    if (rules_.known > 0) glp_set_col_bnds(program(), z, GLP_LO, rules_.known * (1 + 1e-6), 0);
    for (const GpuType& t : problem_.types) devices_.push_back(row(-kInfinity, t.count));
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      const int rates = row(-kInfinity, 0);
      add(rates, z, problem_.dnns[i].weight);
      for (std::uint32_t s = 0; s < slots_[i].size(); ++s) slot(i, s, rates);
    }
    if (rules_.free) {
      for (const auto& [pool, members] : pools_) held(devices_[std::get<2>(pool)], members);
    } else {
      whole_devices();
    }
    for (const MilpRow& r : rows) {
      const int own = row(r.min, r.max);
      std::map<int, double> terms;
      for (const MilpTerm& t : r.terms) term(r, t, terms);
      for (const auto& [c, value] : terms) add(own, c, value);
    }
    glp_load_matrix(program(), static_cast<int>(row_.size()) - 1, row_.data(), column_.data(), value_.data());
  }

 private:
  struct Held {
    int column;
    double part;        // of a device
    double partitions;  // a whole device's are its virtual GPUs
  };

  int column(int kind, double upper) {
    const int c = glp_add_cols(program(), 1);
    glp_set_col_kind(program(), c, kind);
    glp_set_col_bnds(program(), c, std::isfinite(upper) ? GLP_DB : GLP_LO, 0, upper);
    return c;
  }
  int row(double lower, double upper) {
    const int r = glp_add_rows(program(), 1);
    const int kind = std::isinf(lower)   ? std::isinf(upper) ? GLP_FR : GLP_UP
                     : std::isinf(upper) ? GLP_LO
                     : lower < upper     ? GLP_DB
                                         : GLP_FX;
    glp_set_row_bnds(program(), r, kind, std::isinf(lower) ? 0 : lower, std::isinf(upper) ? 0 : upper);
    return r;
  }
  void add(int r, int c, double v) { row_.push_back(r), column_.push_back(c), value_.push_back(v); }
  void held(int r, const std::vector<Held>& members) {
    for (const Held& h : members) add(r, h.column, h.part);
  }

  void slot(std::uint32_t i, std::uint32_t s, int rates) {
    const Slot& slot = slots_[i][s];
    const bool any = slot.copies >= slot.candidates.size();  // all of them may stand side by side
    const int copies = any && (rules_.free || problem_.max_stages == 1) ? 0 : row(-kInfinity, slot.copies);
    for (std::uint32_t c = 0; c < slot.candidates.size(); ++c) {
      const Candidate& candidate = slot.candidates[c];
      Use use{i, s, c, column(GLP_CV, kInfinity), {}};
      add(rates, use.rate, -1);
      int used = 0;
      if (copies > 0) {
        used = column(GLP_BV, 1);
        add(copies, used, 1);
        for (std::uint32_t length = 1; length <= slot.stages && !rules_.free; ++length)
          add(seats(i, slot, length), used, 1);
      }
      for (std::uint32_t k = 0; k < candidate.stages; ++k) {
        const std::uint32_t type = slot.types[k], share = candidate.stage[k].share;
        const std::uint32_t cut = rules_.whole ? 1 : share;  // counts are of devices, or of virtual GPUs
        const double max = static_cast<double>(problem_.types[type].count) * cut;
        use.count[k] = column(GLP_IV, max);
        const int carry = row(-kInfinity, 0);
        add(carry, use.rate, 1);
        add(carry, use.count[k], -candidate.stage[k].rps_per_vgpu * share / cut);
        if (used > 0) {
          const int only = row(-kInfinity, 0);
          add(only, use.count[k], 1);
          add(only, used, -max);
        }
        pools_[{i, k, type}].push_back({use.count[k], 1.0 / cut, static_cast<double>(share / cut)});
      }
      uses_.push_back(use);
    }
  }

  // Pipelines that begin with the slot's first `length` types: as many as there are slots that do (problem.h).
  int seats(std::uint32_t i, const Slot& slot, std::uint32_t length) {
    int& r = seats_[{i, std::vector<std::uint32_t>(slot.types, slot.types + length)}];
    if (r == 0)
      r = row(-kInfinity,
              std::pow(static_cast<double>(problem_.types.size()), static_cast<double>(problem_.max_stages - length)));
    return r;
  }

  // PPipe: each (DNN, stage, type) takes whole devices.
  void whole_devices() {
    for (const auto& [pool, members] : pools_) {
      const std::uint32_t type = std::get<2>(pool);
      const int whole = column(GLP_IV, problem_.types[type].count), r = row(-kInfinity, 0);
      held(r, members);
      add(r, whole, -1);
      add(devices_[type], whole, 1);
    }
  }

  void term(const MilpRow& r, const MilpTerm& t, std::map<int, double>& out) {
    if (t.of == MilpTerm::Of::rate) {
      for (const Use& u : uses_)
        if (u.dnn == t.dnn) out[u.rate] += t.times;
    } else if (t.of == MilpTerm::Of::used) {
      out[used(t.dnn, t.type, std::isfinite(t.times > 0 ? r.min : r.max))] += t.times;
    } else {
      each_held(t.dnn, t.type, [&](const Held& h) {
        out[h.column] += t.times * (t.of == MilpTerm::Of::partitions ? h.partitions : h.part);
      });
    }
  }

  // 1 where the DNN holds anything of the type. 0 where it does not, which is said only if a row would have it 1.
  int used(std::uint32_t dnn, std::uint32_t type, bool wanted) {
    int& c = used_[{dnn, type}];
    if (c == 0) {
      c = column(GLP_BV, 1);
      const int all = row(-kInfinity, 0);  // of one row: no more than there are
      add(all, c, -static_cast<double>(problem_.types[type].count));
      each_held(dnn, type, [&](const Held& h) { add(all, h.column, h.part); });
    }
    if (wanted && wanted_.insert(c).second) {
      const int some = row(-kInfinity, 0);
      add(some, c, 1);
      each_held(dnn, type, [&](const Held& h) { add(some, h.column, -1); });
    }
    return c;
  }

  template <typename What>
  void each_held(std::uint32_t dnn, std::uint32_t type, What what) const {
    for (std::uint32_t k = 0; k < kMaxStages; ++k) {
      const auto pool = pools_.find({dnn, k, type});
      if (pool == pools_.end()) continue;
      for (const Held& h : pool->second) what(h);
    }
  }

  const PooledProblem& problem_;
  const MilpRules& rules_;
  const std::vector<std::vector<Slot>>& slots_;
  Program program_;
  std::vector<int> row_{0}, column_{0};  // from 1, as GLPK wants them
  std::vector<double> value_{0};
  std::vector<int> devices_;  // [type]: row
  std::vector<Use> uses_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<Held>> pools_;  // dnn, stage, type
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, int> seats_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> used_;
  std::set<int> wanted_;
};

// What the child answers with, before the counts of every use.
struct Report {
  double objective = 0, bound = kInfinity, lp_bound = 0;
  int feasible = 0, proven = 0;
};

std::string run_glpk(Statement& statement, std::chrono::milliseconds limit) {
  glp_prob* const p = statement.program();
  glp_term_out(GLP_OFF);
  Report report;
  const auto end = Clock::now() + limit;
  const auto left = [&] {
    return static_cast<int>(
        std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count()));
  };
  glp_smcp simplex;
  glp_init_smcp(&simplex);
  simplex.msg_lev = GLP_MSG_OFF;
  simplex.tm_lim = left();
  simplex.presolve = GLP_ON;
  if (glp_simplex(p, &simplex) == 0 && glp_get_status(p) == GLP_OPT)
    report.bound = report.lp_bound = glp_get_obj_val(p);
  glp_iocp options;
  glp_init_iocp(&options);
  options.msg_lev = GLP_MSG_OFF;
  options.presolve = GLP_ON;
  options.gmi_cuts = options.mir_cuts = GLP_ON;
  options.tm_lim = left();
  options.cb_info = &report.bound;
  options.cb_func = [](glp_tree* tree, void* info) {
    const int best = glp_ios_best_node(tree);
    if (best != 0) *static_cast<double*>(info) = std::min(*static_cast<double*>(info), glp_ios_node_bound(tree, best));
  };
  const int result = glp_intopt(p, &options);
  const int status = glp_mip_status(p);
  report.feasible = status == GLP_OPT || status == GLP_FEAS;
  report.proven = result == GLP_ENOPFS || result == GLP_ENODFS || (result == 0 && status != GLP_FEAS);
  if (report.feasible != 0) report.objective = glp_mip_obj_val(p);
  if (report.proven != 0) report.bound = report.objective;
  std::vector<std::uint32_t> counts;
  for (const Use& u : statement.uses())
    for (const int c : u.count)
      counts.push_back(report.feasible != 0 && c > 0 ? static_cast<std::uint32_t>(std::lround(glp_mip_col_val(p, c)))
                                                     : 0);
  std::string all(reinterpret_cast<const char*>(&report), sizeof report);
  all.append(reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof counts[0]);
  return all;
}

// The counts as pipelines, each at the rate that its stages carry.
void describe(const PooledProblem& problem, const MilpRules& rules, const std::vector<std::vector<Slot>>& slots,
              const std::vector<Use>& uses, const std::vector<std::uint32_t>& counts, MilpAnswer& out) {
  out.dnns.resize(problem.dnns.size());
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const Slot& slot = slots[uses[u].dnn][uses[u].slot];
    const Candidate& c = slot.candidates[uses[u].candidate];
    const std::uint32_t* const n = &counts[u * kMaxStages];
    if (std::any_of(n, n + c.stages, [](std::uint32_t k) { return k == 0; })) continue;
    PooledPipeline p;
    p.batch = c.batch;
    p.rps = INFINITY;
    std::uint32_t first = 0;
    for (std::uint32_t k = 0; k < c.stages; ++k) {
      const Neighbours at{slot.types[k == 0 ? 0 : k - 1], slot.types[k], slot.types[k + 1 < c.stages ? k + 1 : k]};
      PooledStage stage = describe_stage(problem, problem.dnns[uses[u].dnn], at, c.stage[k].share, c.batch, first,
                                         c.stage[k].end_block);
      stage.vgpus = std::uint64_t{n[k]} * (rules.whole ? c.stage[k].share : 1);
      p.rps = std::min(p.rps, static_cast<double>(stage.vgpus) * stage.rps_per_vgpu);
      p.stages.push_back(stage);
      first = c.stage[k].end_block;
    }
    out.dnns[uses[u].dnn].rps += p.rps;
    out.dnns[uses[u].dnn].pipelines.push_back(std::move(p));
  }
  out.objective = INFINITY;
  for (std::size_t i = 0; i < out.dnns.size(); ++i) {
    out.objective = std::min(out.objective, out.dnns[i].rps / problem.dnns[i].weight);
    if (!rules.free) give_slots(out.dnns[i].pipelines, problem);
  }
}

}  // namespace

MilpAnswer solve_milp(const PooledProblem& problem, const MilpRules& rules, std::span<const MilpRow> rows,
                      std::chrono::milliseconds limit) {
  const auto start = Clock::now();
  MilpAnswer out;
  PooledProblem freer = problem;
  if (rules.free) freer.max_stages = std::max(problem.max_stages, kFreeStages);
  std::vector<std::vector<Slot>> slots;
  for (const PooledDnn& d : freer.dnns) {
    slots.push_back(enumerate_slots(freer, d, UINT32_MAX));
    if (rules.whole) keep_best_for_whole_gpus(slots.back());
    for (Slot& s : slots.back())
      if (rules.free) s.copies = std::min(kFreePipelines, static_cast<std::uint32_t>(s.candidates.size()));
  }
  Statement statement(freer, rules, slots);
  statement.state(rows);
  out.columns = static_cast<std::uint64_t>(glp_get_num_cols(statement.program()));
  out.rows = static_cast<std::uint64_t>(glp_get_num_rows(statement.program()));
  const auto child = subprocess::run_function([&] { return run_glpk(statement, limit); },
                                              {.limit = limit + kGrace, .errors = subprocess::Errors::callers});
  if (!child.ok()) return out.problem = child.error(), out;
  if (child->ending.how == subprocess::Ending::How::timed_out)
    out.problem = "GLPK did not stop at its limit and was ended; raise --limit, or plan for less";
  else if (child->ending.how == subprocess::Ending::How::signalled)
    out.problem = std::string("GLPK died of signal ") + ::strsignal(child->ending.code);
  const std::string& text = child->output;
  out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::size_t counted = statement.uses().size() * kMaxStages;
  Report report;
  out.bound = kInfinity;
  if (text.size() != sizeof report + counted * sizeof(std::uint32_t)) {
    if (out.problem.empty()) out.problem = "GLPK ended without an answer";
    return out;
  }
  std::memcpy(&report, text.data(), sizeof report);
  std::vector<std::uint32_t> counts(counted);
  std::memcpy(counts.data(), text.data() + sizeof report, counted * sizeof counts[0]);
  out.proven = report.proven != 0;
  out.lp_bound = report.lp_bound;
  out.bound = std::max(report.bound, rules.known * (out.proven ? 1 + 1e-6 : 1));
  if (report.feasible == 0) return out;
  describe(freer, rules, slots, statement.uses(), counts, out);
  out.feasible = out.objective > 0;  // rows that leave a DNN nothing leave no plan
  if (out.proven) out.bound = std::max(out.bound, out.objective);
  return out;
}

std::string broken_row(const std::vector<PooledDnnPlan>& plan, std::span<const MilpRow> rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double sum = 0;
    for (const MilpTerm& t : rows[r].terms) {
      double held = 0, part = 0;
      for (const PooledPipeline& p : plan[t.dnn].pipelines)
        for (const PooledStage& s : p.stages)
          if (s.type == t.type) held += static_cast<double>(s.vgpus), part += static_cast<double>(s.vgpus) / s.share;
      sum += t.times * (t.of == MilpTerm::Of::rate         ? plan[t.dnn].rps
                        : t.of == MilpTerm::Of::partitions ? held
                        : t.of == MilpTerm::Of::devices    ? part
                                                           : static_cast<double>(held > 0));
    }
    const double slack = 1e-6 * (1 + std::abs(sum));
    if (sum < rows[r].min - slack || sum > rows[r].max + slack)
      return "row " + std::to_string(r) + " is " + std::to_string(sum);
  }
  return {};
}

}  // namespace leat::planner
