// What leatd costs a cascade: pages a second of docs/examples/ocr.toml (find, turn, read) through leatd against the
// same three modules called one after the other in a plain loop, on the same core, round by round in turn.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/serving/leatd_child.h"
#include "bench/serving/peers.h"
#include "engine/exec/module.h"
#include "leat/client.hpp"
#include "leat/result_parts.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"
#include "tools/scene/text/ocr_pictures.h"

namespace {

using namespace leat;

constexpr std::uint32_t kBatch = 8, kInFlight = 6;

constexpr cli::Option kOptions[] = {
    cli::integer_option("rounds", "12", 1, 1000, "rounds of both"),
    cli::integer_option("pages", "4", 1, 1000, "pages of a round, beyond the six in flight"),
    cli::real_option("seconds", "10", 1, 600, "how long pages come at the loop's own pace", "S"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "ocr_chain",
    .summary = "measures what leatd costs a cascade of three models",
    .description =
        "The page of the tests, nine texts on 800x600 pixels, through PP-OCR: in a plain loop on one core, and through "
        "a "
        "leatd whose one partition is that core, with six pages in flight, nothing ever dropped. By the clock, and by "
        "the processor time that the loop and the worker took, which other programs on the machine do not change. "
        "Then a camera of pages at the loop's own pace, whether leatd keeps up or not, each with six times the loop's "
        "time for one: what comes in time, and how long it took. "
        "`tools/setup --example ocr` fetches the models.",
    .options = kOptions};

struct Step {
  const char *file, *preprocess, *postprocess;
  std::uint32_t batch;
};
// As docs/examples/ocr.toml has them.
constexpr Step kSteps[] = {
    {"find.onnx", "longest=960 multiple=32 bgr norm=half", "lines threshold=0.3 score=0.5 grow=1.6", 2},
    {"turn.onnx", "quad height=48 widths=192 wide=start bgr norm=half", "classes act=none", kBatch},
    {"read.onnx", "quad flip=0.9 height=48 widths=96,160,240,320,480,640,960 wide=split bgr norm=half",
     "text ctc keys=keys.txt", kBatch}};

// Nanoseconds that a process' main thread ran.
std::int64_t ran_ns(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  std::int64_t ran = 0;
  return file >> ran ? ran : 0;
}
pid_t worker_of(pid_t daemon) {
  std::ifstream file("/proc/" + std::to_string(daemon) + "/task/" + std::to_string(daemon) + "/children");
  pid_t child = 0;
  return file >> child ? child : 0;
}

struct Rate {
  double by_clock = 0, by_processor = 0;  // pages a second
};
struct Camera {
  std::vector<double> took_ms;  // of each page in time, from its moment to its answer
  int offered = 0;
  double seconds = 0;
};

std::string all_text(const leat_result* result, std::uint64_t room) {
  leat_part_view view;
  std::string out;
  if (leat_find_part(result, room, LEAT_PART_text, nullptr, &view) == 0) return out;
  for (std::uint32_t i = 0; i < view.dims[0]; ++i) {
    leat_text line;
    const char* const text = leat_text_at(&view, i, &line);
    out.append(text != nullptr ? text : "", line.length).append("\n");
  }
  return out;
}

class Loop {
 public:
  Status open(const scene::TextPicture& page) {
    page_ = &page;
    std::uint64_t at = LEAT_PAYLOAD_OFFSET;
    std::vector<leat_part> parts;
    for (std::uint32_t m = 0; m < std::size(kSteps); ++m) {
      auto module = exec::Module::open({.name = kSteps[m].file,
                                        .model_path = std::string(LEAT_OCR_MODELS) + "/" + kSteps[m].file,
                                        .preprocess = kSteps[m].preprocess,
                                        .postprocess = kSteps[m].postprocess,
                                        .batch_max = kSteps[m].batch});
      if (!module) return Error{module.error()};
      for (const exec::PartSpec& need : (*module)->parts()) {
        const std::uint32_t rows = m == 0 ? 1 : 64;
        parts.push_back(exec::entry_of(need, m, m != 0, rows));
        parts.back().offset = at;
        at += exec::round_part((need.bytes + need.tail) * rows);
      }
      modules_.push_back(std::move(*module));
    }
    slot_.resize(at);
    std::memcpy(slot_.data() + LEAT_PARTS_OFFSET, parts.data(), parts.size() * sizeof(leat_part));
    result()->part_count = static_cast<std::uint32_t>(parts.size());
    return Done{};
  }
  bool once() {
    std::array<exec::ItemReport, kBatch> reports;
    const exec::Item frame{.frame = page_->view(), .result = result(), .parts = exec::parts_of(result(), 0)};
    if (!modules_[0]->run({&frame, 1}, reports)) return false;
    for (std::uint32_t m = 1; m < modules_.size(); ++m) {
      for (std::uint32_t first = 0; first < result()->detection_count; first += kBatch) {
        std::array<exec::Item, kBatch> items;
        const std::uint32_t count = std::min(kBatch, result()->detection_count - first);
        for (std::uint32_t i = 0; i < count; ++i) {
          items[i] = frame;
          items[i].parts = exec::parts_of(result(), m);
          items[i].detection = static_cast<std::int32_t>(first + i);
        }
        if (!modules_[m]->run({items.data(), count}, reports)) return false;
      }
    }
    return true;
  }
  std::string text() const { return all_text(reinterpret_cast<const leat_result*>(slot_.data()), slot_.size()); }
  std::optional<Rate> rate(int pages) {
    const std::int64_t start = shm::monotonic_ns(), ran = ran_ns(getpid());
    for (int i = 0; i < pages; ++i)
      if (!once()) return std::nullopt;
    return Rate{pages * 1e9 / static_cast<double>(shm::monotonic_ns() - start),
                pages * 1e9 / static_cast<double>(ran_ns(getpid()) - ran)};
  }

 private:
  leat_result* result() { return reinterpret_cast<leat_result*>(slot_.data()); }
  const scene::TextPicture* page_ = nullptr;
  std::vector<std::unique_ptr<exec::Module>> modules_;
  std::vector<std::byte> slot_;
};

class Served {
 public:
  Status open(const bench::Cores& cores, const scene::TextPicture& page) {
    std::string config = "scheduler_core = " + std::to_string(cores.far) +
                         "\n[policy]\nqueue_ahead = 1\n[[partition]]\nname = \"p\"\nkind = \"cpu\"\ncores = \"" +
                         std::to_string(cores.near) + "\"\n[[application]]\nname = \"ocr\"\nslo_ms = 60000\n";
    for (std::size_t m = 0; m < std::size(kSteps); ++m) {
      const Step& s = kSteps[m];
      config += "[[application.module]]\nname = \"" + std::to_string(m) + "\"\nmodel = \"" LEAT_OCR_MODELS "/" +
                s.file + "\"\npreprocess = \"" + s.preprocess + "\"\npostprocess = \"" + s.postprocess +
                "\"\nbatch = " + std::to_string(s.batch) + "\n";
      if (m > 0) config += "after = [\"" + std::to_string(m - 1) + "\"]\nitems_per_request = 9\nfan_out_cap = 64\n";
    }
    auto daemon = bench::LeatdChild::start(bench::leatd_beside(), config);
    if (!daemon) return Error{daemon.error()};
    daemon_ = std::move(*daemon);
    StreamOptions o;
    o.application = "ocr";
    o.format = LEAT_FORMAT_rgb24;
    o.width = page.width, o.height = page.height;
    o.depth = o.slots = kInFlight;
    o.overload = LEAT_OVERLOAD_never_drop;
    auto connection = bench::connect(*daemon_, "ocr_chain", o, std::chrono::seconds(200));
    if (!connection.ok()) return Error{connection.error()};
    client_.emplace(std::move(connection->client));
    stream_.emplace(std::move(connection->stream));
    std::vector<Frame> held;  // every slot is written once
    while (auto frame = stream_->acquire()) {
      for (std::uint32_t y = 0; y < page.height; ++y)
        std::memcpy(frame->plane(0) + std::size_t{y} * (*frame)->strides[0],
                    page.rgb.data() + std::size_t{y} * page.width * 3, std::size_t{page.width} * 3);
      held.push_back(std::move(*frame));
    }
    return Done{};
  }
  std::optional<Rate> rate(int pages, const std::string& expected, int* wrong) {
    const pid_t worker = worker_of(daemon_->pid());
    const std::int64_t start = shm::monotonic_ns(), ran = ran_ns(worker);
    int submitted = 0;
    for (int answered = 0; answered < pages; ++answered) {
      for (; submitted < pages; ++submitted) {
        auto frame = stream_->acquire();
        if (!frame) break;
        if (frame->submit() != LEAT_ERROR_ok) return std::nullopt;
      }
      const auto answer = client_->next_answer(std::chrono::seconds(100));
      if (!answer || answer->outcome() != Outcome::completed) return std::nullopt;
      if (all_text(answer->result(), answer->raw().result_bytes) != expected) ++*wrong;
    }
    return Rate{pages * 1e9 / static_cast<double>(shm::monotonic_ns() - start),
                pages * 1e9 / static_cast<double>(ran_ns(worker) - ran)};
  }
  // Pages that come every period_ns, as `leat feed --fps` sends them; one for which there is no slot is lost.
  std::optional<Camera> camera(std::int64_t period_ns, double seconds) {
    Camera out;
    const std::int64_t start = shm::monotonic_ns(), end = start + static_cast<std::int64_t>(seconds * 1e9);
    std::int64_t due = start;
    int in_flight = 0;
    while (due < end || in_flight > 0) {
      for (; due < end && due <= shm::monotonic_ns(); due += period_ns) {
        ++out.offered;
        auto frame = stream_->acquire();
        if (!frame) continue;
        leat_submit_options options{};
        options.capture_ns = due;
        options.deadline_ns = due + kInFlight * period_ns;
        if (frame->submit(options) != LEAT_ERROR_ok) return std::nullopt;
        ++in_flight;
      }
      const std::int64_t wait = due < end ? std::max<std::int64_t>(0, due - shm::monotonic_ns()) : 100'000'000'000;
      const auto answer = client_->next_answer(std::chrono::nanoseconds(wait));
      if (!answer) {
        if (!client_->connected()) return std::nullopt;
        continue;
      }
      --in_flight;
      if (answer->outcome() == Outcome::completed)
        out.took_ms.push_back(static_cast<double>(shm::monotonic_ns() - answer->raw().capture_ns) / 1e6);
    }
    out.seconds = static_cast<double>(end - start) / 1e9;
    return out;
  }

 private:
  std::unique_ptr<bench::LeatdChild> daemon_;
  std::optional<Client> client_;
  std::optional<Stream> stream_;
};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const bool there =
      static_cast<bool>(std::ifstream(LEAT_OCR_MODELS "/keys.txt")) && scene::TextPainter::has_font("Sans");
  if (!there) {
    std::printf("{\"pages_per_cpu_second_over_loop\": null, \"wrong\": null}\n");
    std::fprintf(stderr, "ocr_chain: `tools/setup --example ocr` fetches the models; fonts: fonts-dejavu-core\n");
    return 0;
  }
  const bench::Cores cores = bench::choose_cores();
  if (cores.near == cores.far) return cli::fail("ocr_chain", "only one core may be used here; give it two");
  bench::prefer();
  const scene::TextPainter painter;
  const scene::TextPicture page = scene::ocr_page(painter);
  bench::pin(cores.near);
  Loop loop;
  if (const auto status = loop.open(page); !status) return cli::fail("ocr_chain", status.error());
  if (!loop.once()) return cli::fail("ocr_chain", "the loop failed");
  const std::string expected = loop.text();
  bench::pin(cores.far);
  Served served;
  if (const auto status = served.open(cores, page); !status) return cli::fail("ocr_chain", status.error());
  const int pages = static_cast<int>(args.integer("pages")), rounds = static_cast<int>(args.integer("rounds"));
  int wrong = 0;
  std::vector<double> clock, processor, by_clock, by_processor, paces;
  (void)served.rate(static_cast<int>(kInFlight), expected, &wrong);  // warm
  for (int r = 0; r < rounds; ++r) {
    bench::pin(cores.near);
    const auto before = loop.rate(pages);
    bench::pin(cores.far);
    const auto through = served.rate(pages + static_cast<int>(kInFlight), expected, &wrong);
    bench::pin(cores.near);
    const auto after = loop.rate(pages);
    if (!before || !through || !after) return cli::fail("ocr_chain", "a page was not completed; look at leatd's log");
    paces.push_back(before->by_clock), paces.push_back(after->by_clock);
    by_clock.push_back(through->by_clock), by_processor.push_back(through->by_processor);
    clock.push_back(2 * through->by_clock / (before->by_clock + after->by_clock));
    processor.push_back(2 * through->by_processor / (before->by_processor + after->by_processor));
  }
  bench::pin(cores.far);
  const double pace = bench::figure(paces).median;
  const auto camera = served.camera(static_cast<std::int64_t>(1e9 / pace), args.real("seconds"));
  if (!camera || camera->took_ms.empty()) return cli::fail("ocr_chain", "no page of the camera came in time");
  std::vector<double> took = camera->took_ms;
  std::sort(took.begin(), took.end());
  const double in_time = static_cast<double>(took.size()) / camera->seconds,
               p99 = took[std::min(took.size() - 1, took.size() * 99 / 100)];
  const auto c = bench::figure(clock), p = bench::figure(processor), fc = bench::figure(by_clock),
             fp = bench::figure(by_processor);
  const auto spread = [](const bench::Figure& f) {
    return Json{{"median", f.median}, {"p10", f.low}, {"p90", f.high}, {"rounds", f.rounds}};
  };
  const Json out = {{"pages_per_second_over_loop", c.median},
                    {"pages_per_cpu_second_over_loop", p.median},
                    {"camera",
                     {{"offered_per_second", pace},
                      {"in_time_per_second", in_time},
                      {"in_time_over_loop", in_time / pace},
                      {"pages", camera->offered},
                      {"p50_ms", took[took.size() / 2]},
                      {"p99_ms", p99},
                      {"loop_ms", 1e3 / pace}}},
                    {"wrong", wrong},
                    {"spread",
                     {{"clock", spread(c)},
                      {"processor", spread(p)},
                      {"pages_per_second", spread(fc)},
                      {"pages_per_cpu_second", spread(fp)}}}};
  const cli::JsonOutput json(args);
  if (const int failed = json.write(out.dump(2)); failed != 0 || json.alone()) return failed;
  std::printf("pages a second through leatd            %6.2f  (p10 %.2f, p90 %.2f, %zu rounds)\n", fc.median, fc.low,
              fc.high, fc.rounds);
  std::printf("  over the plain loop, by the clock     %6.3f  (p10 %.3f, p90 %.3f)  bar: >= 0.95\n", c.median, c.low,
              c.high);
  std::printf("  over the plain loop, by processor time%6.3f  (p10 %.3f, p90 %.3f)\n", p.median, p.low, p.high);
  std::printf("a camera at the loop's pace, in time     %6.2f of %.2f a second: %.3f  bar: >= 0.95\n", in_time, pace,
              in_time / pace);
  std::printf(
      "  from its moment to its answer          %6.0f ms half of them, %.0f ms 99 of 100; the loop takes %.0f\n",
      took[took.size() / 2], p99, 1e3 / pace);
  std::printf("answers that differ from the loop's     %6d\n", wrong);
  return 0;
}
