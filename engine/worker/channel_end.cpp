#include "engine/worker/channel_end.h"

namespace leat::worker {

Result<ChannelEnd> ChannelEnd::open(shm::Fd segment, shm::Fd bell) {
  constexpr ChannelLayout kLayout = channel_layout();
  auto mapping = shm::Mapping::map(segment.get(), kLayout.bytes, shm::Access::read_write, true);
  if (!mapping.ok()) return Error{mapping.error()};
  ChannelEnd out;
  out.memory = std::move(*mapping);
  out.bell = shm::BellSocket(std::move(bell));
  out.dispatches = {out.memory.at<DispatchCell>(kLayout.dispatch_cells), kDispatchRing,
                    out.memory.at<shm::IndexLine>(kLayout.dispatch_index)};
  out.reports = {out.memory.at<ReportCell>(kLayout.report_cells), kReportRing,
                 out.memory.at<shm::IndexLine>(kLayout.report_index)};
  out.sleep = out.memory.at<shm::SleepWord>(kLayout.worker_sleep);
  out.daemon_waker = shm::Waker(out.memory.at<shm::SleepWord>(kLayout.daemon_sleep));
  return out;
}

}  // namespace leat::worker
