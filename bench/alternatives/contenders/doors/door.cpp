#include "bench/alternatives/contenders/doors/door.h"

#include <algorithm>
#include <thread>

#include "bench/alternatives/contenders/chain.h"
#include "shm/src/rings/clock.h"

extern "C" {
#include <libswscale/swscale.h>
}

namespace leat::bench::alternatives {

namespace {

void film_by_turns(const Run& run, std::uint32_t camera, const Timetable& times, Film& film, Door& door) {
  const Buffer buffer(run.pictures->format());
  for (std::uint64_t picture = 0; picture < times.pictures; ++picture) {
    sleep_until(times.due_ns(camera, picture));
    const std::uint64_t newest = std::max(times.taken(camera, shm::monotonic_ns()), picture + 1) - 1;
    run.record->pass(camera, picture, newest);
    picture = newest;
    if (const auto got = film.read(picture, buffer.frame()); got != Film::Got::ready) {
      run.record->without(camera, picture, got);
      continue;
    }
    const Fate fate = door.ask(buffer.frame(), times.due_ns(camera, picture));
    if (fate == Fate::passed)
      run.record->pass(camera, picture);
    else
      run.record->ran(camera, picture, fate == Fate::answered);
  }
}

}  // namespace

Status film_through(const Run& run, const OpenDoor& open) {
  std::vector<std::unique_ptr<Film>> films;
  std::vector<std::unique_ptr<Door>> doors;
  for (std::uint32_t c = 0; c < run.cameras; ++c) {
    auto one = run.pictures->open(c);
    if (!one.ok()) return Error{one.error()};
    auto door = open(c);
    if (!door.ok()) return Error{door.error()};
    films.push_back(std::move(*one));
    doors.push_back(std::move(*door));
  }
  run.record->say_ready();
  const Timetable times = run.record->wait_to_begin();
  std::vector<std::jthread> threads;
  for (std::uint32_t c = 0; c < run.cameras; ++c)
    threads.emplace_back([&, c] { film_by_turns(run, c, times, *films[c], *doors[c]); });
  threads.clear();
  run.record->done_and_wait();
  return Done{};
}

void Rgb::Freed::operator()(SwsContext* scaler) const { sws_freeContext(scaler); }

Rgb::Rgb(leat_format format, std::uint32_t width, std::uint32_t height)
    : width_(width),
      pixels_(std::size_t{width} * height * 3),
      scaler_(sws_getContext(kWidth, kHeight, format == LEAT_FORMAT_nv12 ? AV_PIX_FMT_NV12 : AV_PIX_FMT_YUV420P,
                             static_cast<int>(width), static_cast<int>(height), AV_PIX_FMT_RGB24, SWS_FAST_BILINEAR,
                             nullptr, nullptr, nullptr)) {}

std::span<const std::uint8_t> Rgb::from(const leat_frame& picture) {
  int strides[4] = {};
  for (std::uint32_t p = 0; p < picture.plane_count; ++p) strides[p] = static_cast<int>(picture.strides[p]);
  std::uint8_t* const to[] = {pixels_.data(), nullptr, nullptr, nullptr};
  const int to_strides[] = {static_cast<int>(3 * width_), 0, 0, 0};
  const std::uint8_t* const planes[] = {picture.planes[0], picture.planes[1],
                                        picture.plane_count > 2 ? picture.planes[2] : nullptr, nullptr};
  sws_scale(scaler_.get(), planes, strides, 0, kHeight, to, to_strides);
  return pixels_;
}

}  // namespace leat::bench::alternatives
