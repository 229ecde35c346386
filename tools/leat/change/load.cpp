// leat load: another application, made from a model, or another version of a model, while leatd serves.
#include <filesystem>

#include "tools/base/documents/text_file.h"
#include "tools/leat/change/change_watch.h"
#include "tools/leat/try/model_config.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "name",
     .type = cli::Type::text,
     .value = "NAME",
     .help = "the application's name (default: the file's); with --replace an application, or APPLICATION/MODULE"},
    {.name = "replace", .help = "the file is another version of the model that an application serves with"},
    cli::real_option("trial-ms", "5000", 0, 3'600'000,
                     "with --replace: how long the new version is watched, and goes back by itself in trouble", "MS"),
    cli::real_option("slo-ms", "0", 0, 3'600'000, "time from capture to answer; 0: leatd chooses", "MS"),
    LEAT_MODEL_OPTIONS,
    kDryRunOption,
    cli::json_option("print what became of it as JSON in place of text"),
    kSocketOption,
};
constexpr cli::Positional kPositionals[] = {{.name = "FILE.onnx", .help = "the model"}};
constexpr cli::Example kExamples[] = {
    {.line = "leat load yolo11n.onnx --name people --slo-ms 100", .text = "serve another application"},
    {.line = "leat load --replace yolo11n-v2.onnx --name people", .text = "serve the same one with other weights"}};
constexpr cli::Command kCommand = {
    .name = "leat load",
    .summary = "adds an application to a daemon while it serves, or takes another version of a model",
    .description =
        "Workers that hold the new model start beside those that serve; once it has loaded, has run and fits, it is in "
        "force, and streams of it can be opened. What was loaded so stays until leat unload, or until leatd starts "
        "anew: write it into the configuration to keep it.\n\n"
        "With --replace the streams of the application stay open. Every frame is answered by one version: those that "
        "come before the new one takes over by the old, those behind it by the new. A version whose inputs or answers "
        "have other shapes, or that is slower than the objective allows, is refused; one that fails in its first "
        "seconds (--trial-ms) goes, and the version before serves again.\n\n"
        "Only root and leatd's own user may.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-unload(1), leat-reload(1), leatd(8)",
    .exit_status = "0: it is in force, or was only looked at; 1: it is not, and all is as before; 2: bad input"};

int run(const cli::Arguments& args) {
  const std::string file = args.positionals()[0];
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    return cli::fail(kCommand.name, no_file_at(file) + "; name an ONNX model");
  const std::string path = std::filesystem::absolute(file).lexically_normal().string();
  const bool replaces = args.flag("replace");
  if (replaces && !args.given("name"))
    return cli::fail(kCommand.name, "--replace needs --name: whose model it is, APPLICATION or APPLICATION/MODULE");
  for (const char* const word : {"preprocess", "postprocess", "as", "labels", "slo-ms"})
    if (replaces && args.given(word))
      return cli::fail(kCommand.name, "--" + std::string(word) +
                                          " cannot go with --replace, which keeps the application's words; for others "
                                          "change the configuration, then leat reload");
  shm::Change what;
  what.kind = replaces ? shm::ChangeKind::replace : shm::ChangeKind::load;
  what.dry_run = args.flag("dry-run") ? 1 : 0;
  what.trial_ns = static_cast<std::int64_t>(args.real("trial-ms") * 1e6);
  const std::string name = args.given("name") ? args.text("name") : name_of_model(file);
  if (name.size() >= sizeof what.name) return cli::fail(kCommand.name, "--name is too long; shorten it");
  shm::set_text(what.name, name);
  if (replaces) return watch_change(kCommand, args, what, path);
  ModelWords words = model_words(args, path);
  words.slo_ms = args.real("slo-ms");
  const auto question = ask_model(words);
  if (!question.ok()) return cli::fail(kCommand.name, question.error());
  if (!question->empty()) return cli::fail(kCommand.name, *question);
  return watch_change(kCommand, args, what, application_of_model(words, name));
}

}  // namespace

extern const cli::Subcommand kLeatLoad;
const cli::Subcommand kLeatLoad = {.command = &kCommand, .run = run};

}  // namespace leat::tools
