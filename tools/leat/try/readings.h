// What a model whose outputs could mean several things would have found, reading by reading. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/leat/try/model_config.h"

namespace leat::tools {

// The readings that a question proposes: every quoted line of postprocess that needs no file, the first three.
[[nodiscard]] std::vector<std::string> readings_in(const std::string& question);

// A command line that can be pasted: `leat try MODEL SOURCE --preprocess "..." --postprocess "..."`.
[[nodiscard]] std::string try_line(const std::string& model, const std::string& source, const std::string& preprocess,
                                   const std::string& postprocess);

// The command that serves a model with the likely words, where `question` was asked of it: to paste, or to correct.
[[nodiscard]] std::string serve_line(const ModelWords& words, const std::string& question);

}  // namespace leat::tools
