#include "bench/alternatives/contenders/server.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

namespace leat::bench::alternatives {

namespace {

class Server {
 public:
  Server(const Run& run, std::unique_ptr<Order> order) : run_(run), order_(std::move(order)) {}

  Status serve() {
    auto chains = open_chains(run_.pictures->format(), run_.cores.size());
    if (!chains.ok()) return Error{chains.error()};
    for (std::uint32_t c = 0; c < run_.cameras; ++c) {
      auto film = run_.pictures->open(c);
      if (!film.ok()) return Error{film.error()};
      films_.push_back(std::move(*film));
    }
    std::vector<std::jthread> workers, cameras;
    for (std::size_t i = 0; i < run_.cores.size(); ++i)
      workers.emplace_back([this, &chain = (*chains)[i], core = run_.cores[i]] { work(chain, core); });
    run_.record->say_ready();
    times_ = run_.record->wait_to_begin();
    for (std::uint32_t c = 0; c < run_.cameras; ++c) cameras.emplace_back([this, c] { film(c); });
    cameras.clear();
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    something_waits_.notify_all();
    workers.clear();
    run_.record->done_and_wait();
    return Done{};
  }

 private:
  void film(std::uint32_t camera) {
    join_group(kClients);
    for (std::uint64_t picture = 0; picture < times_.pictures; ++picture) {
      const std::int64_t due = times_.due_ns(camera, picture);
      sleep_until(due);
      // One that reads more slowly than pictures come goes on with the newest.
      const std::uint64_t newest = std::max(times_.taken(camera, shm::monotonic_ns()), picture + 1) - 1;
      run_.record->pass(camera, picture, newest);
      picture = newest;
      Waiting next{.camera = camera, .picture = picture, .due_ns = times_.due_ns(camera, picture), .pixels = buffer()};
      if (const auto got = films_[camera]->read(picture, next.pixels->frame()); got == Film::Got::ready)
        put(std::move(next));
      else
        run_.record->without(camera, picture, got);
    }
  }

  void put(Waiting picture) {
    std::vector<Waiting> given_up;
    {
      const std::lock_guard lock(mutex_);
      order_->put(std::move(picture), given_up);
      take_back(given_up);
    }
    something_waits_.notify_one();
    pass(given_up);
  }

  void work(Chain& chain, std::uint32_t core) {
    join_group(kWorkers);
    (void)pin_thread({&core, 1});
    while (auto picture = take()) {
      run_.record->ran(picture->camera, picture->picture, chain.run(picture->pixels->frame()));
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(picture->pixels));
    }
  }

  // Waits for it; none: it is over.
  std::optional<Waiting> take() {
    std::vector<Waiting> given_up;
    std::unique_lock lock(mutex_);
    std::optional<Waiting> next = order_->take(shm::monotonic_ns(), given_up);
    for (; !next && !ended_; next = order_->take(shm::monotonic_ns(), given_up)) something_waits_.wait(lock);
    take_back(given_up);
    lock.unlock();
    pass(given_up);
    return next;
  }

  // The memory used last first, since it is still in a cache.
  std::unique_ptr<Buffer> buffer() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto out = std::move(free_.back());
        free_.pop_back();
        return out;
      }
    }
    return std::make_unique<Buffer>(run_.pictures->format());
  }
  void take_back(std::vector<Waiting>& given_up) {
    for (Waiting& w : given_up) free_.push_back(std::move(w.pixels));
  }
  void pass(const std::vector<Waiting>& given_up) {
    for (const Waiting& w : given_up) run_.record->pass(w.camera, w.picture);
  }

  const Run& run_;
  std::vector<std::unique_ptr<Film>> films_;  // by camera
  Timetable times_;
  std::mutex mutex_;
  std::condition_variable something_waits_;
  std::unique_ptr<Order> order_;
  std::vector<std::unique_ptr<Buffer>> free_;
  bool ended_ = false;
};

}  // namespace

void LatestSlots::put(Waiting picture, std::vector<Waiting>& given_up) {
  std::optional<Waiting>& slot = slots_[picture.camera];
  if (slot) given_up.push_back(std::move(*slot));
  slot = std::move(picture);
}

Result<std::unique_ptr<Running>> start_server(const Run& run, const std::function<std::unique_ptr<Order>()>& order) {
  auto copies = std::make_unique<Copies>();
  const Status status = copies->add([&] { return Server(run, order()).serve(); }, "");
  if (!status) return Error{status.error()};
  return std::unique_ptr<Running>(std::move(copies));
}

}  // namespace leat::bench::alternatives
