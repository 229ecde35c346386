// A picture with what there is to draw on it, out of the slots that it came in: whoever has the time draws it later.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.h"
#include "tools/leat/draw/answer.h"

namespace leat::tools {

struct Shot {
  std::function<draw::Picture(std::optional<draw::Size> tile)> draw;  // as draw_answer's tile
  std::size_t bytes = 0;                                              // that it holds
};

// What is seen of an answer. name: of classes; the stream outlives what is returned. title: stands in the banner.
[[nodiscard]] draw::AnswerView view_of(const leat_answer& answer, const std::string& title = "");

// Copies of the frame's pixels and of the answer's result. The answer's stream outlives the shot, for its class names.
[[nodiscard]] Shot shot_of(const leat_answer& answer, const leat_frame& frame, const std::string& title);
[[nodiscard]] Shot shot_of(const leat_frame& frame, std::vector<draw::Tracked> tracked);

}  // namespace leat::tools
