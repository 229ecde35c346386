// A process a camera, each a plain loop: the newest picture is read and run, again and again. What is passed over is
// never read. The processes are pinned to the cores in turn.
#include "bench/alternatives/contenders/chain.h"
#include "bench/alternatives/contenders/contender.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

namespace leat::bench::alternatives {

namespace {

Status loop(const Run& run, std::uint32_t camera) {
  (void)pin_process({&run.cores[camera % run.cores.size()], 1});
  auto chain = Chain::open(run.pictures->format());
  if (!chain.ok()) return Error{chain.error()};
  auto film = run.pictures->open(camera);
  if (!film.ok()) return Error{film.error()};
  const Buffer buffer(run.pictures->format());
  run.record->say_ready();
  const Timetable times = run.record->wait_to_begin();
  for (std::uint64_t picture = 0; picture < times.pictures; ++picture) {
    sleep_until(times.due_ns(camera, picture));
    const std::uint64_t newest = std::max(times.taken(camera, shm::monotonic_ns()), picture + 1) - 1;
    run.record->pass(camera, picture, newest);
    picture = newest;
    if (const auto got = (*film)->read(picture, buffer.frame()); got != Film::Got::ready)
      run.record->without(camera, picture, got);
    else
      run.record->ran(camera, picture, chain->run(buffer.frame()));
  }
  run.record->done_and_wait();
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Running>> start_process_a_camera(const Run& run) {
  auto copies = std::make_unique<Copies>();
  for (std::uint32_t camera = 0; camera < run.cameras; ++camera) {
    const Status status = copies->add([&, camera] { return loop(run, camera); }, std::string(kWorkers));
    if (!status) return Error{status.error()};
  }
  return std::unique_ptr<Running>(std::move(copies));
}

}  // namespace leat::bench::alternatives
