#include "tools/gstreamer/lane.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

namespace leat::gstreamer {

Lane::Lane() : wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

GstFlowReturn Lane::wait_for_room(std::size_t most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    const auto pictures =
        std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return GST_IS_BUFFER(e.object); });
    return flushing_ || flow_ != GST_FLOW_OK || static_cast<std::size_t>(pictures) < most;
  });
  return flushing_ ? GST_FLOW_FLUSHING : flow_;
}

GstFlowReturn Lane::wait_until_empty() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return flushing_ || (entries_.empty() && !handing_); });
  return flushing_ ? GST_FLOW_FLUSHING : flow_;
}

void Lane::put(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  changed_.notify_all();
}

leat_error Lane::ask(Entry& entry, leat_frame& frame, const leat_submit_options& options) {
  const std::lock_guard lock(mutex_);  // or its answer would come before it
  if (const leat_error error = entry.session->submit(frame, options); error != LEAT_ERROR_ok) return error;
  frame = {};
  entries_.push_back(std::move(entry));
  changed_.notify_all();
  return LEAT_ERROR_ok;
}

// Answers that nothing waits for are of pictures that were flushed.
void Lane::collect(const std::shared_ptr<Session>& session) {
  leat_answer answer;
  leat_error error = LEAT_ERROR_ok;
  while ((error = session->next_answer(&answer)) == LEAT_ERROR_ok) {
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return e.session == session && e.cookie == answer.cookie && !e.ready();
    });
    if (entry != entries_.end())
      entry->answer = answer;
    else
      session->release(answer);
  }
  if (error == LEAT_ERROR_timed_out) return;
  for (Entry& e : entries_)
    if (e.session == session && !e.ready()) e.miss = Miss{"failed", "no_daemon", leat_error_text(error)};
}

std::optional<Entry> Lane::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return flushing_ || !entries_.empty(); });
    if (flushing_) return std::nullopt;
    if (!entries_.front().ready()) collect(entries_.front().session);
    if (entries_.front().ready()) {
      Entry entry = std::move(entries_.front());
      entries_.pop_front();
      handing_ = true;
      changed_.notify_all();
      return entry;
    }
    const std::shared_ptr<Session> session = entries_.front().session;
    pollfd on[2] = {{session->answer_fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    lock.unlock();
    ::poll(on, 2, -1);
    lock.lock();
  }
}

void Lane::taken(GstFlowReturn flow) {
  const std::lock_guard lock(mutex_);
  handing_ = false;
  if (flow_ == GST_FLOW_OK) flow_ = flow;
  changed_.notify_all();
}

void Lane::set_flushing(bool flushing) {
  const std::lock_guard lock(mutex_);
  flushing_ = flushing;
  flow_ = GST_FLOW_OK;
  std::uint64_t count = 1;
  if (flushing)
    static_cast<void>(!::write(wake_.get(), &count, sizeof count));
  else
    static_cast<void>(!::read(wake_.get(), &count, sizeof count));
  changed_.notify_all();
}

void Lane::clear() {
  const std::lock_guard lock(mutex_);
  for (Entry& e : entries_) {
    if (e.answer) e.session->release(*e.answer);
    gst_mini_object_unref(e.object);
  }
  entries_.clear();
  changed_.notify_all();
}

std::uint64_t Lane::in_flight() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint64_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.ready(); }));
}

}  // namespace leat::gstreamer
