// What a worker gives up before it loads anything, so that every thread it will ever have is without it: neither
// Landlock nor capabilities can be taken from threads that are there already (the filter of sandbox.h can, and comes
// when the worker is ready). Nothing it needs to load or to serve is among it:
//
//   * being looked into: it is not dumpable, so that no other process of its user reads its memory or takes its
//     descriptors, leatd's other workers included; it leaves no core dump;
//   * other processes, where the kernel has Landlock: it can neither trace them nor read them, nothing below /proc that
//     is another's can be opened, and /sys and the rest of /proc cannot be written; from Linux 6.12 on no signal
//     leaves it. All other files stay as its user has them;
//   * descriptors beyond the first thousand, without a device;
//   * root's power, where leatd is root and gives it no user of its own: of the capabilities it keeps the one to read
//     files, and with a device the one to pin memory. Without them it has no power over leatd, which has them all.
//
// With Sandbox::off nothing of it happens. Thread rule: the process's only thread.
#pragma once

#include "engine/worker/sandbox/sandbox.h"

namespace leat::worker {

class Confinement {
 public:
  Confinement(Sandbox sandbox, bool device) noexcept;
  // In this order: begin() before the worker becomes another user, settle() as the one it stays, device_opened() when
  // it has its device, or needs none.
  void begin() const;
  void settle() const;
  void device_opened() const;

 private:
  void give_up_power() const;
  bool any_, device_;
  // Landlock once the device is there: an ordinary user's driver may start a program with more rights than his to make
  // its device files, which Landlock would prevent.
  bool late_;
};

// Not dumpable, unless `sandbox` is off; leatd as well.
void become_opaque(Sandbox sandbox);

}  // namespace leat::worker
