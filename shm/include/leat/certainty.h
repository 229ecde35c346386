/* What a tracker expects to have lost, by a rule made of one's own videos (`leat certainty --out`,
 * docs/guide/certainty.md): C ABI. No leatd is needed. Thread rule: none, no state. Errors: leat_error, with
 * leat_last_error() (leat/leat.h). In C++ leat/certainty_file.hpp, in Python leat.Certainty. */
#ifndef LEAT_CERTAINTY_H
#define LEAT_CERTAINTY_H

#include "leat/leat.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_CERTAINTY_TERMS 14

typedef struct leat_certainty {
  char tracker[16];                   /* whose terms it weighs: "blocks", "lk"; ends with 0 */
  uint32_t asks;                      /* 0: on those videos it told no more than an answer's age, which is to go by */
  float weight[LEAT_CERTAINTY_TERMS]; /* of the terms of leat/certainty.hpp, in their order */
} leat_certainty;

/* LEAT_ERROR_invalid_argument: there is no such file, or it is no such rule. */
LEAT_API leat_error leat_read_certainty(const char* path, leat_certainty* out);
/* For leat_should_submit_expecting: the sum of the LEAT_CERTAINTY_TERMS terms by their weights, 0..1; -1 where `asks`
 * is 0. */
LEAT_API double leat_certainty_expected(const leat_certainty* rule, const float* terms);

#ifdef __cplusplus
}
#endif

#endif
