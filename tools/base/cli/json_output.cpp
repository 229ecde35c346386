#include "tools/base/cli/json_output.h"

#include "tools/base/text/whole_file.h"

namespace leat::cli {

JsonOutput::JsonOutput(const Arguments& arguments)
    : program_(arguments.command().name), file_(arguments.given("json") ? arguments.text("json") : "") {}

int JsonOutput::write(std::string text) const {
  if (!wanted()) return 0;
  if (text.empty() || text.back() != '\n') text += '\n';
  const std::string wrong = text::write_whole_file(file_, text);
  return wrong.empty() ? 0 : fail(program_, wrong);
}

}  // namespace leat::cli
