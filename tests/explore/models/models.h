// The models: what each protocol of shm/src is asked to do while every execution of it is looked at. They are small:
// one message more than a ring holds, one sleep more than a wake, one use more of a slot.
#pragma once

#include <vector>

#include "tests/explore/explorer.h"

namespace leat::explore {

enum class Size : bool { small, large };  // large: by hand, a minute

std::vector<Model> ring_models(Size size);
std::vector<Model> bell_models(Size size);
std::vector<Model> slot_models(Size size);
std::vector<Model> frame_models(Size size);
std::vector<Model> page_models(Size size);  // counters, events, schedules, the segments' header

// All of them.
inline std::vector<Model> models(Size size) {
  std::vector<Model> all;
  for (const auto& some : {ring_models, bell_models, slot_models, frame_models, page_models})
    for (Model& model : some(size)) all.push_back(std::move(model));
  return all;
}

}  // namespace leat::explore
