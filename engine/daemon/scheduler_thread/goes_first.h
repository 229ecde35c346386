// A thread whose turns are short and that others wait for, on cores that it shares.
#pragma once

namespace leat::daemon {

// The calling thread is run sooner when it wakes: at nice -10 where that is permitted (root, CAP_SYS_NICE), and with
// the shortest slice that the scheduler gives, which anybody may ask for and which costs nobody any time: on Linux 6.12
// and later who runs for a tenth of a millisecond at most comes before who runs for longer. Elsewhere that does
// nothing.
void go_first() noexcept;

}  // namespace leat::daemon
