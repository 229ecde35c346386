// For solver_process_test alone: misuses GLPK as a bug of ours would, and is aborted by it.
#include <glpk.h>

int main() {
  glp_prob* problem = glp_create_prob();
  glp_set_col_kind(problem, 7, GLP_IV);  // there is no column 7
  return 0;
}
