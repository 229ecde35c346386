// leat-gpu-check structure: writes one of the published structures as a model, for `model` and for
// tests/gpu/torch_times.py.
#include "tests/gpu/check/check.h"
#include "tests/gpu/check/structures.h"

namespace leat::check {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "out", .type = cli::Type::path, .value = "FOLDER", .fallback = ".", .help = "where the files go"},
    {.name = "half", .help = "computes in float16; its picture and its answer stay float32"}};
constexpr cli::Positional kPositionals[] = {
    {.name = "NAME", .help = "resnet18, resnet50, mobilenetv2, squeezenet or densenet121"}};
constexpr cli::Command kCommand = {.name = "leat-gpu-check structure",
                                   .summary = "writes a published structure with seeded weights",
                                   .options = kOptions,
                                   .positionals = kPositionals};

int run(const cli::Arguments& arguments) {
  Answers answers("structure");
  const Structure s = structure(arguments.positionals()[0]);
  std::uint64_t parameters = 0;
  for (const Layer& l : s.layers) parameters += l.weight.size() + l.bias.size();
  answers.value("cut", write_structure(s, arguments.text("out"), arguments.flag("half")));
  answers.value("parameters", parameters);
  answers.value("layers", s.layers.size());
  return answers.print();
}

}  // namespace

extern const cli::Subcommand kCheckStructure;
const cli::Subcommand kCheckStructure = {&kCommand, run};

}  // namespace leat::check
