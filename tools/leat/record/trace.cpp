// leat trace: a record of leatd's as a picture in time, for a viewer of traces.
#include <cstdio>
#include <string>

#include "engine/record/history.h"
#include "tools/base/text/whole_file.h"
#include "tools/leat/commands.h"
#include "tools/leat/record/trace_events.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "output",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .fallback = "-",
     .help = "write the trace there; -: standard output"},
};
constexpr cli::Positional kPositionals[] = {
    {.name = "RECORD", .help = "a record of leatd's ([daemon] recorder), or a copy that leat record has made"}};
constexpr cli::Example kExamples[] = {{.line = "leat trace leatd.record -o trace.json",
                                       .text = "open trace.json in ui.perfetto.dev or chrome://tracing"}};
constexpr cli::Command kCommand = {
    .name = "leat trace",
    .summary = "draws a record of leatd's for a viewer of traces: what ran where and when",
    .description =
        "Each partition is a row, each batch a slice with its module, size and streams; arrows lead from the batch "
        "that "
        "a frame was in to the next. What was not served in time stands in a row for each reason; plans that took "
        "over, "
        "partitions lost and ready, clients and workers are marks. The format is Trace Event JSON, with times in "
        "microseconds since the record begins; Perfetto's viewer opens it. Nothing is left out, so a record of 16 MiB "
        "gives some hundred MiB.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-record(1), leat-sim(1), leatd(8)",
};

int run(const cli::Arguments& args) {
  const std::string file = args.positionals().front(), output = args.text("output");
  auto record = record::Record::read_file(file);
  if (!record.ok()) return cli::fail(kCommand.name, record.error());
  const auto history = record::history(*record);
  if (!history.ok()) return cli::fail(kCommand.name, file + ": " + history.error());
  const TraceEvents trace = trace_events(*history);
  if (const std::string wrong = text::write_whole_file(output, trace.json); !wrong.empty())
    return cli::fail(kCommand.name, wrong);
  if (output != "-")
    std::printf("%s: %llu batches, %llu arrows, %llu frames not served in time, %llu marks\n", output.c_str(),
                static_cast<unsigned long long>(trace.slices), static_cast<unsigned long long>(trace.arrows),
                static_cast<unsigned long long>(trace.unserved), static_cast<unsigned long long>(trace.marks));
  if (!history->cut.empty())
    return cli::fail(kCommand.name, file + ": is damaged, and was drawn up to there: " + history->cut);
  return 0;
}

}  // namespace

extern const cli::Subcommand kLeatTrace;
const cli::Subcommand kLeatTrace = {.command = &kCommand, .run = run};

}  // namespace leat::tools
