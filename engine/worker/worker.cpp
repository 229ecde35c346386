#include "engine/worker/worker.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>

#include "shm/src/protocol/control_protocol.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

namespace leat::worker {

// ---- control ----

bool Worker::read_control(bool wait) {
  const ControlLink::Got got = control_.receive(wait);
  if (got == ControlLink::Got::message) handle_message();
  if (got == ControlLink::Got::gone) ending_ = true;
  return got == ControlLink::Got::message;
}

void Worker::handle_message() {
  const std::vector<std::byte>& packet = control_.packet;
  const auto type = type_of(packet);
  Status status =
      Error{"leatd sent a message this worker does not understand; install leatd and leat-worker of one release"};
  if (!type.ok()) return complain(status.error());
  if (*type == ControlType::stop) {
    finish_all();
    ending_ = true;
    status = Done{};
  } else if (*type == ControlType::add_pool) {
    const auto add = decode_add_pool(packet);
    status = add.ok() ? pools_.add(*add, control_.descriptors, device_.get()) : Status(Error{add.error()});
    report_memory();
  } else if (*type == ControlType::forget_pool) {
    if (const auto what = decode_forget_pool(packet); what.ok()) {
      pools_.forget(*what, device_.get());
      status = Done{};
      report_memory();
    }
  } else if (*type == ControlType::measure) {
    const auto what = decode_measure(packet);
    status = what.ok() ? begin_measuring(*what) : Status(Error{what.error()});
  }
  if (!status.ok()) complain(status.error());
}

void Worker::report_memory() {
  DeviceMemory memory;
  if (device_.get() != nullptr && device_.memory_changed(&memory))
    (void)control_.tell(encode(memory));  // leatd gone: the loop notices
}

void Worker::complain(std::string_view text) {
  const std::string line = complaints_.line(shm::monotonic_ns(), std::string(text));
  if (!line.empty()) std::fprintf(stderr, "leat-worker %s: %s\n", setup_.partition.c_str(), line.c_str());
}

// ---- batches ----

void Worker::run() {
  shm::WaitPolicy policy;
  policy.mode = setup_.yields != 0 ? shm::WaitMode::yield : shm::WaitMode::park;
  policy.yields = setup_.yields;
  shm::Waiter waiter(policy);
  while (!ending_) {
    if (begun_ != 0 && first_has_ended()) {
      finish_first();
      waiter.reset();
    } else if (begun_ < batches_.size() && take_batch()) {
      if (measuring_ != nullptr) give_up_measuring(100);
      waiter.reset();
    } else if (measuring_ != nullptr && begun_ == 0) {
      measure_on();
      waiter.reset();
    } else if (begun_ != 0 || waiter.should_park(false)) {  // whoever looks again has a core that the model wants
      park();
      waiter.reset();
    }
  }
}

void Worker::wake_daemon() {
  if (channel_.daemon_waker.should_ring()) channel_.bell.ring();
}

void Worker::park() {
  const bool full = begun_ == batches_.size();
  const auto announce = [this] {
    channel_.dispatches.publish();
    shm::announce_sleep(*channel_.sleep);
  };
  bool message = false;
  if (full || shm::may_sleep(announce, [this] { return channel_.dispatches.empty(); })) {
    const bool unsent = !answer_.empty();
    pollfd fds[3] = {{channel_.bell.fd(), POLLIN, 0},
                     {control_.fd(), static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0},
                     {stream_ != nullptr ? stream_->fd() : -1, POLLIN, 0}};
    (void)poll(fds, 3, -1);
    if (fds[2].revents != 0) stream_->drain();
    if (fds[0].revents != 0 && channel_.bell.drain() != shm::Drained::rings) ending_ = true;  // leatd is gone
    if ((fds[1].revents & POLLOUT) != 0) send_answer();
    message = (fds[1].revents & ~POLLOUT) != 0;
  }
  shm::announce_awake(*channel_.sleep);
  if (message) (void)read_control(false);
}

}  // namespace leat::worker
