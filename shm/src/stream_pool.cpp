#include "shm/src/stream_pool.h"

#include <string>
#include <utility>

namespace leat::shm {

Result<StreamPool> StreamPool::create(const PoolSpec& spec, std::uint32_t owner) {
  StreamPool p;
  p.spec_ = spec;
  p.layout_ = pool_layout(spec);
  for (std::uint32_t i = 0; i < p.layout_.planes; ++i) p.spec_.strides[i] = p.layout_.strides[i];
  Result<Segment> frames = Segment::create("leat:frames", p.layout_.frames_bytes, Seal::size);
  if (!frames) return Error{frames.error()};
  Result<Segment> results = Segment::create("leat:results", p.layout_.results_bytes, Seal::size);
  if (!results) return Error{results.error()};
  p.frames_ = std::move(frames).value();
  p.results_ = std::move(results).value();
  p.slots_ = FrameSlots(p.frames_.memory().at<SlotWord>(p.layout_.words_offset), spec.slots, owner);
  p.results_.memory().at<SegmentHeader>(0)->publish(SegmentKind::results, p.layout_.results_bytes);
  p.frames_.memory().at<SegmentHeader>(0)->publish(SegmentKind::frames, p.layout_.frames_bytes);
  return p;
}

Result<Fd> StreamPool::frames_for_client() const { return duplicate(frames_.fd()); }
Result<Fd> StreamPool::results_for_client() const { return results_.share_read_only(); }
Result<Fd> StreamPool::frames_for_worker() const { return frames_.share_read_only(); }
Result<Fd> StreamPool::results_for_worker() const { return duplicate(results_.fd()); }

Result<StreamView> StreamView::map_for_worker(const PoolSpec& spec, Fd frames, Fd results) {
  return map(spec, std::move(frames), std::move(results), false, 0);
}
Result<StreamView> StreamView::map_for_client(const PoolSpec& spec, Fd frames, Fd results, std::uint32_t owner) {
  return map(spec, std::move(frames), std::move(results), true, owner);
}

Result<StreamView> StreamView::map(const PoolSpec& spec, Fd frames, Fd results, bool client, std::uint32_t owner) {
  if (const char* text = problem(spec)) return Error{std::string("a stream's pool cannot be mapped: ") + text};
  StreamView v;
  v.spec_ = spec;
  v.layout_ = pool_layout(spec);
  Result<Mapping> f = Mapping::map(frames.get(), v.layout_.frames_bytes, client ? Access::read_write : Access::read_only, true);
  if (!f) return Error{f.error()};
  Result<Mapping> r = Mapping::map(results.get(), v.layout_.results_bytes, client ? Access::read_only : Access::read_write, true);
  if (!r) return Error{r.error()};
  v.frames_ = std::move(f).value();
  v.results_ = std::move(r).value();
  // The client can overwrite the frames segment's header, so only the client, whose own it is, looks at it.
  if (!v.results_.at<SegmentHeader>(0)->published(SegmentKind::results) ||
      (client && !v.frames_.at<SegmentHeader>(0)->published(SegmentKind::frames)))
    return Error{"a stream's segments are of another layout version; install the same release of leatd and its clients"};
  if (client) v.slots_ = FrameSlots(v.frames_.at<SlotWord>(v.layout_.words_offset), spec.slots, owner);
  return v;
}

}  // namespace leat::shm
