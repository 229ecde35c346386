// A result slot for tests, with the directory that a module's parts need, as leatd lays it out. Values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "engine/exec/module.h"
#include "leat/result_parts.h"

namespace leat::exec {

struct Slot {
  std::vector<std::byte> bytes;
  explicit Slot(const Module& module, bool each = false, std::uint32_t rows = 1) {
    std::uint64_t at = LEAT_PAYLOAD_OFFSET;
    std::vector<leat_part> parts;
    for (const PartSpec& need : module.parts()) {
      parts.push_back(entry_of(need, 0, each, rows));
      parts.back().offset = at;
      at += round_part((need.bytes + need.tail) * rows);
    }
    bytes.resize(at + 64, std::byte{0});
    result()->part_count = static_cast<std::uint32_t>(parts.size());
    std::ranges::copy(std::as_bytes(std::span(parts)), bytes.data() + LEAT_PARTS_OFFSET);  // there may be none
  }
  leat_result* result() { return reinterpret_cast<leat_result*>(bytes.data()); }
  leat_part_view part(std::uint32_t i) {
    leat_part_view view;
    EXPECT_TRUE(leat_part_at(result(), bytes.size(), i, &view)) << i;
    return view;
  }
  template <class T>
  std::vector<T> values(std::uint32_t i) {
    const leat_part_view view = part(i);
    std::vector<T> out(view.count);
    EXPECT_EQ(view.bytes, view.count * sizeof(T));
    std::memcpy(out.data(), view.data, std::min(view.bytes, view.count * sizeof(T)));
    return out;
  }
};

}  // namespace leat::exec
