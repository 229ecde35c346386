// leat top: the daemon's counters on a terminal, in a recording, or once as text or JSON.
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>

#include "tools/leat/commands.h"
#include "tools/leat/top/columns.h"
#include "tools/leat/top/once.h"
#include "tools/leat/top/watching.h"

namespace leat::tools {
namespace {

using cli::Type;

constexpr cli::Option kOptions[] = {
    {.name = "page",
     .type = Type::text,
     .value = "NAME",
     .fallback = "now",
     .help = "the page to begin with: now, streams, modules, partitions, users, changes, leatd, or 1 to 7"},
    {.name = "sort",
     .type = Type::choice,
     .value = "BY",
     .choices = "suffer|name|in|good|miss|p99|flying|busy",
     .fallback = "suffer",
     .help = "what streams are sorted by"},
    {.name = "filter",
     .type = Type::text,
     .value = "WORDS",
     .help = "streams that are shown: a part of a name, app=plates, miss>5, p99>80%slo, !well"},
    {.name = "delay",
     .letter = 'd',
     .type = Type::real,
     .value = "S",
     .fallback = "1",
     .min = 0.05,
     .max = 3600,
     .help = "seconds between two samples"},
    {.name = "record",
     .type = Type::path,
     .value = "FILE",
     .help = "write what is seen into FILE; without a terminal too"},
    {.name = "for",
     .type = Type::real,
     .value = "S",
     .fallback = "0",
     .min = 0,
     .max = 1e9,
     .help = "end after so many seconds; 0: not by itself"},
    {.name = "replay", .type = Type::path, .value = "FILE", .help = "show a recording in place of a daemon"},
    {.name = "at",
     .type = Type::text,
     .value = "TIME",
     .help = "with --replay: the time of day to begin at, as 14:02:31, or seconds from its start, as +90"},
    {.name = "speed",
     .type = Type::real,
     .value = "X",
     .fallback = "1",
     .min = 0.01,
     .max = 1000,
     .help = "with --replay: times as fast"},
    {.name = "shot", .help = "print the page once, as text or with --svg, and leave"},
    {.name = "size",
     .type = Type::text,
     .value = "COLSxROWS",
     .help = "with --shot: the size of the page (default: 80x24)"},
    {.name = "signs",
     .type = Type::choice,
     .value = "SET",
     .choices = "full|ascii",
     .help = "what is drawn with (default: what the terminal can show)"},
    {.name = "no-colour", .help = "no colours (as with NO_COLOR in the environment)"},
    {.name = "no-mouse", .help = "leave the mouse to the terminal"},
    {.name = "once", .help = "print the figures once and leave; rates and percentiles are of --delay seconds"},
    cli::json_option("with --once: print the same figures as JSON in place of text"),
    {.name = "svg", .help = "with --once or --shot: print a picture in place of text"},
    {.name = "columns", .help = "explain every column and leave"},
    kSocketOption,
};
constexpr cli::Example kExamples[] = {
    {.line = "leat top", .text = "watch; h shows the keys"},
    {.line = "leat top --record night.top --for 28800", .text = "keep what is seen for eight hours"},
    {.line = "leat top --replay night.top --at 03:00:00", .text = "and look at it: [ and ] step, Space plays"},
    {.line = "leat top --once --json | jq .total.latency_ms_p99", .text = "one figure for a script"},
};
constexpr cli::Command kCommand = {
    .name = "leat top",
    .summary = "shows whether all is well, who suffers and why; streams, modules, partitions, users, leatd",
    .description =
        "The first line says how it is, the second why; below are those who suffer first. It reads the daemon's "
        "counters segment and computes; the daemon is asked for nothing. Figures are of five seconds, or as they say; "
        "'-' is unknown, which is not zero.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-status(1), leatd(8)",
};

bool read_size(const std::string& text, top::Watching* wanted) {
  int columns = 0, rows = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &columns, &rows, &rest) != 2 || columns < 1 || rows < 1 || columns > 1000 ||
      rows > 1000)
    return false;
  wanted->columns = columns;
  wanted->rows = rows;
  return true;
}

bool read_page(const std::string& text, top::View* view) {
  for (std::size_t i = 0; i < top::kPages; ++i) {
    const auto page = static_cast<top::Page>(i);
    if (text != name_of(page) && text != std::to_string(i + 1)) continue;
    view->page = page;
    return true;
  }
  return false;
}

// Empty: it is in order; else one line.
std::string read_choices(const cli::Arguments& args, top::Watching* wanted) {
  if (!read_page(args.text("page"), &wanted->view))
    return "--page '" + args.text("page") +
           "' is none; there are now, streams, modules, partitions, users, changes, leatd";
  for (int i = 0; i < static_cast<int>(top::Sort::count_); ++i)
    if (args.text("sort") == name_of(static_cast<top::Sort>(i))) wanted->view.sort = static_cast<top::Sort>(i);
  auto filter = top::Filter::parse(args.text("filter"));
  if (!filter.ok()) return filter.error();
  wanted->view.filter = std::move(*filter);
  if (args.given("size") && !args.flag("shot")) return "--size goes with --shot";
  if (args.given("size") && !read_size(args.text("size"), wanted)) return "--size is columns x rows, as 120x40";
  if (args.given("at") && !args.given("replay")) return "--at goes with --replay";
  if (args.given("record") && args.given("replay")) return "a recording that is shown cannot be recorded; cp copies it";
  wanted->socket = args.text("socket");
  wanted->record = args.text("record");
  wanted->replay = args.text("replay");
  wanted->at = args.text("at");
  wanted->delay = args.real("delay");
  wanted->speed = args.real("speed");
  if (args.real("for") > 0) wanted->seconds = args.real("for");
  if (args.given("signs")) wanted->ascii = args.text("signs") == "ascii";
  wanted->svg = args.flag("svg");
  wanted->colours = !args.flag("no-colour") && std::getenv("NO_COLOR") == nullptr;
  wanted->mouse = !args.flag("no-mouse");
  return {};
}

int run(const cli::Arguments& args) {
  if (args.flag("columns")) {
    std::fputs(column_help().c_str(), stdout);
    return 0;
  }
  const auto no = [](const std::string& why) { return cli::fail(kCommand.name, why); };
  const cli::JsonOutput json(args);
  if (json.wanted() && !args.flag("once")) return no("--json goes with --once");
  if (args.flag("svg") && !args.flag("once") && !args.flag("shot")) return no("--svg goes with --once or --shot");
  if (args.flag("once") && args.given("replay")) return no("--once reads a daemon; --replay with --shot prints a page");
  std::setlocale(LC_CTYPE, "");
  top::Watching wanted;
  if (const std::string why = read_choices(args, &wanted); !why.empty()) return no(why);
  if (args.flag("once")) {
    auto watch = Watch::connect_patiently(wanted.socket);
    if (!watch.ok()) return no(watch.error());
    return top_once(*watch, wanted.delay, json, args.flag("svg"));
  }
  const bool screen = ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDIN_FILENO) != 0;
  const Status done = args.flag("shot")                   ? top::shot(wanted)
                      : !wanted.record.empty() && !screen ? top::record(wanted)
                                                          : top::watch(wanted);
  return done ? 0 : no(done.error());
}

}  // namespace

extern const cli::Subcommand kLeatTop;
const cli::Subcommand kLeatTop = {.command = &kCommand, .run = run};

}  // namespace leat::tools
