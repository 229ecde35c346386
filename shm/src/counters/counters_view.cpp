#include "shm/src/counters/counters_view.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace leat::shm {
namespace {

constexpr CountersLayout kWhole = counters_layout();
constexpr int kTries = 3;

using Words = std::array<std::uint64_t, sizeof(RecordLayout) / sizeof(std::uint64_t)>;
constexpr std::size_t kFirstWord = offsetof(RecordLayout, label) / sizeof(std::uint64_t);  // behind state and version
static_assert(offsetof(RecordLayout, label) % sizeof(std::uint64_t) == 0);
static_assert(std::is_standard_layout_v<RecordLayout>);

std::uint64_t& word(RecordLayout* r, std::size_t i) noexcept { return reinterpret_cast<std::uint64_t*>(r)[i]; }

// All of a record behind its state and version, seen together; false: its writer was busy each time.
bool read(RecordLayout* r, Words* out) noexcept {
  for (int i = 0; i < kTries; ++i) {
    // acquire: pairs with the release store that ends an Update.
    const std::uint32_t before = atomic_ref(r->version).load(std::memory_order_acquire);
    if ((before & 1u) != 0) continue;
    for (std::size_t w = kFirstWord; w < out->size(); ++w)
      (*out)[w] = atomic_ref(word(r, w)).load(std::memory_order_relaxed);
    acquire_fence();  // the values before the second look; partner: the release fence that begins an Update
    if (atomic_ref(r->version).load(std::memory_order_relaxed) == before) return true;
  }
  return false;
}

}  // namespace

Result<CountersView> CountersView::create() {
  Result<Segment> segment = Segment::reserve("leat:counters-view", kWhole.events);
  if (!segment) return Error{segment.error()};
  CountersView view;
  view.segment_ = std::move(segment).value();
  view.pages_.resize(kWhole.events / kPage);
  for (const std::uint64_t at : {std::uint64_t{0}, kWhole.events_head})
    if (!view.brought(at)) return Error{"no memory for a view of the counters"};
  view.segment_.memory().at<SegmentHeader>(0)->publish(SegmentKind::counters, kWhole.events);
  return view;
}

// The pages of a record, or of what else fits into one of its size.
bool CountersView::brought(std::uint64_t offset) {
  const std::uint64_t first = offset / kPage;
  const std::uint64_t end = round_up(std::min(offset + sizeof(RecordLayout), kWhole.events), kPage) / kPage;
  const auto from = pages_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto to = pages_.begin() + static_cast<std::ptrdiff_t>(end);
  if (std::find(from, to, false) == to) return true;
  // There was room for all of them when the view was made.
  if (!segment_.allocate(first * kPage, (end - first) * kPage)) return false;
  std::fill(from, to, true);
  return true;
}

void CountersView::copy(const CountersWriter& from, RecordKind kind, std::uint32_t index) {
  RecordLayout* source = from.at(kind, index);
  if (source == nullptr) return;
  const std::uint64_t offset =
      kWhole.offset[static_cast<std::size_t>(kind)] + std::uint64_t{index} * sizeof(RecordLayout);
  Words words;
  if (!brought(offset) || !read(source, &words)) return;
  auto* to = segment_.memory().at<RecordLayout>(offset);
  Record record(to);
  {
    const Record::Update together(record);
    for (std::size_t w = kFirstWord; w < words.size(); ++w)
      atomic_ref(word(to, w)).store(words[w], std::memory_order_relaxed);
    // Epoch and state change on the thread that copies.
    atomic_ref(to->epoch).store(atomic_ref(source->epoch).load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  // release: label and values before "live"; partner: the acquire in CountersReader::snapshot.
  atomic_ref(to->state).store(atomic_ref(source->state).load(std::memory_order_relaxed), std::memory_order_release);
}

std::uint32_t CountersView::epoch_of_live(RecordKind kind, std::uint32_t index) const noexcept {
  const std::uint64_t offset =
      kWhole.offset[static_cast<std::size_t>(kind)] + std::uint64_t{index} * sizeof(RecordLayout);
  if (!pages_[offset / kPage]) return 0;
  auto* r = segment_.memory().at<RecordLayout>(offset);
  const bool live =
      atomic_ref(r->state).load(std::memory_order_relaxed) == static_cast<std::uint32_t>(RecordState::live);
  return live ? atomic_ref(r->epoch).load(std::memory_order_relaxed) : 0;
}

void CountersView::end(RecordKind kind, std::uint32_t index) noexcept {
  if (epoch_of_live(kind, index) == 0) return;
  auto* r = segment_.memory().at<RecordLayout>(kWhole.offset[static_cast<std::size_t>(kind)] +
                                               std::uint64_t{index} * sizeof(RecordLayout));
  atomic_ref(r->state).store(static_cast<std::uint32_t>(RecordState::ended),
                             std::memory_order_release);  // partner: snapshot
}

void CountersView::empty() noexcept {
  (void)fallocate(segment_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(segment_.bytes()));
}

}  // namespace leat::shm
