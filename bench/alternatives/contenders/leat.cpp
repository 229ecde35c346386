// leatd and a process of clients: a thread and a connection a camera, with the library's defaults.
#include <thread>

#include "bench/alternatives/contenders/leatd_run.h"
#include "leat/client.hpp"
#include "shm/src/rings/clock.h"

namespace leat::bench::alternatives {

namespace {

constexpr std::int64_t kLinger = 2'000'000'000;  // for answers, behind the last picture

class Camera {
 public:
  static Result<Camera> open(const std::string& socket, const Run& run, std::uint32_t camera, bool grants) {
    auto client = Client::connect(socket, "camera" + std::to_string(camera));
    if (!client.ok()) return Error{client.error()};
    StreamOptions options;
    options.application = "shapes";
    options.format = run.pictures->format();
    options.width = kWidth, options.height = kHeight;
    options.waits_for_grants = grants ? 1 : 0;
    if (run.parties == Parties::classes)
      options.priority = party_of(run.parties, camera) == 0 ? LEAT_PRIORITY_PROTECTED : LEAT_PRIORITY_NORMAL;
    auto stream = client->open_stream(options);
    if (!stream.ok()) return Error{stream.error()};
    auto film = run.pictures->open(camera);
    if (!film.ok()) return Error{film.error()};
    return Camera(run, camera, std::move(*film), std::move(*client), std::move(*stream));
  }

  void film(const Timetable& times) {
    for (std::uint64_t picture = 0; picture < times.pictures; ++picture) {
      take_answers(times.due_ns(camera_, picture));
      const std::uint64_t newest = std::max(times.taken(camera_, shm::monotonic_ns()), picture + 1) - 1;
      run_.record->pass(camera_, picture, newest);
      picture = newest;
      if (const auto got = film_->go_to(picture); got != Film::Got::ready)
        run_.record->without(camera_, picture, got);
      else
        submit(picture, times.due_ns(camera_, picture));
    }
    take_the_rest();
  }

  // Waits with the newest picture until it is wanted; what is coded is decoded, since others need it, but not written.
  void film_what_is_wanted(const Timetable& times) {
    for (std::uint64_t picture = 0; picture < times.pictures;) {
      take_answers(times.due_ns(camera_, picture));
      const std::uint64_t newest = std::max(times.taken(camera_, shm::monotonic_ns()), picture + 1) - 1;
      run_.record->pass(camera_, picture, newest);
      picture = newest;
      const std::int64_t due_ns = times.due_ns(camera_, picture), next_ns = due_ns + times.period_ns;
      if (const auto got = film_->go_to(picture); got != Film::Got::ready) {
        run_.record->without(camera_, picture++, got);
        continue;
      }
      bool wanted = stream_.wanted(due_ns);
      for (std::int64_t now = shm::monotonic_ns(); !wanted && now < next_ns; now = shm::monotonic_ns()) {
        (void)client_.wait_any(std::chrono::nanoseconds(next_ns - now));
        while (take_answer(0)) {
        }
        wanted = stream_.wanted(due_ns);
      }
      if (wanted)
        submit(picture, due_ns);
      else
        run_.record->pass(camera_, picture);
      ++picture;
    }
    take_the_rest();
  }

 private:
  Camera(const Run& run, std::uint32_t camera, std::unique_ptr<Film> film, Client client, Stream stream)
      : run_(run), camera_(camera), film_(std::move(film)), client_(std::move(client)), stream_(std::move(stream)) {}

  void submit(std::uint64_t picture, std::int64_t due_ns) {
    auto frame = stream_.acquire();
    if (!frame) return run_.record->pass(camera_, picture);  // every slot is in use
    if (!film_->write(frame->raw())) return run_.record->without(camera_, picture, Film::Got::failed);
    if (frame->submit({.capture_ns = due_ns, .cookie = picture}) != LEAT_ERROR_ok)
      return run_.record->pass(camera_, picture);
    ++in_flight_;
  }

  void take_the_rest() {
    const std::int64_t limit = shm::monotonic_ns() + kLinger;
    while (in_flight_ > 0 && shm::monotonic_ns() < limit) take_answer(limit - shm::monotonic_ns());
  }

  void take_answers(std::int64_t until_ns) {
    std::int64_t left = until_ns - shm::monotonic_ns();
    while (take_answer(std::max<std::int64_t>(left, 0)) || left > 0) left = until_ns - shm::monotonic_ns();
  }

  bool take_answer(std::int64_t wait_ns) {
    const auto answer = client_.next_answer(std::chrono::nanoseconds(wait_ns));
    if (!answer) return false;
    --in_flight_;
    const std::uint64_t picture = answer->raw().cookie;
    const Outcome outcome = answer->outcome();
    if (outcome == Outcome::completed || outcome == Outcome::late || outcome == Outcome::failed)
      run_.record->ran(camera_, picture, outcome != Outcome::failed);
    else
      run_.record->pass(camera_, picture);
    return true;
  }

  const Run& run_;
  std::uint32_t camera_;
  std::unique_ptr<Film> film_;
  Client client_;
  Stream stream_;
  std::uint64_t in_flight_ = 0;
};

// One process for all cameras; of two users one for those of each.
Status film(const std::string& socket, std::uint32_t party, const Run& run, bool grants) {
  std::vector<Camera> cameras;
  for (std::uint32_t c = 0; c < run.cameras; ++c) {
    if (run.parties == Parties::users && party_of(run.parties, c) != party) continue;
    auto camera = Camera::open(socket, run, c, grants);
    if (!camera.ok()) return Error{camera.error()};
    cameras.push_back(std::move(*camera));
  }
  run.record->say_ready();
  const Timetable times = run.record->wait_to_begin();
  std::vector<std::jthread> threads;
  for (Camera& camera : cameras)
    threads.emplace_back([&] { grants ? camera.film_what_is_wanted(times) : camera.film(times); });
  threads.clear();
  run.record->done_and_wait();
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Running>> start_leat(const Run& run) {
  return start_with_leatd(
      run, [&](const std::string& socket, std::uint32_t party) { return film(socket, party, run, false); });
}
Result<std::unique_ptr<Running>> start_leat_grants(const Run& run) {
  return start_with_leatd(
      run, [&](const std::string& socket, std::uint32_t party) { return film(socket, party, run, true); });
}

}  // namespace leat::bench::alternatives
