#include "tools/leat/feed/video/shot.h"

#include <cstring>
#include <memory>

#include "tools/leat/feed/follower.h"

namespace leat::tools {
namespace {

std::shared_ptr<OwnPicture> copy_of(const leat_frame& frame) {
  auto copy = std::make_shared<OwnPicture>(
      PictureFormat{.format = static_cast<leat_format>(frame.format), .width = frame.width, .height = frame.height});
  copy->frame.color_range = frame.color_range;
  copy->frame.color_matrix = frame.color_matrix;
  for (std::uint32_t p = 0; p < copy->frame.plane_count; ++p)
    for (std::uint32_t y = 0; y < copy->frame.rows[p]; ++y)
      std::memcpy(copy->frame.planes[p] + std::size_t{y} * copy->frame.strides[p],
                  frame.planes[p] + std::size_t{y} * frame.strides[p], copy->frame.row_bytes[p]);
  return copy;
}

// Bytes from the result's beginning that anything was written into: slots have room for the largest answer.
std::uint64_t used_bytes(const leat_answer& answer) {
  std::uint64_t used = std::min<std::uint64_t>(answer.result_bytes, LEAT_PAYLOAD_OFFSET);
  std::uint32_t index = 0;
  for (leat_part_view part; leat_next_part(answer.result, answer.result_bytes, &index, &part) != 0;) {
    const auto begin = static_cast<std::uint64_t>(static_cast<const std::byte*>(part.data) -
                                                  reinterpret_cast<const std::byte*>(answer.result));
    used = std::max(used, begin + part.bytes);
  }
  return used;
}

struct AlignedResult {
  alignas(64) std::byte bytes[64];
};

}  // namespace

draw::AnswerView view_of(const leat_answer& answer, const std::string& title) {
  return {.outcome = static_cast<Outcome>(answer.outcome),
          .reason = static_cast<Reason>(answer.reason),
          .milliseconds = static_cast<double>(answer.answered_ns - answer.capture_ns) / 1e6,
          .result = answer.result,
          .bytes = answer.result_bytes,
          .name = [stream = answer.stream](std::uint32_t head,
                                           std::int32_t id) { return ::leat_class_name(stream, head, id); },
          .title = title};
}

Shot shot_of(const leat_answer& answer, const leat_frame& frame, const std::string& title) {
  const auto picture = copy_of(frame);
  draw::AnswerView view = view_of(answer, title);
  auto result = std::make_shared<std::vector<AlignedResult>>();
  if (answer.result != nullptr) {
    view.bytes = used_bytes(answer);
    result->resize((std::max<std::uint64_t>(view.bytes, sizeof(leat_result)) + 63) / 64);
    std::memcpy(result->data(), answer.result, view.bytes);
    view.result = reinterpret_cast<const leat_result*>(result->data());
  }
  const std::size_t bytes = picture->pixels.size() + result->size() * sizeof(AlignedResult);
  return {[picture, result, view](std::optional<draw::Size> tile) {
            return draw::draw_answer(draw::picture_of(picture->frame), view, tile);
          },
          bytes};
}

Shot shot_of(const leat_frame& frame, std::vector<draw::Tracked> tracked) {
  const auto picture = copy_of(frame);
  return {[picture, tracked = std::move(tracked)](std::optional<draw::Size> tile) {
            return draw::draw_tracked(draw::picture_of(picture->frame), tracked, tile);
          },
          picture->pixels.size()};
}

}  // namespace leat::tools
