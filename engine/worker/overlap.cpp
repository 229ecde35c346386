// Batches that overlap: while a model runs on the second thread, the batch before it is answered here, and the next one
// prepared.
#include "engine/worker/worker.h"

namespace leat::worker {

// Beside one that has begun, or before one that waits already, or where this one had to wait, so that others are likely
// to follow; a batch that is alone is done sooner by one thread.
bool Worker::goes_beside(const Batch& batch) {
  const DispatchCell& first = batch.cells[0];
  if (modules_[first.module].module->sets() < exec::kSets || first.then != kNoModule || first.alone != 0) return false;
  return begun_ != 0 || !channel_.dispatches.empty() || first.dispatched_ns < last_ended_ns_;
}

void Worker::begin(Batch& batch) {
  const auto set = static_cast<std::uint32_t>(&batch - batches_.data());
  // Before anything of it is touched: it may be what ends this process.
  if (begun_ != 0)
    push_report({.batch = batch.cells[0].batch,
                 .batch_generation = batch.cells[0].batch_generation,
                 .kind = ReportKind::beside});
  find_items(batch);
  // Whoever waits for the answers of the batch before waits for one item of this one at most.
  const exec::Pause pause = [this] {
    if (begun_ != 0 && first_has_ended()) finish_first();
  };
  Served& served = modules_[batch.cells[0].module];
  if (device_.get() != nullptr) (void)device_.get()->use_set(set);  // what is gathered for it is of its set
  if (batch.item_count != 0)
    served.module->begin(set, *stream_, batch.all_items(),
                         served.features.input(batch.all_cells(), &batch.rows_copied, set),
                         served.features.output(batch.all_cells()), pause);
  ++begun_;
  if (device_.lost()) ending_ = true;
}

bool Worker::first_has_ended() const {
  const Batch& batch = batches_[first_];
  return batch.item_count == 0 || modules_[batch.cells[0].module].module->ended(first_);
}

void Worker::finish_first() {
  Batch& batch = batches_[first_];
  exec::Module& module = *modules_[batch.cells[0].module].module;
  if (batch.item_count != 0 && !module.finish(first_, std::span(batch.reports.data(), batch.item_count)))
    complain(module.error());
  note_answers(batch);
  first_ = (first_ + 1) % static_cast<std::uint32_t>(batches_.size());
  --begun_;
  if (ending_) return;
  send_report(batch, ReportKind::batch);
  wake_daemon();
}

void Worker::finish_all() {
  while (begun_ != 0 && !ending_) finish_first();
}

}  // namespace leat::worker
