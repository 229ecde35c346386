// leat top: the daemon's counters on a terminal, or once as text or JSON.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tools/base/cli/json_output.h"
#include "tools/leat/commands.h"
#include "tools/leat/top/picture.h"
#include "tools/leat/top/terminal.h"

namespace leat::tools {
namespace {

using cli::Type;

constexpr cli::Option kOptions[] = {
    {.name = "once", .help = "print the figures once and leave; rates and percentiles are of --delay seconds"},
    cli::json_option("with --once: print the same figures as JSON in place of text"),
    {.name = "svg", .help = "with --once: print the same page as a picture in place of text"},
    {.name = "delay",
     .letter = 'd',
     .type = Type::real,
     .value = "S",
     .fallback = "1",
     .min = 0.05,
     .max = 3600,
     .help = "seconds between two samples"},
    {.name = "columns", .help = "explain every column and leave"},
    {.name = "no-colour", .help = "no colours (as with NO_COLOR in the environment)"},
    kSocketOption,
};
constexpr cli::Example kExamples[] = {
    {.line = "leat top", .text = "watch; h shows the keys"},
    {.line = "leat top --once --json | jq .total.latency_ms_p99", .text = "one figure for a script"},
};
constexpr cli::Command kCommand = {
    .name = "leat top",
    .summary = "shows what a daemon does: streams, modules, partitions, drops, latencies",
    .description =
        "Reads the daemon's counters segment and computes; the daemon is asked for nothing. Rates, percentiles and "
        "busy are of the time between "
        "two samples, counts since start. '-' is unknown, which is not zero.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-status(1), leatd(8)",
};

constexpr int kTextColumns = 200;  // of --once where no terminal tells
constexpr int kKeyWait = 50;       // ms

// Which devices the partitions have does not change while a daemon lives; what they hold does.
void ask_devices(Watch& watch, Window& window) {
  const auto status = watch.status_json();
  if (!status.ok()) return;
  window.devices = devices_in(*status);
  window.ways = ways_in(*status);
}

int once(Watch& watch, double delay, const cli::JsonOutput& json, bool picture) {
  Window window{.before = watch.sample(), .now = {}};
  std::this_thread::sleep_for(std::chrono::duration<double>(delay));
  window.now = watch.sample();
  ask_devices(watch, window);
  if (json.alone()) return json.write(top_json(window));
  TopCounts counts{.reasons = static_cast<int>(reasons(window.now).size())};
  int rows = kHeadLines + 1 + 2 * static_cast<int>(std::size(kTables) + 1) + counts.reasons;
  for (const Pane pane : kTables) rows += static_cast<int>(records_of(pane, window.now).size());
  winsize size{};
  const int columns = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kTextColumns;
  auto lines = top_page(window, {}, rows, columns);
  lines.pop_back();  // the keys
  while (!lines.empty() && lines.back().text.find_first_not_of(' ') == std::string::npos) lines.pop_back();
  if (picture) {
    std::fputs(top_picture(lines).c_str(), stdout);
    return json.write(top_json(window));
  }
  for (const Line& line : lines) {
    const std::size_t end = line.text.find_last_not_of(' ');
    std::printf("%.*s\n", end == std::string::npos ? 0 : static_cast<int>(end + 1), line.text.c_str());
  }
  return json.write(top_json(window));
}

int screen(Watch watch, const std::string& socket, double delay, bool colours) {
  auto terminal = Terminal::open(colours);
  if (!terminal.ok()) return cli::fail(kCommand.name, terminal.error());
  using Clock = std::chrono::steady_clock;
  TopChoice choice;
  Window window{.before = {}, .now = watch.sample()};
  ask_devices(watch, window);
  auto next = Clock::now() + std::chrono::milliseconds(200);  // the first rates soon
  int rows = 0, columns = 0;
  bool redraw = true;
  while (!Terminal::ended_by_signal()) {
    if (Clock::now() >= next && !choice.paused) {
      if (watch.daemon_gone()) {
        choice.notice = "leatd is gone; waiting for it at its socket   q quit";
        if (auto again = Watch::connect(socket); again.ok()) {
          watch = std::move(*again);
          window = {.before = {}, .now = watch.sample()};
          ask_devices(watch, window);
          choice.notice.clear();
        }
      } else {
        window.before = std::move(window.now);
        window.now = watch.sample();
        if (!window.devices.empty()) ask_devices(watch, window);
      }
      next = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(delay));
      redraw = true;
    }
    redraw = redraw || rows != terminal->rows() || columns != terminal->columns();
    if (redraw) {
      rows = terminal->rows();
      columns = terminal->columns();
      terminal->draw(top_page(window, choice, rows, columns));
      redraw = false;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    const Key key =
        terminal->wait_key(static_cast<int>(std::clamp<std::int64_t>(choice.paused ? 500 : left + 1, kKeyWait, 500)));
    if (key == Key::none) continue;
    if (!apply(key, window, choice)) break;
    redraw = true;
  }
  return 0;
}

int run(const cli::Arguments& args) {
  if (args.flag("columns")) {
    std::fputs(column_help().c_str(), stdout);
    return 0;
  }
  const cli::JsonOutput json(args);
  if (json.wanted() && !args.flag("once")) return cli::fail(kCommand.name, "--json goes with --once");
  if (args.flag("svg") && !args.flag("once")) return cli::fail(kCommand.name, "--svg goes with --once");
  const std::string socket = args.text("socket");
  auto watch = Watch::connect(socket);
  if (!watch.ok()) return cli::fail(kCommand.name, watch.error());
  if (args.flag("once")) return once(*watch, args.real("delay"), json, args.flag("svg"));
  return screen(std::move(*watch), socket, args.real("delay"),
                !args.flag("no-colour") && std::getenv("NO_COLOR") == nullptr);
}

}  // namespace

extern const cli::Subcommand kLeatTop;
const cli::Subcommand kLeatTop = {.command = &kCommand, .run = run};

}  // namespace leat::tools
