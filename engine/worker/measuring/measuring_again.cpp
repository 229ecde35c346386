// The worker's part in measuring again what was measured on busy cores: between batches, run by run.
#include <memory>
#include <utility>

#include "engine/worker/measuring/calibrate.h"
#include "engine/worker/worker.h"

namespace leat::worker {

Status Worker::begin_measuring(const Measure& what) {
  if (what.module >= modules_.size())
    return Error{"leatd asked for a module this worker does not have; install leatd and leat-worker of one release"};
  const ModuleSetup& m = setup_.modules[what.module];
  asked_ = what;
  constexpr bool kStrict = true;  // frames may come meanwhile
  measuring_ = std::make_unique<Calibrator>(*modules_[what.module].module, m.batch, m.after_fan_out, what.longest_ns,
                                            Told{}, kStrict);
  return Done{};
}

void Worker::measure_on() {
  (void)read_control(false);
  if (measuring_ == nullptr || ending_) return;
  if (const std::uint32_t percent = measuring_->undisturbed_percent(); percent < asked_.undisturbed_percent)
    return give_up_measuring(percent);
  const Result<bool> more = measuring_->step();
  if (!more.ok()) {
    complain(more.error());
    return give_up_measuring(0);
  }
  if (*more) return;
  Calibration found = measuring_->result();
  measuring_.reset();
  answer_measured({.module = asked_.module,
                   .latency_by_batch = std::move(found.latency_by_batch),
                   .latency_by_size = std::move(found.latency_by_size),
                   .undisturbed_percent = found.undisturbed_percent});
}

void Worker::give_up_measuring(std::uint32_t undisturbed_percent) {
  measuring_.reset();
  answer_measured({.module = asked_.module,
                   .latency_by_batch = {},
                   .latency_by_size = {},
                   .undisturbed_percent = undisturbed_percent});
}

// leatd asks no more until it has this.
void Worker::answer_measured(const Measured& found) {
  answer_ = encode(found);
  send_answer();
}

void Worker::send_answer() {
  if (!answer_.empty() && control_.told(answer_)) answer_.clear();
}

}  // namespace leat::worker
