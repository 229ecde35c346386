// leat metrics: the daemon's counters once, as Prometheus reads them.
#include <chrono>
#include <cstdio>
#include <thread>

#include "tools/leat/commands.h"
#include "tools/leat/metrics/daemon_metrics.h"

namespace leat::tools {
namespace {

constexpr cli::Option kOptions[] = {
    {.name = "format",
     .type = cli::Type::choice,
     .choices = "openmetrics|text",
     .fallback = "openmetrics",
     .help = "OpenMetrics 1.0, or Prometheus' older text format"},
    cli::real_option("window", "0.2", 0.05, 60, "seconds between two looks, which the slack is of", "S"),
    kSocketOption,
};
constexpr cli::Example kExamples[] = {
    {.line = "leat metrics > /var/lib/prometheus/node-exporter/leat.prom --format text",
     .text = "for a node exporter's text collector"},
    {.line = "leat metrics | grep leat_slack", .text = "how much of this node is free"}};
constexpr cli::Command kCommand = {
    .name = "leat metrics",
    .summary = "prints what a daemon counts in the format of Prometheus",
    .description =
        "Reads the daemon's counters segment; the daemon is asked for nothing. Every counter is there under the name "
        "of its record and its own, in seconds, bytes and ratios. `leat gateway` serves the same at /metrics.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-top(1), leat-gateway(1), leatd(8)",
};

int run(const cli::Arguments& args) {
  const auto watch = Watch::connect_patiently(args.text("socket"));
  if (!watch.ok()) return cli::fail(kCommand.name, watch.error());
  Window window;
  window.before = watch->sample();
  std::this_thread::sleep_for(std::chrono::duration<double>(args.real("window")));
  window.now = watch->sample();
  MetricText text(args.text("format") == "text" ? MetricFormat::text : MetricFormat::open_metrics);
  text.gauge("leat_up", "1: the daemon answers");
  text.add({}, 1);
  add_slack(text, window);
  add_daemon_metrics(text, window.now);
  std::fputs(std::move(text).finish().c_str(), stdout);
  return 0;
}

}  // namespace

extern const cli::Subcommand kLeatMetrics;
const cli::Subcommand kLeatMetrics = {.command = &kCommand, .run = run};

}  // namespace leat::tools
