// A server whose workers pull: each reads, into memory of its own, the newest picture of the camera whose turn it is,
// so that nothing is read that nobody looks at. For sources that can wait: files, rings of a driver.
#include <mutex>
#include <thread>

#include "bench/alternatives/contenders/chain.h"
#include "bench/alternatives/contenders/contender.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

namespace leat::bench::alternatives {

namespace {

class Puller {
 public:
  explicit Puller(const Run& run) : run_(run) {}

  Status serve() {
    auto chains = open_chains(run_.pictures->format(), run_.cores.size());
    if (!chains.ok()) return Error{chains.error()};
    for (std::uint32_t c = 0; c < run_.cameras; ++c) {
      auto film = run_.pictures->open(c);
      if (!film.ok()) return Error{film.error()};
      cameras_.push_back(std::make_unique<Camera>());
      cameras_.back()->film = std::move(*film);
    }
    run_.record->say_ready();
    times_ = run_.record->wait_to_begin();
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < run_.cores.size(); ++i)
      workers.emplace_back([this, &chain = (*chains)[i], core = run_.cores[i]] { work(chain, core); });
    workers.clear();
    run_.record->done_and_wait();
    return Done{};
  }

 private:
  struct Camera {
    std::mutex reading;
    std::unique_ptr<Film> film;
    std::uint64_t looked_at = 0;  // one behind the newest picture that was
  };
  struct Turn {
    std::uint32_t camera;
    std::uint64_t picture;
  };

  void work(Chain& chain, std::uint32_t core) {
    join_group(kWorkers);
    (void)pin_thread({&core, 1});
    const Buffer buffer(run_.pictures->format());
    while (const auto turn = next()) {
      if (const auto got = read(*turn, buffer.frame()); got != Film::Got::ready)
        run_.record->without(turn->camera, turn->picture, got);
      else
        run_.record->ran(turn->camera, turn->picture, chain.run(buffer.frame()));
    }
  }

  Film::Got read(const Turn& turn, const leat_frame& into) {
    Camera& camera = *cameras_[turn.camera];
    const std::lock_guard lock(camera.reading);
    return camera.film->read(turn.picture, into);
  }

  // The newest picture of the next camera that has one; waits for one where none has. None: all are over.
  std::optional<Turn> next() {
    for (;;) {
      std::int64_t wake_ns = INT64_MAX;
      {
        const std::lock_guard lock(mutex_);
        const std::int64_t now = shm::monotonic_ns();
        for (std::uint32_t i = 0; i < run_.cameras; ++i) {
          const std::uint32_t camera = turn_++ % run_.cameras;
          std::uint64_t& seen = cameras_[camera]->looked_at;
          if (const std::uint64_t taken = times_.taken(camera, now); taken > seen) {
            run_.record->pass(camera, seen, taken - 1);
            seen = taken;
            return Turn{camera, taken - 1};
          }
          if (seen < times_.pictures) wake_ns = std::min(wake_ns, times_.due_ns(camera, seen));
        }
      }
      if (wake_ns == INT64_MAX) return std::nullopt;
      sleep_until(wake_ns);
    }
  }

  const Run& run_;
  Timetable times_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Camera>> cameras_;
  std::uint32_t turn_ = 0;
};

}  // namespace

Result<std::unique_ptr<Running>> start_pulled(const Run& run) {
  auto copies = std::make_unique<Copies>();
  if (const Status status = copies->add([&] { return Puller(run).serve(); }, ""); !status) return Error{status.error()};
  return std::unique_ptr<Running>(std::move(copies));
}

}  // namespace leat::bench::alternatives
