#include "engine/worker/measuring/measuring_turn.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "shm/src/rings/clock.h"

namespace leat::worker {
namespace {

constexpr timespec kBetweenLooks{0, 1'000'000};

}  // namespace

bool MeasuringTurn::lock(short kind) const noexcept {
  struct flock whole {};
  whole.l_type = kind;
  whole.l_whence = SEEK_SET;
  return ::fcntl(shared_.get(), F_SETLK, &whole) == 0;
}

bool MeasuringTurn::take() noexcept {
  if (!shared_) return true;
  const std::int64_t from = shm::monotonic_ns();
  bool mine = lock(F_WRLCK);
  while (!mine && shm::monotonic_ns() - from < patience_ns_) {
    (void)::nanosleep(&kBetweenLooks, nullptr);
    mine = lock(F_WRLCK);
  }
  patience_ns_ -= shm::monotonic_ns() - from;
  return mine;
}

void MeasuringTurn::give() noexcept {
  if (shared_) (void)lock(F_UNLCK);
}

}  // namespace leat::worker
