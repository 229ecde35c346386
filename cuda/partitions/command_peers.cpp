// leat-gpu peers: how data gets from one device to another.
#include <cstdio>

#include "cuda/partitions/peers.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"

namespace leat::partitions {
namespace {

constexpr cli::Option kOptions[] = {cli::json_option()};
constexpr cli::Positional kPositionals[] = {
    {.name = "FROM:TO", .help = "two devices by UUID; none: every ordered pair", .min = 0, .max = 1024}};
constexpr cli::Example kExamples[] = {
    {.line = "leat-gpu peers", .text = "what passes between this host's GPUs, and how fast"}};
constexpr cli::Command kCommand = {
    .name = "leat-gpu peers",
    .summary = "measures how features get from one device to another",
    .description =
        "Two processes for each ordered pair: one writes a pattern into its device's memory, the other maps that and "
        "checks what it reads. 'in place': both are on one GPU or GPU instance; 'peer': the other device's memory is "
        "mapped; 'host': it is not, or what is read there is wrong, and rows go through pinned host memory. Runs no "
        "kernel, and asks without MPS.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leatd(8), leat-doctor(1)"};

int run(const cli::Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> wishes;
  for (const std::string& word : arguments.positionals()) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos)
      return cli::fail("leat-gpu peers", "'" + word + "' is no pair; write FROM:TO, two UUIDs of leat-gpu list");
    wishes.emplace_back(word.substr(0, colon), word.substr(colon + 1));
  }
  const auto asked = wishes.empty() ? ask_all_pairs() : Result<std::vector<Pair>>(ask_pairs(wishes));
  if (!asked.ok()) return cli::fail("leat-gpu peers", asked.error());
  const std::vector<Pair>& pairs = *asked;
  const cli::JsonOutput json(arguments);
  if (json.wanted()) {
    if (const int failed = json.write(as_json(pairs)); failed != 0 || json.alone()) return failed;
  }
  for (const Pair& p : pairs)
    std::printf("%s to %s: %s%s\n", p.from.c_str(), p.to.c_str(), text_of(p).c_str(),
                p.why_not.empty() ? "" : ("; " + p.why_not).c_str());
  return 0;
}

}  // namespace

extern const cli::Subcommand kGpuPeers;
const cli::Subcommand kGpuPeers = {&kCommand, run};

}  // namespace leat::partitions
