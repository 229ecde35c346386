// leat serve: a daemon for one model, with a configuration made from it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "tools/base/documents/text_file.h"
#include "tools/base/subprocess/program.h"
#include "tools/leat/commands.h"
#include "tools/leat/try/model_config.h"
#include "tools/leat/try/private_daemon.h"
#include "tools/leat/try/readings.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    cli::real_option("slo-ms", "0", 0, 3'600'000,
                     "from the capture of a picture to its answer; 0: what leatd finds that the model needs here",
                     "MS"),
    {.name = "cores",
     .type = cli::Type::text,
     .value = "LIST",
     .help = "cores of the one partition that runs it, \"0-3\"; default: as leatd divides the host by itself"},
    LEAT_MODEL_OPTIONS,
    {.name = "socket", .type = cli::Type::path, .value = "PATH", .help = "serve there instead of at the usual place"},
    {.name = "save", .letter = 'o', .type = cli::Type::path, .value = "FILE", .help = "keep the configuration there"},
    {.name = "print", .help = "print the configuration and start nothing"},
};
constexpr cli::Positional kPositionals[] = {{.name = "MODEL", .help = "an ONNX file"}};
constexpr cli::Example kExamples[] = {
    {.line = "leat serve yolo11n.onnx",
     .text = "then `leat feed --application yolo11n street.mp4` in another terminal"},
    {.line = "leat serve --print model.onnx > leatd.toml", .text = "a configuration to begin with"}};
constexpr cli::Command kCommand = {
    .name = "leat serve",
    .summary = "starts a daemon for one model, with a configuration made from it",
    .description =
        "What the model does not say of itself (how pictures are prepared, how its outputs are read) can be given in "
        "the words of docs/guide/configuration.md. The configuration is printed, so that it can be saved, edited and "
        "given "
        "to leatd; the daemon then runs in this terminal until SIGINT or SIGTERM.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-try(1), leat-feed(1), leatd(8)",
    .exit_status = "2 on bad input; else leatd's.",
};

int run(const cli::Arguments& args) {
  ModelWords words = model_words(args, args.positionals()[0]);
  words.slo_ms = args.real("slo-ms");
  words.cores = args.text("cores");
  std::error_code none;
  if (!std::filesystem::is_regular_file(words.model, none))
    return cli::fail(kCommand.name, no_file_at(words.model) + "; name an ONNX model");
  const Result<std::string> question = ask_model(words);
  if (!question.ok()) return cli::fail(kCommand.name, question.error());
  if (!question->empty())
    return cli::fail(kCommand.name, *question + "; as a command:\n  " + serve_line(words, *question));
  const std::string text = config_of_model(words);
  std::printf("%s", text.c_str());
  std::fflush(stdout);
  std::string file = args.text("save");
  if (!file.empty()) {
    std::ofstream out(file);
    if (!(out << text << std::flush)) return cli::fail(kCommand.name, file + " cannot be written; name another place");
  }
  if (args.flag("print")) return 0;
  // leatd reads an open file, so that nothing is left behind whatever ends it.
  if (file.empty()) {
    const Result<std::string> kept = text_behind_descriptor(text);
    if (!kept.ok()) return cli::fail(kCommand.name, kept.error());
    file = *kept;
  }
  std::fprintf(stderr, "leat serve: feed it with: leat feed --application %s SOURCE\n",
               name_of_model(words.model).c_str());
  const std::string leatd = leatd_program();
  std::vector<std::string> command = {leatd};
  for (const auto& [option, value] : {std::pair{"--socket", args.text("socket")},
                                      {"--made-from", args.given("save") ? std::string() : words.model}}) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  }
  command.push_back(file);
  const std::string why = subprocess::replace_this_program(command);
  return cli::fail(kCommand.name, leatd + " cannot be started: " + why + "; install leatd beside leat");
}

}  // namespace

extern const cli::Subcommand kLeatServe;
const cli::Subcommand kLeatServe = {.command = &kCommand, .run = run};

}  // namespace leat::tools
