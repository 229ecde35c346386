#include "engine/daemon/scheduler_thread/worker_port.h"

namespace leat::daemon {

Result<std::unique_ptr<WorkerPort>> WorkerPort::create() {
  constexpr worker::ChannelLayout kLayout = worker::channel_layout();
  auto segment = shm::Segment::create("leat:channel", kLayout.bytes, shm::Seal::size);
  if (!segment) return Error{segment.error()};
  auto bell = shm::BellSocket::create();
  if (!bell) return Error{bell.error()};
  std::unique_ptr<WorkerPort> port(new WorkerPort());
  port->segment_ = std::move(*segment);
  port->bell_ = std::move(bell->daemon);
  port->worker_bell_ = std::move(bell->client);
  const shm::Mapping& m = port->segment_.memory();
  port->dispatches_ = {m.at<worker::DispatchCell>(kLayout.dispatch_cells), worker::kDispatchRing,
                       m.at<shm::IndexLine>(kLayout.dispatch_index)};
  port->reports_ = {m.at<worker::ReportCell>(kLayout.report_cells), worker::kReportRing,
                    m.at<shm::IndexLine>(kLayout.report_index)};
  port->sleep_ = m.at<shm::SleepWord>(kLayout.daemon_sleep);
  port->waker_ = shm::Waker(m.at<shm::SleepWord>(kLayout.worker_sleep));
  return port;
}

bool WorkerPort::push(std::span<worker::DispatchCell> cells) noexcept {
  if (dispatches_.room(static_cast<std::uint32_t>(cells.size())) < cells.size()) return false;
  const std::uint32_t control = control_.load(std::memory_order_relaxed);
  for (auto& cell : cells) {
    cell.control = control;
    (void)dispatches_.push(cell);
  }
  return true;
}

bool WorkerPort::flush() noexcept {
  if (!waker_.should_ring()) return false;
  calls_.timed([this] { bell_.ring(); });
  return true;
}

bool WorkerPort::drain_bell() noexcept {
  bool there = true;
  calls_.timed([&] { there = bell_.drain() == shm::Drained::rings; });
  return there;
}

void WorkerPort::announce_sleep() noexcept {
  reports_.publish();
  shm::announce_sleep(*sleep_);
}

}  // namespace leat::daemon
