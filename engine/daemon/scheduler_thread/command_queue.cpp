#include "engine/daemon/scheduler_thread/command_queue.h"

#include <boost/lockfree/spsc_queue.hpp>

namespace leat::daemon {

template <class T>
struct BoundedQueue<T>::Queue {
  boost::lockfree::spsc_queue<T> items{kQueueRoom};
};

template <class T>
BoundedQueue<T>::BoundedQueue() : queue_(std::make_unique<Queue>()) {}
template <class T>
BoundedQueue<T>::~BoundedQueue() = default;
template <class T>
bool BoundedQueue<T>::push(const T& item) noexcept {
  return queue_->items.push(item);
}
template <class T>
bool BoundedQueue<T>::pop(T& out) noexcept {
  return queue_->items.pop(out);
}
template <class T>
bool BoundedQueue<T>::empty() const noexcept {
  return queue_->items.read_available() == 0;
}

template class BoundedQueue<Command>;
template class BoundedQueue<SchedulerEvent>;
template class BoundedQueue<core::Sample>;

}  // namespace leat::daemon
