#include "shm/src/segments/stream_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace leat::shm {

Result<StreamPool> StreamPool::create(const PoolSpec& spec) {
  Result<StreamPool> p = begin(spec);
  if (!p) return p;
  if (auto grown = p->grow(p->layout_.frames_bytes); !grown) return Error{grown.error()};
  return p;
}

Result<StreamPool> StreamPool::begin(const PoolSpec& spec, std::span<const leat_part> directory) {
  StreamPool p;
  p.spec_ = spec;
  p.layout_ = pool_layout(spec);
  for (std::uint32_t i = 0; i < p.layout_.planes; ++i) p.spec_.strides[i] = p.layout_.strides[i];
  Result<Segment> frames = Segment::reserve("leat:frames", p.layout_.frames_bytes);
  if (!frames) return Error{frames.error()};
  Result<Segment> results = Segment::create("leat:results", p.layout_.results_bytes, Seal::size);
  if (!results) return Error{results.error()};
  p.frames_ = std::move(frames).value();
  p.results_ = std::move(results).value();
  p.directory_.assign(directory.begin(), directory.end());
  for (std::uint32_t slot = 0; slot < spec.slots; ++slot) p.clear_parts(slot);
  p.results_.memory().at<SegmentHeader>(0)->publish(SegmentKind::results, p.layout_.results_bytes);
  return p;
}

Result<bool> StreamPool::grow(std::uint64_t most_bytes) {
  const std::uint64_t bytes = std::min(most_bytes, layout_.frames_bytes - grown_);
  if (bytes != 0)
    if (auto status = frames_.allocate(grown_, bytes); !status) return Error{status.error()};
  if (grown_ == 0 && !secured_)
    frames_.memory().at<SegmentHeader>(0)->publish(SegmentKind::frames, layout_.frames_bytes);
  grown_ += bytes;
  return grown_ == layout_.frames_bytes;
}

Status StreamPool::secure() {
  if (auto status = frames_.secure(); !status) return status;
  secured_ = true;
  grown_ = 0;
  return Done{};
}

void StreamPool::clear_parts(std::uint32_t slot) noexcept {
  leat_result* const head = result(slot);
  head->flags = 0;
  if (directory_.empty()) return;
  head->version = LEAT_RESULT_VERSION;
  head->kind = LEAT_RESULT_NONE;
  head->detection_count = head->detections_left_out = head->class_count = 0;
  head->part_count = static_cast<std::uint32_t>(directory_.size());
  std::memcpy(reinterpret_cast<std::byte*>(head) + LEAT_PARTS_OFFSET, directory_.data(),
              directory_.size() * sizeof(leat_part));
}

Result<Fd> StreamPool::frames_for_client() const { return duplicate(frames_.fd()); }
Result<Fd> StreamPool::results_for_client() const { return results_.share_read_only(); }
Result<Fd> StreamPool::frames_for_worker() const { return frames_.share_read_only(); }
Result<Fd> StreamPool::results_for_worker() const { return duplicate(results_.fd()); }

Result<StreamView> StreamView::map_for_worker(const PoolSpec& spec, Fd frames, Fd results) {
  return map(spec, std::move(frames), std::move(results), false);
}
Result<StreamView> StreamView::map_for_client(const PoolSpec& spec, Fd frames, Fd results, const FrameSlots& slots) {
  Result<StreamView> view = map(spec, std::move(frames), std::move(results), true);
  if (view) view->slots_ = slots;
  return view;
}

// A worker maps what a client has chosen the size of, so it faults pages in as it reads them, not all of them now while
// others wait.
Result<StreamView> StreamView::map(const PoolSpec& spec, Fd frames, Fd results, bool client) {
  if (const char* text = problem(spec)) return Error{std::string("a stream's pool cannot be mapped: ") + text};
  StreamView v;
  v.spec_ = spec;
  v.layout_ = pool_layout(spec);
  Result<Mapping> f =
      Mapping::map(frames.get(), v.layout_.frames_bytes, client ? Access::read_write : Access::read_only, client);
  if (!f) return Error{f.error()};
  Result<Mapping> r =
      Mapping::map(results.get(), v.layout_.results_bytes, client ? Access::read_only : Access::read_write, client);
  if (!r) return Error{r.error()};
  v.frames_ = std::move(f).value();
  v.results_ = std::move(r).value();
  // The client can overwrite the frames segment's header, so only the client, whose own it is, looks at it.
  if (!v.results_.at<SegmentHeader>(0)->published(SegmentKind::results) ||
      (client && !v.frames_.at<SegmentHeader>(0)->published(SegmentKind::frames)))
    return Error{
        "a stream's segments are of another layout version; install the same release of leatd and its clients"};
  return v;
}

}  // namespace leat::shm
