// What an assailant does to leatd's door, its tables and its authority: moves that the attacks are made of. Each takes
// a few milliseconds and may keep connections for the next. Thread rule: one thread a Moves.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>

#include "tests/attacks/arena/raw_client.h"

namespace leat::test {

class Moves {
 public:
  Moves(std::string socket, std::uint64_t seed) : socket_(std::move(socket)), random_(seed) {}

  // ---- the door ----
  void silent();           // connects and says nothing
  void knock();            // connects and leaves, again and again
  void half_a_hello();     // a truncated message
  void observers();        // observers that stay
  void unread_counters();  // observers that ask for the counters and never read
  void unread_welcome();   // clients that never read what they were given
  void leave_unread();     // the same, and gone
  void status_flood();     // asks for the status as fast as it is read
  void status_unread();    // the same without reading

  // ---- authority ----
  // A stream with one thing in it that only some may ask for. False: it was let in.
  bool too_urgent(std::uint32_t priority);
  bool too_short(std::int64_t slo_ns);
  bool never_dropped();
  void too_many();  // streams, requests and memory until refused

  // ---- rings and slots ----
  void late_cancels();
  void torn_words();
  void close_and_submit();
  void vanish();    // with everything in flight
  void nonsense();  // descriptors with bits turned

  void any();  // one of all the above, by chance
  void let_go() { kept_.clear(); }
  std::size_t kept() const { return kept_.size(); }

 private:
  bool client(RawClient& c);
  RawClient& keep(RawClient c);
  bool ask_for(std::uint32_t priority, std::int64_t slo_ns, std::uint32_t overload);
  bool observer(RawClient& c);

  std::string socket_;
  std::mt19937_64 random_;
  std::deque<RawClient> kept_;
};

}  // namespace leat::test
