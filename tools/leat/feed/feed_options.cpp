#include "tools/leat/feed/feed_options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "shm/src/protocol/control_protocol.h"
#include "tools/base/cores/cores.h"

namespace leat::tools {
namespace {

Status read_tasks(const cli::Arguments& args, FeederOptions& base) {
  for (const std::string& text : args.texts("task")) {
    auto task = parse_task(text);
    if (!task.ok()) return Error{task.error()};
    base.tasks.push_back(std::move(*task));
  }
  if (!base.tasks.empty() && base.accuracy <= 0)
    return Error{"--task is for streams whose boxes are tracked; give --accuracy too"};
  if (base.tasks.size() == 1 || base.tasks.size() > kMaxTasks)
    return Error{"tasks take turns, so there must be two to four of them; give --task as often"};
  return Done{};
}

}  // namespace

Result<FeederOptions> read_options(const cli::Arguments& args) {
  FeederOptions base;
  base.socket = args.text("socket");
  base.application = args.text("application");
  base.stall_ns = std::llround(args.real("stall") * 1e9);
  base.slo_ns = static_cast<std::int64_t>(args.real("slo-ms") * 1e6);
  base.depth = static_cast<std::uint32_t>(args.integer("depth"));
  base.rate = args.real("rate");
  base.realtime = args.flag("realtime");
  base.accuracy = args.real("accuracy");
  base.tracker = args.text("tracker");
  base.certainty = args.text("certainty");
  if (!base.certainty.empty() && base.accuracy <= 0)
    return Error{"--certainty is for streams whose boxes are tracked; give --accuracy too"};
  if (const Status tasks = read_tasks(args, base); !tasks.ok()) return Error{tasks.error()};
  if (args.text("answers").empty() &&
      (args.flag("track") || args.real("min-score") > 0 || !args.texts("classes").empty()))
    return Error{"--track, --min-score and --classes are about the lines of --answers; give that too"};
  base.tracks = args.flag("track");
  base.min_score = args.real("min-score");
  base.classes = args.texts("classes");
  base.loop = args.flag("loop");
  base.max_pictures = static_cast<std::uint64_t>(args.integer("frames"));
  base.run_ns = static_cast<std::int64_t>(args.real("seconds") * 1e9);
  base.source_options.raw_format = args.text("raw");
  base.source_options.as_stored = args.flag("as-stored");
  base.source_options.rate = base.rate;
  base.source_options.color = {color_range_of(args.text("color-range")), color_matrix_of(args.text("color-matrix"))};
  base.damaged = damaged_of(args.text("damaged"));
  if (const std::string size = args.text("size");
      !size.empty() &&
      std::sscanf(size.c_str(), "%ux%u", &base.source_options.width, &base.source_options.height) != 2) {
    return Error{"'--size' is '" + size + "', but must be WIDTHxHEIGHT, such as 1280x720"};
  }
  base.source_options.transport = args.text("transport");
  base.source_options.decoder = args.text("decoder");
  base.source_options.bitstream = args.flag("bitstream");
  if (base.source_options.bitstream &&
      (base.accuracy > 0 || !base.source_options.raw_format.empty() || !args.text("annotate").empty()))
    return Error{"--bitstream sends no pixels, and --accuracy, --annotate and --raw are about those; leave one out"};
  set_overload(base, args.text("overload"));
  base.priority = priority_of(args.text("priority"));
  return base;
}

Result<std::vector<FeederOptions>> plan_streams(const cli::Arguments& args, const FeederOptions& all,
                                                const std::vector<Truth>& truths, Judge* judge) {
  std::vector<std::string> sources = args.positionals();
  if (args.flag("stdin")) sources.emplace_back("-");
  if (sources.empty() && args.given("cameras")) return std::vector<FeederOptions>{};
  if (sources.empty())
    return Error{"SOURCE is missing: name a video file, a device or a URL, or give --cameras or --stdin"};
  const std::size_t count =
      args.integer("streams") > 0 ? static_cast<std::size_t>(args.integer("streams")) : sources.size();
  if (std::count(sources.begin(), sources.end(), "-") > 0 && count > 1)
    return Error{"standard input can feed one stream only; leave --streams and the other sources out"};
  std::vector<FeederOptions> streams;
  for (std::size_t i = 0; i < count; ++i) {
    FeederOptions options = all;
    const std::size_t which = i % sources.size();
    options.source = sources[which];
    const std::string shown = shown_name(options.source);
    const std::size_t slash = shown.find_last_of('/');
    options.name = std::to_string(i) + " " + (slash == std::string::npos ? shown : shown.substr(slash + 1));
    if (which < truths.size()) {
      options.truth = &truths[which];
      options.judge = judge;
    }
    streams.push_back(std::move(options));
  }
  return streams;
}

DecodersRun decoders_of(const cli::Arguments& args) {
  const std::string word = args.text("decoders"), socket = args.text("socket");
  DecoderPlace place = word == "apart"      ? DecoderPlace::apart
                       : word == "yield"    ? DecoderPlace::yield
                       : word == "anywhere" ? DecoderPlace::anywhere
                                            : DecoderPlace::automatic;
  // As fast as answers come, nothing is late, and the partitions wait for what is decoded.
  if (place == DecoderPlace::automatic && !args.flag("realtime") && args.real("rate") <= 0 && !args.given("cameras"))
    place = DecoderPlace::anywhere;
  leat_error error{};
  std::optional<std::vector<std::uint32_t>> taken;
  if (auto observer = shm::Observer::connect(socket.empty() ? ::leat_default_socket() : socket, &error);
      observer.ok()) {
    if (const auto status = observer->status(&error); status.ok()) taken = partition_cores(*status);
  }
  const auto usable = usable_cores();
  return place_decoders(place, usable.ok() ? *usable : std::vector<std::uint32_t>{}, taken);
}

}  // namespace leat::tools
