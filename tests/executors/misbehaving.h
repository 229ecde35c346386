// What a frame's first byte asks of the misbehaving executor (misbehaving.cpp). Any other byte: nothing.
#pragma once

#include <cstdint>

namespace leat::test {

enum class Ask : std::uint8_t {
  nothing = 0,
  open_socket = 1,
  write_file = 2,  // the option `file`
  remove_file = 3,
  start_program = 4,
  trace = 5,   // leatd
  signal = 6,  // leatd, with one that it ignores
  io_uring = 7,
  work = 8,   // what serving needs
  crash = 9,  // ends the worker
  hang = 10,
  denormals = 11  // computes with some on a thread of its own
};

}  // namespace leat::test
