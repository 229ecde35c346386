// Coordinated streams on a leatd with a real detector: clients whose cameras film what trackers are measured on
// (tools/scene/tracking/motion_film.h), against the same clients uncoordinated, round by round in turn.
//
// First every frame of the clips is detected once. What tracking loses from any frame on is then recorded by the
// trackers themselves (tools/scene/tracking/drop_table.h), against the film's truth and above what a detection of that
// very frame loses. In the rounds clients send real pictures when they are asked for (or all, where they are not
// coordinated), report what the record says, and are judged by when their answers came.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/serving/leatd_child.h"
#include "bench/study.h"
#include "engine/sim/shown.h"
#include "leat/client.hpp"
#include "leat/look_back.hpp"
#include "tools/scene/tracking/drop_table.h"
#include "tools/scene/tracking/motion_film.h"

namespace {

using namespace leat;

constexpr std::uint32_t kWidth = 640, kHeight = 360, kScale = 2;
constexpr std::uint32_t kFrames = 120, kAll = kFrames + scene::DropTable::kStrides;  // of a clip, then it begins again
constexpr std::int64_t kSecond = 1'000'000'000;

constexpr cli::Option kOptions[] = {
    cli::integer_option("clients", "4", 1, 64, "cameras"),
    cli::real_option("rate", "60", 1, 120, "frames a second of each", "HZ"),
    cli::real_option("accuracy", "0.06", 0.001, 0.5, "what each may lose", "DROP"),
    cli::real_option("seconds", "12", 4, 600, "of a round; the first 3 are not judged", "S"),
    cli::integer_option("rounds", "3", 1, 100, "of each kind"),
    {.name = "score",
     .type = cli::Type::text,
     .value = "LEAST",
     .fallback = "0.4",
     .help = "of a detection that is answered; the demo has 0.2"},
    bench::kLeatdOption,
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "coordinated_serve",
    .summary = "coordinated streams with the demo's detector against the same streams uncoordinated",
    .options = kOptions};

using Pixels = std::vector<std::uint8_t>;

struct Clip {
  std::vector<Pixels> pictures;  // nv12
  scene::Footage footage;
  scene::DropTable table;
};

Clip film(std::string_view kind, double rate) {
  scene::MotionFilm film(*scene::motion_kind(kind), {.seed = 5, .width = kWidth, .height = kHeight, .fps = rate});
  Clip clip;
  clip.footage = {.video = std::string(kind), .width = kWidth / kScale, .height = kHeight / kScale, .fps = rate};
  Pixels rgb(std::size_t{3} * kWidth * kHeight);
  for (std::uint32_t f = 0; f < kAll; ++f) {
    std::vector<TrackedBox>& truth = clip.footage.truth.emplace_back();
    for (const scene::Object& o : film.render(f, rgb.data(), std::size_t{3} * kWidth))
      if (!o.ignore) truth.push_back({o.x0 / kScale, o.y0 / kScale, o.x1 / kScale, o.y1 / kScale});
    Pixels& nv12 = clip.pictures.emplace_back(rgb.size() / 2);
    scene::to_nv12(rgb.data(), std::size_t{3} * kWidth, kWidth, kHeight, nv12.data());
    for (std::uint32_t y = 0; y < kHeight; y += kScale) {
      for (std::uint32_t x = 0; x < kWidth; x += kScale) {
        const std::uint8_t *a = nv12.data() + std::size_t{y} * kWidth + x, *b = a + kWidth;
        clip.footage.pixels.push_back(static_cast<std::uint8_t>((a[0] + a[1] + b[0] + b[1]) / 4));
      }
    }
  }
  return clip;
}

// One client with one stream.
struct Camera {
  static Result<std::unique_ptr<Camera>> open(const std::string& socket, const Clip& clip, double rate,
                                              double accuracy) {
    auto c = std::make_unique<Camera>();
    c->clip = &clip;
    auto client = Client::connect(socket, "camera");
    if (!client.ok()) return Error{client.error()};
    c->client.emplace(std::move(*client));
    StreamOptions o;
    o.application = "find";
    o.format = LEAT_FORMAT_nv12;
    o.width = kWidth;
    o.height = kHeight;
    o.depth = 4;
    o.period_ns = std::llround(1e9 / rate);
    o.sla_drop_ppm = static_cast<std::uint32_t>(std::lround(1e6 * accuracy));
    auto stream = c->client->open_stream(o);
    if (!stream.ok()) return Error{stream.error()};
    c->stream.emplace(std::move(*stream));
    return c;
  }
  bool submit(std::uint64_t number, std::int64_t capture_ns) {
    auto frame = stream->acquire();
    if (!frame) return false;
    const Pixels& from = clip->pictures[number % kFrames];
    const leat_frame& to = frame->raw();
    for (std::uint32_t p = 0, row = 0; p < 2; ++p)
      for (std::uint32_t y = 0; y < kHeight >> p; ++y, ++row)
        std::memcpy(to.planes[p] + std::size_t{y} * to.strides[p], from.data() + std::size_t{row} * kWidth, kWidth);
    leat_submit_options options{};
    options.capture_ns = capture_ns;
    options.cookie = number;
    return frame->submit(options) == LEAT_ERROR_ok;
  }
  // Whoever is evicted shows no more than he has, and is not judged until he is let in again.
  void stands(std::int64_t now) {
    leat_schedule s{};
    const bool in = leat_schedule_of(stream->raw(), &s) == LEAT_ERROR_ok && s.standing == LEAT_STANDING_ADMITTED;
    if (admitted && !in) shown->evicted(now), ++evictions;
    admitted = in;
    admitted_frames += in ? 1 : 0;
  }
  // An answer of that frame, later than any before.
  void report(std::uint64_t number) {
    const auto drop = [&](std::uint64_t from) {
      return std::clamp(clip->table.observed(from, number - from), 0.0, 1.0);
    };
    if (source)
      (void)leat_observe(stream->raw(), static_cast<std::uint32_t>(std::min<std::uint64_t>(number - *source, 255)),
                         drop(*source));
    if (const auto from = look.answered(number))
      (void)leat_observe_far(stream->raw(), static_cast<std::uint32_t>(number - *from), drop(*from));
  }
  const Clip* clip = nullptr;
  bool admitted = false;
  std::uint64_t admitted_frames = 0, evictions = 0;
  std::optional<Client> client;
  std::optional<Stream> stream;
  std::int64_t phase_ns = 0, period_ns = 0;
  std::uint64_t next = 0, answers = 0;
  std::optional<std::uint64_t> source;
  LookBack look;
  std::optional<sim::Shown> shown;
};

std::vector<TrackedBox> boxes_of(const leat_result& result) {
  std::vector<TrackedBox> out;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS); ++i) {
    const leat_detection& d = result.detections[i];
    out.push_back({d.x0 / kScale, d.y0 / kScale, d.x1 / kScale, d.y1 / kScale});
  }
  return out;
}

// Every frame once, one after the other; the mean time that one takes.
Result<double> detect(const std::string& socket, Clip& clip) {
  auto camera = Camera::open(socket, clip, 1000, 0);
  if (!camera.ok()) return Error{camera.error()};
  std::vector<double> took;
  for (std::uint32_t f = 0; f < kAll; ++f) {
    const std::int64_t now = leat_now_ns();
    // The frames behind the clip's end are looked at too: what follows from its last ones is tracked over them.
    auto frame = (*camera)->stream->acquire();
    if (!frame) return Error{"no slot is free"};
    const leat_frame& to = frame->raw();
    for (std::uint32_t p = 0, row = 0; p < 2; ++p)
      for (std::uint32_t y = 0; y < kHeight >> p; ++y, ++row)
        std::memcpy(to.planes[p] + std::size_t{y} * to.strides[p], clip.pictures[f].data() + std::size_t{row} * kWidth,
                    kWidth);
    if (frame->submit({}) != LEAT_ERROR_ok) return Error{leat_last_error()};
    auto answer = (*camera)->client->next_answer(std::chrono::seconds(10));
    if (!answer || answer->result() == nullptr) return Error{"leatd did not answer a frame"};
    took.push_back(1e-9 * static_cast<double>(leat_now_ns() - now));
    clip.footage.detected.push_back(boxes_of(*answer->raw().result));
  }
  return bench::median(took);
}

struct Round {
  double within = 0, seconds = 0, drop = 0, detections = 0, admitted = 0,
         evictions = 0;  // admitted: clients, in the mean
};

Result<Round> play(const std::string& socket, const std::vector<Clip>& clips, const cli::Arguments& args,
                   bool coordinated, double single_s) {
  const double rate = args.real("rate"), sla = args.real("accuracy");
  const auto count = static_cast<std::size_t>(args.integer("clients"));
  std::vector<std::unique_ptr<Camera>> cameras;
  for (std::size_t i = 0; i < count; ++i) {
    auto camera = Camera::open(socket, clips[i % clips.size()], rate, coordinated ? sla : 0);
    if (!camera.ok()) return Error{camera.error()};
    cameras.push_back(std::move(*camera));
  }
  const std::int64_t start = leat_now_ns() + kSecond / 10, end = start + std::llround(1e9 * args.real("seconds"));
  for (std::size_t i = 0; i < count; ++i) {
    Camera& c = *cameras[i];
    c.period_ns = std::llround(1e9 / rate);
    c.phase_ns = start + static_cast<std::int64_t>(i) * 7'654'321 % c.period_ns;
    const scene::DropTable* const table = &c.clip->table;
    c.shown.emplace(sim::Shown::Film{
        .phase_ns = c.phase_ns,
        .period_ns = c.period_ns,
        .sla_drop = sla,
        .single = static_cast<std::uint32_t>(std::ceil(single_s * rate)),
        .from_ns = start + 3 * kSecond,
        .extra = [table](std::uint64_t frame, std::uint32_t stride) { return table->extra(frame, stride); }});
  }
  for (;;) {
    Camera* first = nullptr;
    for (const auto& c : cameras)
      if (first == nullptr || c->phase_ns + static_cast<std::int64_t>(c->next) * c->period_ns <
                                  first->phase_ns + static_cast<std::int64_t>(first->next) * first->period_ns)
        first = c.get();
    const std::int64_t due = first->phase_ns + static_cast<std::int64_t>(first->next) * first->period_ns;
    if (due >= end) break;
    const timespec until{due / kSecond, due % kSecond};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    for (const auto& c : cameras) {
      while (auto answer = c->client->next_answer()) {
        if (answer->result() == nullptr) continue;
        ++c->answers;
        const std::uint64_t number = answer->raw().cookie;
        if (c->admitted || !coordinated) c->shown->answer(answer->raw().answered_ns, number);
        if (c->source && number <= *c->source) continue;
        if (coordinated) c->report(number);
        c->source = number;
      }
    }
    const std::uint64_t number = first->next++;
    if (coordinated) first->stands(due);
    if (leat_should_submit(first->stream->raw(), due) != 0) (void)first->submit(number, due);
  }
  Round r;
  double kept = 0;
  for (const auto& c : cameras) {
    c->shown->show(end);
    kept += c->shown->kept();
    r.seconds += c->shown->seconds();
    r.drop += c->shown->mean_drop() / static_cast<double>(count);
    r.detections += static_cast<double>(c->answers) / args.real("seconds");
    r.admitted += coordinated ? static_cast<double>(c->admitted_frames) / static_cast<double>(c->next) : 1;
    r.evictions += static_cast<double>(c->evictions);
  }
  r.within = r.seconds == 0 ? 0 : kept / r.seconds;
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const cli::JsonOutput json(args);
  const std::string config =
      "[[application]]\nname = \"find\"\nslo_ms = 200\n  [[application.module]]\n  name = \"detect\"\n"
      "  model = \"" LEAT_MODELS
      "/detect.onnx\"\n  preprocess = \"letterbox mean=0.5 std=0.5\"\n"
      "  postprocess = \"boxes stride=8 score=" +
      args.text("score") +
      " iou=0.6\"\n"
      "  labels = [\"object\"]\n  batch = 4\n";
  auto daemon = bench::LeatdChild::start(bench::leatd_of(args), config, "cpu = \"auto\"\n");
  if (!daemon.ok()) return cli::fail(kCommand.name, daemon.error());
  std::vector<Clip> clips;
  for (const char* kind : {"walk", "shaky"}) clips.push_back(film(kind, args.real("rate")));
  std::vector<double> singles, detector;
  for (Clip& clip : clips) {
    Result<double> single = Error{"leatd did not serve"};
    for (int tries = 0; tries < 300 && (*daemon)->alive() && !single.ok(); ++tries) {
      clip.footage.detected.clear();
      single = detect((*daemon)->socket(), clip);
      if (!single.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it measures its model first
    }
    if (!single.ok()) return cli::fail(kCommand.name, single.error());
    singles.push_back(*single);
    clip.table = scene::record_drops(clip.footage, 1, scene::AnyTracker::blocks());
    for (std::size_t f = 0; f < kAll; ++f)
      detector.push_back(distance(clip.footage.detected[f], clip.footage.truth[f]));
  }
  Json out = {{"clients", args.integer("clients")},
              {"rate", args.real("rate")},
              {"sla_drop", args.real("accuracy")},
              {"single_ms", 1e3 * bench::mean(singles)},
              {"detector_off_truth", bench::mean(detector)},
              {"lost_at_stride",
               {{"4", clips[0].table.mean_extra(4)},
                {"8", clips[0].table.mean_extra(8)},
                {"16", clips[0].table.mean_extra(16)}}}};
  std::vector<double> ratios;
  for (std::int64_t i = 0; i < args.integer("rounds"); ++i) {
    double detections[2] = {};
    for (const bool coordinated : {true, false}) {
      const auto round = play((*daemon)->socket(), clips, args, coordinated, bench::mean(singles));
      if (!round.ok()) return cli::fail(kCommand.name, round.error());
      detections[coordinated ? 1 : 0] = round->detections;
      out["rounds"][coordinated ? "coordinated" : "uncoordinated"].push_back(
          {{"within_sla", round->within},
           {"mean_drop", round->drop},
           {"seconds", round->seconds},
           {"admitted", round->admitted},
           {"evictions", round->evictions},
           {"detections_per_second", round->detections}});
    }
    ratios.push_back(detections[0] > 0 ? detections[1] / detections[0] : 0);
  }
  for (const char* kind : {"coordinated", "uncoordinated"}) {
    for (const char* key : {"within_sla", "mean_drop", "admitted", "evictions", "detections_per_second"}) {
      std::vector<double> all;
      for (const Json& round : out["rounds"][kind]) all.push_back(round[key].get<double>());
      out[kind][key] = bench::mean(all);
    }
  }
  out["detections_ratio"] = bench::median(ratios);
  if (const int failed = json.write(out.dump(1)); failed != 0 || json.alone()) return failed;
  std::printf("%lld clients at %.0f/s, one detection takes %.1f ms, is itself %.3f off the truth\n",
              static_cast<long long>(args.integer("clients")), args.real("rate"), 1e3 * bench::mean(singles),
              bench::mean(detector));
  for (const char* kind : {"coordinated", "uncoordinated"})
    std::printf(
        "%-14s %5.1f %% of seconds within %.3f, %.4f lost in the mean, %.1f admitted, %.1f evictions, %.1f "
        "detections/s\n",
        kind, 100 * out[kind]["within_sla"].get<double>(), args.real("accuracy"), out[kind]["mean_drop"].get<double>(),
        out[kind]["admitted"].get<double>(), out[kind]["evictions"].get<double>(),
        out[kind]["detections_per_second"].get<double>());
  std::printf("detections, coordinated over uncoordinated: %.2f\n", bench::median(ratios));
  return 0;
}
