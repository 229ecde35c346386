#include "planner/pooled/glpk_pooled.h"

#include <glpk.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "planner/pooled/candidates.h"

namespace leat::planner {
namespace {

using Problem = std::unique_ptr<glp_prob, void (*)(glp_prob*)>;

// One coefficient after the other, 1-based as GLPK wants them.
struct Matrix {
  std::vector<int> row{0}, column{0};
  std::vector<double> value{0};
  void add(int r, int c, double v) { row.push_back(r), column.push_back(c), value.push_back(v); }
};

int add_row(glp_prob* p, double upper) {
  const int r = glp_add_rows(p, 1);
  glp_set_row_bnds(p, r, GLP_UP, 0, upper);
  return r;
}

int add_column(glp_prob* p, int kind, double upper) {
  const int c = glp_add_cols(p, 1);
  glp_set_col_kind(p, c, kind);
  glp_set_col_bnds(p, c, upper > 0 ? GLP_DB : GLP_LO, 0, upper);
  return c;
}

// maximise z: weight z <= sum of rates; rate <= counts x rate of a GPU; rate <= most x used; used <= copies; counts <=
// GPUs.
void build(glp_prob* p, const PooledProblem& problem) {
  Matrix m;
  glp_set_obj_dir(p, GLP_MAX);
  const int z = add_column(p, GLP_CV, 0);
  glp_set_obj_coef(p, z, 1);
  std::vector<int> gpus;
  for (const GpuType& t : problem.types) gpus.push_back(add_row(p, t.count));
  for (const PooledDnn& d : problem.dnns) {
    std::vector<Slot> slots = enumerate_slots(problem, d, UINT32_MAX);
    keep_best_for_whole_gpus(slots);
    const int rates = add_row(p, 0);
    m.add(rates, z, d.weight);
    for (const Slot& s : slots) {
      const int copies = add_row(p, s.copies);
      for (const Candidate& c : s.candidates) {
        const int rate = add_column(p, GLP_CV, 0), used = add_column(p, GLP_BV, 1), cap = add_row(p, 0);
        m.add(rates, rate, -1);
        m.add(copies, used, 1);
        double most = 1e30;
        for (std::uint32_t k = 0; k < c.stages; ++k) {
          const int count = add_column(p, GLP_IV, problem.types[s.types[k]].count), carry = add_row(p, 0);
          m.add(carry, rate, 1);
          m.add(carry, count, -c.gpu_rps(k));
          m.add(gpus[s.types[k]], count, 1);
          most = std::min(most, c.gpu_rps(k) * problem.types[s.types[k]].count);
        }
        m.add(cap, rate, 1);
        m.add(cap, used, -most);
      }
    }
  }
  glp_load_matrix(p, static_cast<int>(m.row.size()) - 1, m.row.data(), m.column.data(), m.value.data());
}

}  // namespace

GlpkAnswer solve_with_glpk(const PooledProblem& problem, int limit_ms) {
  const auto start = std::chrono::steady_clock::now();
  glp_term_out(GLP_OFF);
  const Problem p(glp_create_prob(), glp_delete_prob);
  build(p.get(), problem);
  GlpkAnswer out;
  glp_smcp simplex;
  glp_init_smcp(&simplex);
  simplex.msg_lev = GLP_MSG_OFF;
  simplex.tm_lim = limit_ms;
  if (glp_simplex(p.get(), &simplex) == 0) out.lp_bound = glp_get_obj_val(p.get());
  glp_iocp options;
  glp_init_iocp(&options);
  options.msg_lev = GLP_MSG_OFF;
  options.presolve = GLP_ON;
  options.gmi_cuts = GLP_ON;
  options.mir_cuts = GLP_ON;
  options.tm_lim = limit_ms;
  double bound = out.lp_bound;
  options.cb_info = &bound;
  options.cb_func = [](glp_tree* tree, void* info) {
    const int best = glp_ios_best_node(tree);
    if (best != 0) *static_cast<double*>(info) = glp_ios_node_bound(tree, best);
  };
  const int result = glp_intopt(p.get(), &options);
  const int status = glp_mip_status(p.get());
  if (status == GLP_OPT || status == GLP_FEAS) out.objective = glp_mip_obj_val(p.get());
  out.bound = result == 0 && status == GLP_OPT ? out.objective : std::max(bound, out.objective);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace leat::planner
