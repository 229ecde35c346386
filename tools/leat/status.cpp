// leat status: what a daemon is and what it serves, as it says itself.
#include <cstdio>

#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/base/text/formatted.h"
#include "tools/base/text/units.h"
#include "tools/leat/commands.h"
#include "tools/leat/feed/cameras/camera_states.h"
#include "tools/leat/model_text.h"
#include "tools/leat/top/columns.h"
#include "tools/leat/top/sample.h"
#include "tools/leat/top/users.h"

namespace leat::tools {
namespace {

using cli::Type;

constexpr cli::Option kOptions[] = {
    cli::json_option("print everything as JSON in place of text"),
    {.name = "users", .help = "who has what of it, what he may have, and what was refused him"},
    kSocketOption,
};
constexpr cli::Example kExamples[] = {
    {.line = "leat status --json | jq -r '.partitions[].state'", .text = "are the workers up?"},
    {.line = "leat status --users", .text = "who holds what, and who was refused why"}};
constexpr cli::Command kCommand = {
    .name = "leat status",
    .summary = "says what a daemon serves, on which partitions, and whether it is ready",
    .description =
        "One question to the daemon, one answer: phase, event loop, applications with their modules and measured "
        "latencies, partitions with their "
        "workers, warnings; how each stream stands that is coordinated or waits for grants; and how each camera is "
        "that a leat-feed(1) of yours feeds. Other figures that move are leat-top(1)'s.",
    .options = kOptions,
    .examples = kExamples,
    .see_also = "leat-top(1), leat-check(1), leatd(8)",
};

// The text of a member, whatever its type; "-" when it is not there.
std::string text_of(const Json& object, const char* key) {
  const Json* const it = object.find(key);
  if (it == nullptr || it->is_null()) return "-";
  return it->is_string() ? it->get<std::string>() : it->dump();
}
// A member in bytes, in units that people read.
std::string size_of(const Json& object, const char* key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_number() ? text::bytes_text(member->get<std::uint64_t>()) : "-";
}

const Json& list_of(const Json& object, const char* key) {
  static const Json kEmpty = Json::array();
  const Json* const it = object.find(key);
  return it != nullptr && it->is_array() ? *it : kEmpty;
}

std::string words_of(const Json& object, const char* key) {
  std::string out;
  for (const Json& word : list_of(object, key))
    out += (out.empty() ? "" : ", ") + (word.is_string() ? word.get<std::string>() : word.dump());
  return out;
}

void print_module(const Json& module) {
  std::printf("  module %-14s %s %s, batches up to %s\n", text_of(module, "name").c_str(),
              text_of(module, "executor").c_str(), text_of(module, "model").c_str(), text_of(module, "batch").c_str());
  if (const std::string sha256 = text_of(module, "sha256"); sha256 != "-")
    std::printf("    sha256 %.12s\n", sha256.c_str());
  std::fputs(model_text(module).c_str(), stdout);
  if (const std::string squeezed = text_of(module, "squeezed"); !squeezed.empty() && squeezed != "0")
    std::printf("    squeezed         %s pictures that were too wide for it\n", squeezed.c_str());
  if (const std::string count = text_of(module, "not_finite"); !count.empty() && count != "0")
    std::printf("    not finite       %s answers with NaN or infinity; check its input range and precision\n",
                count.c_str());
  const Json latency = module.value("latency_ms", Json::object());
  for (const auto& [partition_class, list] : latency.items()) {
    std::string times;
    for (const Json& ms : list) times += (times.empty() ? "" : ", ") + formatted("%.3g", ms.get<double>());
    std::printf("    on %-14s ms by batch: %s\n", partition_class.c_str(), times.c_str());
  }
  for (const Json& route : list_of(module, "routes")) {
    std::printf("    route of %zu stages, batches up to %s\n", list_of(route, "stages").size(),
                text_of(route, "batch").c_str());
    for (const Json& stage : list_of(route, "stages")) {
      std::printf("      blocks %s on %s, ms by batch: %s\n", text_of(stage, "blocks").c_str(),
                  words_of(stage, "partitions").c_str(), text_of(stage, "latency_ms").c_str());
    }
  }
}

void print_partition(const Json& partition) {
  std::printf("partition %-12s %-8s %-9s cores %s, pid %s, restarts %s\n", text_of(partition, "name").c_str(),
              text_of(partition, "kind").c_str(), text_of(partition, "state").c_str(),
              text_of(partition, "cores").c_str(), text_of(partition, "pid").c_str(),
              text_of(partition, "restarts").c_str());
  if (const std::string why = text_of(partition, "why_down"); why != "-" && !why.empty())
    std::printf("  down: %s\n", why.c_str());
  if (const std::string gpu = gpu_text(partition); !gpu.empty()) std::printf("  on %s\n", gpu.c_str());
  if (const Json* const gpu = partition.find("gpu"); gpu != nullptr && gpu->is_object())
    for (const Json& module : list_of(*gpu, "modules"))
      std::printf("    %s: %s of its memory, and %s of ONNX Runtime's; %s\n", text_of(module, "name").c_str(),
                  size_of(module, "memory_bytes").c_str(), size_of(module, "provider_bytes").c_str(),
                  text_of(module.value("graphs", Json::object()), "text").c_str());
}

void print_edge(const Json& edge) {
  std::printf("edge %s from %s to %s, in %s memory: %s slots of %s; %s moves, %s read in place, %s copied\n",
              text_of(edge, "name").c_str(), words_of(edge, "from").c_str(), words_of(edge, "to").c_str(),
              text_of(edge, "memory").c_str(), text_of(edge, "slots").c_str(), size_of(edge, "item_bytes").c_str(),
              text_of(edge, "transfers").c_str(), size_of(edge, "bytes_in_place").c_str(),
              size_of(edge, "bytes_copied").c_str());
  for (const Json& way : list_of(edge, "ways")) std::printf("  %s\n", way_text(way).c_str());
}

void print_coordinated(const Json& stream) {
  const auto figure = [&](const char* key) {
    const Json* const value = stream.find(key);
    char text[32] = "-";
    if (value != nullptr && value->is_number()) std::snprintf(text, sizeof text, "%.1f", value->get<double>());
    return std::string(text);
  };
  std::printf(
      "coordinated %s of %s: %s, every %s frames; may lose %s %%, planned %s %% with %s %% of it left alone, lost %s "
      "%% "
      "in the last second; evicted %s times\n",
      text_of(stream, "name").c_str(), text_of(stream, "client").c_str(), text_of(stream, "standing").c_str(),
      text_of(stream, "interval").c_str(), figure("sla_drop_percent").c_str(), figure("planned_drop_percent").c_str(),
      figure("margin_percent").c_str(), figure("measured_drop_percent").c_str(), text_of(stream, "evictions").c_str());
}

// How a stream's colors are read; empty: its frames have no range and no matrix.
std::string stream_text(const Json& stream) {
  std::string text = "stream " + text_of(stream, "name") + " of " + text_of(stream, "client") + ": " +
                     text_of(stream, "width") + "x" + text_of(stream, "height") + ", " + text_of(stream, "color");
  if (text_of(stream, "color") == "-") return {};
  if (const std::string damaged = text_of(stream, "damaged"); damaged != "0" && !damaged.empty())
    text += "; " + damaged + " damaged frames";
  return text;
}

void print_change(const Json& change) {
  std::string state = text_of(change, "state");
  const std::size_t waves = list_of(change, "waves").size();
  if (const auto wave = change.value("wave", std::size_t{0}); wave > 0 && waves > 0)
    state += ", wave " + std::to_string(wave) + " of " + std::to_string(waves);
  std::printf("latest change: %s, %s%s%s\n", text_of(change, "what").c_str(), state.c_str(),
              text_of(change, "line").empty() ? "" : ": ", text_of(change, "line").c_str());
}

void print(const Json& status) {
  std::printf("leatd %s, pid %s: %s\n", text_of(status, "version").c_str(), text_of(status, "pid").c_str(),
              text_of(status, "phase").c_str());
  for (const char* key : {"config", "socket", "preset", "clients"}) {
    if (const std::string text = text_of(status, key); !text.empty()) std::printf("  %-16s %s\n", key, text.c_str());
  }
  std::printf("  %-16s %s\n", "uptime",
              text::time_text(status.value("uptime_ms", std::int64_t{0}) * 1'000'000).c_str());
  for (const Json& application : list_of(status, "applications")) {
    std::printf("application %s, SLO %s ms, model version %s\n", text_of(application, "name").c_str(),
                text_of(application, "slo_ms").c_str(), text_of(application, "model_version").c_str());
    for (const Json& module : list_of(application, "modules")) print_module(module);
  }
  for (const Json& partition : list_of(status, "partitions")) print_partition(partition);
  for (const Json& edge : list_of(status, "edges")) print_edge(edge);
  for (const Json& stream : list_of(status, "coordinated")) print_coordinated(stream);
  for (const Json& stream : list_of(status, "grants"))
    std::printf("grants for %s of %s: %s; %s frames offered, %s turns given, %s frames submitted\n",
                text_of(stream, "name").c_str(), text_of(stream, "client").c_str(), text_of(stream, "standing").c_str(),
                text_of(stream, "offered").c_str(), text_of(stream, "granted").c_str(),
                text_of(stream, "submitted").c_str());
  for (const Json& stream : list_of(status, "streams"))
    if (const std::string text = stream_text(stream); !text.empty()) std::printf("%s\n", text.c_str());
  if (const Json* const change = status.find("change"); change != nullptr && change->is_object()) print_change(*change);
  if (const Json* const replan = status.find("replan"); replan != nullptr && replan->value("state", "off") != "off")
    std::printf("models follow the load: %s; %d changes, %d failures%s%s\n", text_of(*replan, "state").c_str(),
                replan->value("changes", 0), replan->value("failures", 0),
                text_of(*replan, "line").empty() ? "" : "; latest: ", text_of(*replan, "line").c_str());
  for (const Json& warning : list_of(status, "warnings"))
    std::printf("warning: %s\n", warning.is_string() ? warning.get<std::string>().c_str() : warning.dump().c_str());
}

// How each stream's colors are read, how each coordinated stream stands, and each that waits for grants: some of the
// figures of leat top, by the same names.
void add_standings(const Window& window, Json& status) {
  Json coordinated = Json::array(), grants = Json::array(), streams = Json::array();
  const auto all = Json::try_parse(top_json(window));
  const auto add = [](Json& to, const Json& stream, std::initializer_list<const char*> keys) {
    Json row = Json::object();
    for (const char* key : keys) row[key] = stream.value(key, Json());
    to.push_back(row);
  };
  for (const Json& stream : all ? list_of(*all, "streams") : std::vector<Json>()) {
    add(streams, stream, {"name", "client", "width", "height", "color", "damaged"});
    const std::string standing = text_of(stream, "standing");
    if (standing == "open" || standing == "turns") {
      add(grants, stream, {"name", "client", "standing", "offered", "granted", "submitted"});
    } else if (standing != "-") {
      add(coordinated, stream,
          {"name", "client", "task_group", "standing", "interval", "sla_drop_percent", "planned_drop_percent",
           "margin_percent", "measured_drop_percent", "evictions", "observations", "observations_ignored"});
    }
  }
  status["coordinated"] = std::move(coordinated);
  status["grants"] = std::move(grants);
  status["streams"] = std::move(streams);
}

int run(const cli::Arguments& args) {
  const cli::JsonOutput json(args);
  auto watch = Watch::connect_patiently(args.text("socket"));
  if (!watch.ok()) {  // feeders say how their cameras are without it
    if (!json.alone()) std::fputs(camera_states_text(read_camera_states(args.text("socket"))).c_str(), stdout);
    return cli::fail(kCommand.name, watch.error());
  }
  if (args.flag("users")) {
    const Window window{.before = {}, .now = watch->sample()};
    if (!json.alone()) std::fputs(users_text(window).c_str(), stdout);
    return json.write(users_json(window));
  }
  auto text = watch->status_json();
  if (!text.ok()) return cli::fail(kCommand.name, text.error());
  auto status = Json::try_parse(*text);
  if (!status || !status->is_object())
    return cli::fail(kCommand.name, "leatd's answer is not JSON; install the same release of leat and leatd");
  add_standings({.before = {}, .now = watch->sample()}, *status);
  const Json cameras = read_camera_states(args.text("socket"));
  (*status)["cameras"] = cameras;
  if (!json.alone()) {
    print(*status);
    std::fputs(camera_states_text(cameras).c_str(), stdout);
  }
  return json.write(status->dump(2));
}

}  // namespace

extern const cli::Subcommand kLeatStatus;
const cli::Subcommand kLeatStatus = {.command = &kCommand, .run = run};

}  // namespace leat::tools
