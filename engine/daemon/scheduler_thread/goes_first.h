// A thread whose turns are short and that others wait for, on cores that it shares.
#pragma once

namespace leat::daemon {

// The calling thread is run sooner when it wakes: with the shortest slice that the scheduler gives, which anybody may
// ask for and which costs nobody any time. On Linux 6.12 and later who runs for a tenth of a millisecond at most comes
// before who runs for longer; elsewhere this does nothing. No core is ever a thread's alone: clients, leatd's other
// threads and the kernel's run where they find room.
void take_short_slices() noexcept;

// And before others of its priority: nice -10 where that is permitted (root, CAP_SYS_NICE), unless it is less already.
void go_first() noexcept;

}  // namespace leat::daemon
