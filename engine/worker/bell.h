// Waking between leatd's scheduler thread and one worker: a socket pair of their own, each end rings the other. An
// eventfd would be one open file description for both, and its flags the worker's to change: it could clear
// O_NONBLOCK and fill the counter, and leatd would wait in write(); with one that all workers ring it could take the
// others' rings away. send() and recv() with MSG_DONTWAIT wait for no flag, and each end is its holder's alone.
//
// Nothing but bytes comes through: newer kernels refuse descriptors here (kernel_features.h), and where they do not, a
// worker's sandbox refuses the call that passes them. Thread rule: one thread an end.
#pragma once

#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace leat::worker {

class Bell {
 public:
  struct Pair;
  static Result<Pair> create();
  Bell() = default;
  explicit Bell(Fd fd) noexcept : fd_(std::move(fd)) {}  // received from its maker
  int fd() const noexcept { return fd_.get(); }
  void ring() const noexcept;   // never waits; a peer that has not drained yet wakes anyway
  bool drain() const noexcept;  // never waits, takes a bounded number of rings; false: the peer has hung up

 private:
  Fd fd_;
};
struct Bell::Pair {
  Bell daemon;
  Fd worker;  // to be passed on
};

}  // namespace leat::worker
