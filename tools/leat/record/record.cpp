// leat record: what a record of leatd's holds, and a copy of one that leatd is writing.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "engine/record/segments.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/base/text/units.h"
#include "tools/base/text/whole_file.h"
#include "tools/leat/commands.h"
#include "tools/leat/record/summary.h"
#include "tools/leat/top/sample.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "output",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "also copy the record there, as it is at this moment; it can be replayed, while leatd goes on"},
    cli::json_option("print everything as JSON in place of text"),
    kSocketOption,
};
constexpr cli::Positional kPositionals[] = {
    {.name = "RECORD", .help = "a record; default: the one that the leatd behind --socket is writing", .min = 0}};
constexpr cli::Example kExamples[] = {
    {.line = "leat record", .text = "what the leatd that is running has kept"},
    {.line = "leat record -o incident.record", .text = "keep it before newer things take its place"},
    {.line = "leat record incident.record --json | jq .frames", .text = "what became of the frames"}};
constexpr cli::Command kCommand = {
    .name = "leat record",
    .summary = "shows what a record of leatd's holds, and copies the one that is being written",
    .description =
        "Where [daemon] recorder names a file, leatd keeps there what went into its scheduler and what came out of it. "
        "This shows since when, under which plan and policy, what became of the frames, and how many entries of which "
        "kind there are. leat-sim(1) with --replay does all of it again, leat-trace(1) draws it.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-sim(1), leat-trace(1), leatd(8)",
};

// The file that the daemon writes, as it says itself.
Result<std::string> record_of_daemon(const std::string& socket) {
  auto watch = Watch::connect_patiently(socket);
  if (!watch.ok()) return Error{watch.error()};
  const auto text = watch->status_json();
  if (!text.ok()) return Error{text.error()};
  const auto status = Json::try_parse(*text);
  std::string file = status && status->is_object() ? status->value("record", "") : "";
  if (file.empty()) return Error{"leatd keeps no record; name a file in `recorder` of [daemon], or name a record here"};
  return file;
}

int run(const cli::Arguments& args) {
  const cli::JsonOutput json(args);
  std::string file = args.positionals().empty() ? "" : args.positionals().front();
  if (file.empty()) {
    auto named = record_of_daemon(args.text("socket"));
    if (!named.ok()) return cli::fail(kCommand.name, named.error());
    file = std::move(*named);
  }
  auto bytes = record::read_segments(file);
  if (!bytes.ok()) return cli::fail(kCommand.name, file + ": " + bytes.error());
  if (args.given("output")) {
    const std::string_view all(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (const std::string wrong = text::write_whole_file(args.text("output"), all); !wrong.empty())
      return cli::fail(kCommand.name, wrong);
  }
  auto record = record::Record::read(std::move(*bytes));
  if (!record.ok()) return cli::fail(kCommand.name, file + ": " + record.error());
  const auto summary = summary_of(*record);
  if (!summary.ok()) return cli::fail(kCommand.name, file + ": " + summary.error());
  if (!json.alone() && args.text("output") != "-") std::printf("%s: %s", file.c_str(), summary_text(*summary).c_str());
  Json out = summary_json(*summary);
  out["file"] = file;
  if (const int failed = json.write(out.dump(2)); failed != 0) return failed;
  if (!summary->problem.empty())
    return cli::fail(kCommand.name, file + ": is damaged; " + text::bytes_text(summary->unread_bytes) +
                                        " of it cannot be read: " + summary->problem);
  return 0;
}

}  // namespace

extern const cli::Subcommand kLeatRecord;
const cli::Subcommand kLeatRecord = {.command = &kCommand, .run = run};

}  // namespace leat::tools
