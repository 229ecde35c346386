// leatd and `leat feed` on the cameras' videos, as a user types it. What became of each picture is read from the lines
// that it writes, without detections; their price is Leat's.
#include <stdlib.h>
#include <time.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "bench/alternatives/contenders/leatd_run.h"
#include "bench/serving/leatd_child.h"
#include "shm/src/rings/clock.h"
#include "tools/base/json/json.h"
#include "tools/base/subprocess/run.h"

namespace leat::bench::alternatives {

namespace {

constexpr double kNs = 1e9;

// "2026-11-24T02:15:07.123Z" as a time of CLOCK_MONOTONIC; wall_ns: what is to be added to that for the wall clock's.
std::int64_t monotonic_of(const std::string& captured, std::int64_t wall_ns) {
  std::tm utc{};
  const char* const rest = ::strptime(captured.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  const double part = rest != nullptr ? std::strtod(rest, nullptr) : 0;
  return std::int64_t{::timegm(&utc)} * 1'000'000'000 + std::llround(part * kNs) - wall_ns;
}

std::int64_t wall_offset_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec - shm::monotonic_ns();
}

// The feeder's cameras begin when it likes: its pictures are counted from the first line of each.
Status read_lines(const std::string& file, const Run& run, const Timetable& times) {
  const std::int64_t wall_ns = wall_offset_ns();
  std::vector<std::int64_t> first_ns(run.cameras), first_picture(run.cameras, -1);
  std::ifstream in(file);
  for (std::string text; std::getline(in, text);) {
    const auto line = Json::try_parse(text);
    if (!line || !line->contains("stream")) return Error{"leat feed wrote a line that says nothing: " + text};
    const auto camera =
        static_cast<std::uint32_t>(std::strtoul(line->at("stream").get<std::string>().c_str(), nullptr, 10));
    if (camera >= run.cameras) return Error{"leat feed wrote of a stream that nobody asked for"};
    const std::int64_t captured = monotonic_of(line->at("captured").get<std::string>(), wall_ns);
    std::int64_t& first = first_picture[camera];
    if (first < 0) {
      first_ns[camera] = captured;
      first = std::max<std::int64_t>((captured - times.due_ns(camera, 0)) / times.period_ns, 0);
    }
    const std::int64_t since = captured - first_ns[camera];
    const auto picture = static_cast<std::uint64_t>(
        first + std::llround(static_cast<double>(since) / static_cast<double>(times.period_ns)));
    if (picture >= times.pictures) continue;
    const auto outcome = line->at("outcome").get<std::string>();
    if (outcome == "completed" || outcome == "late")
      run.record->answered(camera, picture,
                           times.due_ns(camera, picture) + std::llround(line->at("latency_ms").get<double>() * 1e6));
    else
      run.record->without(camera, picture, outcome == "failed" ? Film::Got::failed : Film::Got::passed);
  }
  // Those that it never sent have no line.
  for (std::uint32_t c = 0; c < run.cameras; ++c)
    for (std::uint64_t i = 0; i < times.pictures; ++i)
      if (run.record->at(c, i).fate == Fate::open) run.record->pass(c, i);
  return Done{};
}

struct Folder {
  Folder() {
    char name[] = "/tmp/leat-alternatives-XXXXXX";
    if (::mkdtemp(name) != nullptr) path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  std::string path;
};

Status feed(const std::string& socket, const Run& run) {
  const Folder folder;
  const std::string lines = folder.path + "/answers.ndjson";
  run.record->say_ready();
  const Timetable times = run.record->wait_to_begin();
  const double seconds = static_cast<double>(times.pictures) * static_cast<double>(times.period_ns) / kNs;
  std::vector<std::string> words = {built("tools/leat/leat"),
                                    "feed",
                                    "--socket",
                                    socket,
                                    "--quiet",
                                    "--realtime",
                                    "--loop",
                                    "--streams",
                                    std::to_string(run.cameras),
                                    "--seconds",
                                    std::to_string(seconds),
                                    "--answers",
                                    lines,
                                    "--min-score",
                                    "1",
                                    "--json"};
  for (const std::string& video : run.pictures->videos()) words.push_back(video);
  const auto fed = subprocess::output_of({.words = std::move(words)}, {.limit = std::chrono::minutes(3)});
  if (!fed.ok()) return Error{fed.error()};
  if (const Status read = read_lines(lines, run, times); !read) return read;
  run.record->done_and_wait();
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Running>> start_leat_feed(const Run& run) {
  return start_with_leatd(run, [&](const std::string& socket, std::uint32_t) { return feed(socket, run); });
}

}  // namespace leat::bench::alternatives
