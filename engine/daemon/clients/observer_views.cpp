#include "engine/daemon/clients/observer_views.h"

#include <algorithm>

#include "shm/src/rings/clock.h"

namespace leat::daemon {
namespace {

using shm::RecordKind;
using shm::RecordState;

constexpr std::int64_t kPeriodNs = 100'000'000, kLingerNs = 1'000'000'000;
constexpr std::int64_t kRests = 9;  // times as long as it has worked

bool live(const shm::CountersWriter& all, RecordKind kind, std::uint32_t index) {
  const auto* r = all.at(kind, index);
  return r != nullptr && r->state == static_cast<std::uint32_t>(RecordState::live);
}

}  // namespace

ObserverViews::ObserverViews(const shm::CountersWriter& all, std::uint32_t users) : all_(all), entries_(users) {}

ObserverViews::~ObserverViews() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<ObserverViews::Given> ObserverViews::given(std::uint32_t user, std::int64_t now_ns) {
  take_back();
  Entry& entry = entries_[user];
  if (entry.state == State::emptying)
    return Error{"leatd is giving back the memory of the counters you had; let go of them, and try again"};
  if (entry.state == State::none) {
    auto view = shm::CountersView::create();
    if (!view.ok()) return Error{view.error()};
    entry.view = std::move(*view);
    entry.state = State::there;
  }
  refresh(entry, user);
  auto fd = entry.view->share();
  if (fd.ok()) ++entry.observers;
  entry.due_ns = now_ns + (entry.observers != 0 ? kPeriodNs : kLingerNs);
  find_due();
  if (!fd.ok()) return Error{fd.error()};
  return Given{std::move(*fd), entry.view->bytes()};
}

void ObserverViews::ended(std::uint32_t user, std::int64_t now_ns) {
  Entry& entry = entries_[user];
  if (--entry.observers != 0) return;
  entry.due_ns = now_ns + kLingerNs;
  find_due();
}

void ObserverViews::advance(std::int64_t now_ns) {
  if (now_ns < due_ns_) return;
  take_back();
  const auto next = std::min_element(entries_.begin(), entries_.end(),
                                     [](const Entry& a, const Entry& b) { return a.due_ns < b.due_ns; });
  if (next->due_ns <= now_ns) {
    const auto user = static_cast<std::uint32_t>(next - entries_.begin());
    if (next->observers == 0) {
      let_go(user);
    } else {
      const std::int64_t from_ns = shm::monotonic_ns();
      refresh(*next, user);
      next->due_ns = now_ns + kPeriodNs;
      rest_until_ns_ = now_ns + (1 + kRests) * (shm::monotonic_ns() - from_ns);
    }
  }
  find_due();
}

void ObserverViews::find_due() {
  due_ns_ = INT64_MAX;
  for (const Entry& e : entries_) due_ns_ = std::min(due_ns_, e.due_ns);
  due_ns_ = std::max(due_ns_, rest_until_ns_);
}

// ---- what is his ----

bool ObserverViews::his(RecordKind kind, std::uint32_t index, std::uint32_t user) const {
  switch (kind) {
    case RecordKind::user:
      return index == user;
    case RecordKind::client:
      return shm::Record(all_.at(kind, index)).value(shm::ClientCounter::user) == user;
    case RecordKind::stream: {
      const auto client = shm::Record(all_.at(kind, index)).value(shm::StreamCounter::client);
      const auto at = static_cast<std::uint32_t>(client);
      return live(all_, RecordKind::client, at) && his(RecordKind::client, at, user);
    }
    default:
      return true;
  }
}

// A record that ends is shown once more as it ended, and what takes its place is looked at anew.
void ObserverViews::mirror(shm::CountersView& view, RecordKind kind, std::uint32_t index, bool his) const {
  if (his && live(all_, kind, index)) return view.copy(all_, kind, index);
  const std::uint32_t epoch = view.epoch_of_live(kind, index);
  if (epoch == 0) return;
  if (epoch == all_.at(kind, index)->epoch) view.copy(all_, kind, index);
  view.end(kind, index);
}

void ObserverViews::refresh(Entry& entry, std::uint32_t user) {
  for (std::size_t k = 0; k < shm::kRecordKinds; ++k)
    for (std::uint32_t i = 0; i < shm::kMaxRecords[k]; ++i)
      mirror(*entry.view, static_cast<RecordKind>(k), i, his(static_cast<RecordKind>(k), i, user));
}

// ---- the end of a view ----

void ObserverViews::let_go(std::uint32_t user) {
  Entry& entry = entries_[user];
  entry.state = State::emptying;
  entry.due_ns = INT64_MAX;
  const std::lock_guard lock(mutex_);
  to_empty_.push_back(user);
  if (!thread_.joinable()) thread_ = std::thread([this] { empty_views(); });
  work_.notify_one();
}

void ObserverViews::take_back() {
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t user : emptied_) entries_[user].state = State::none;
  emptied_.clear();
}

void ObserverViews::empty_views() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return ending_ || !to_empty_.empty(); });
    if (ending_) return;
    const std::uint32_t user = to_empty_.front();
    to_empty_.pop_front();
    lock.unlock();
    entries_[user].view->empty();
    entries_[user].view.reset();
    lock.lock();
    emptied_.push_back(user);
  }
}

}  // namespace leat::daemon
