// Plain memory that is handed from one to another: who touches it out of turn is found out.
#pragma once

#include <cstdint>

#include "shm/src/rings/fences.h"

namespace leat::explore {

inline void write(std::uint64_t& to, std::uint64_t value) { shm::copy_in(&to, &value, sizeof value); }
inline std::uint64_t read(const std::uint64_t& from) {
  std::uint64_t value = 0;
  shm::copy_once(value, &from);
  return value;
}

}  // namespace leat::explore
