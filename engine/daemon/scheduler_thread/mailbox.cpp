#include "engine/daemon/scheduler_thread/mailbox.h"

#include <boost/lockfree/spsc_queue.hpp>

namespace leat::daemon {

template <class T>
struct Mailbox<T>::Queue {
  boost::lockfree::spsc_queue<T> items{kMailboxRoom};
};

template <class T>
Mailbox<T>::Mailbox() : queue_(std::make_unique<Queue>()) {}
template <class T>
Mailbox<T>::~Mailbox() = default;
template <class T>
bool Mailbox<T>::push(const T& item) noexcept {
  return queue_->items.push(item);
}
template <class T>
bool Mailbox<T>::pop(T& out) noexcept {
  return queue_->items.pop(out);
}
template <class T>
bool Mailbox<T>::empty() const noexcept {
  return queue_->items.read_available() == 0;
}

template class Mailbox<Command>;
template class Mailbox<Notice>;
template class Mailbox<core::Sample>;

}  // namespace leat::daemon
