#include "shm/src/segments/feature_slots.h"

#include <cstdlib>
#include <string>
#include <utility>

namespace leat::shm {

Result<FeaturePool> FeaturePool::create(const FeatureSpec& spec) {
  FeaturePool pool;
  pool.spec_ = spec;
  auto segment = Segment::create("leat:features", spec.bytes(), Seal::size);
  if (!segment) return Error{segment.error()};
  pool.segment_ = std::move(*segment);
  pool.segment_.memory().at<SegmentHeader>(0)->publish(SegmentKind::features, spec.bytes());
  return pool;
}

Result<FeatureView> FeatureView::map(const FeatureSpec& spec, Fd fd, Access access) {
  auto mapping = Mapping::map(fd.get(), spec.bytes(), access, true);
  if (!mapping) return Error{mapping.error()};
  if (!mapping->at<SegmentHeader>(0)->published(SegmentKind::features))
    return Error{"a segment of features has another layout; install leatd and leat-worker of one release"};
  FeatureView view;
  view.spec_ = spec;
  view.memory_ = std::move(*mapping);
  view.first_ = view.memory_.data() + kPage;
  return view;
}

FeatureView FeatureView::on_device(const FeatureSpec& spec, std::byte* memory) {
  FeatureView view;
  view.spec_ = spec;
  view.first_ = memory;
  view.on_device_ = true;
  return view;
}

std::uint32_t FeatureRows::take(std::uint32_t count) noexcept {
  std::uint32_t run = 0;
  for (std::uint32_t row = 0; row < rows_ && in_use_ + count <= rows_; ++row) {
    if (row % 64 == 0 && used_[row / 64] == UINT64_MAX) {
      row += 63;
      run = 0;
      continue;
    }
    run = used(row) ? 0 : run + 1;
    if (run < count) continue;
    const std::uint32_t first = row + 1 - count;
    for (std::uint32_t r = first; r <= row; ++r) used_[r / 64] |= std::uint64_t{1} << (r % 64);
    in_use_ += count;
    return first;
  }
  return rows_;
}

void FeatureRows::give(std::uint32_t first, std::uint32_t count) noexcept {
  if (scrap(first)) return;
  for (std::uint32_t row = first; row < first + count; ++row) {
    if (row >= rows_ || !used(row)) std::abort();
    used_[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  }
  in_use_ -= count;
}

}  // namespace leat::shm
