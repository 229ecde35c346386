// A client of leatd that does what it is told: sound messages, changed ones, descriptors with them, its rings, its
// memory. It never waits, and it learns what it was granted when it is told to read.
//
// Thread rule: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "shm/src/protocol/control_protocol.h"
#include "shm/src/protocol/descriptors.h"
#include "shm/src/rings/ring.h"
#include "shm/src/segments/frame_slots.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/stepped/passed.h"

namespace leat::fuzz {

// What goes with a message: descriptors, and how many bytes of it are changed.
struct Burden {
  std::array<Kind, 4> kinds{};
  std::size_t count = 0;
  std::uint32_t changes = 0;
  std::uint64_t seed = 0;  // where, and to what
};

class Peer {
 public:
  void connect(const std::string& path, uid_t user, pid_t process);
  void hang_up();              // and gives everything back
  void leave_memory();         // keeps the connection
  void half_close(bool read);  // shuts one direction down
  [[nodiscard]] bool connected() const { return static_cast<bool>(socket_); }
  [[nodiscard]] bool ended() const;  // leatd has ended the connection, or there is none
  [[nodiscard]] std::size_t descriptors() const;

  template <class M>
  void say(M message, const Burden& burden, Passed& passed) {
    message.header.request = ++request_;
    transmit(shm::encode(message), burden, passed);
  }
  void again(std::uint32_t times, const Burden& burden, Passed& passed);  // the last message
  void ring(std::uint32_t bytes, const Burden& burden, Passed& passed);
  void read();                                                        // some replies
  shm::OpenStream open(std::uint32_t what, std::uint32_t how) const;  // a message, sound or nearly so

  void submit(std::uint32_t nth, std::int64_t now, Reader* changes);  // nth: of its open streams
  void cancel();
  void report(std::uint32_t nth, std::uint32_t what);  // what a coordinated stream's tracking had lost
  void take_answers();
  void poke_uplink(Reader& in);
  void announce_sleep();
  void tamper(std::uint32_t how);  // with the memory it was given: seals, holes, sizes

  [[nodiscard]] bool greeted() const { return static_cast<bool>(uplink_.data()); }
  [[nodiscard]] bool secured() const { return secured_; }
  [[nodiscard]] std::size_t open_streams() const { return open_.size(); }
  // Index of its nth granted stream, secured or not; kLinks: there is none.
  [[nodiscard]] std::uint32_t granted(std::uint32_t nth) const;
  [[nodiscard]] std::size_t unanswered() const { return unanswered_.size(); }
  // It has written nothing into its rings but whole submissions, so each must be answered once.
  [[nodiscard]] bool honest_rings() const { return honest_rings_; }

  std::uint64_t answers = 0, completed = 0, refusals = 0;

 private:
  struct Stream {
    std::uint32_t index = 0;
    bool secured = false;
    shm::FrameSlots slots;
  };
  void transmit(std::vector<std::byte> packet, const Burden& burden, Passed& passed);
  [[nodiscard]] Own own() const { return {socket_.get(), up_.get(), bell_.get()}; }
  void take(const std::vector<std::byte>& packet, std::vector<shm::Fd> fds);
  void find_open();

  shm::Fd socket_, bell_, up_, frames_;
  shm::Mapping uplink_, downlink_;
  shm::RingProducer<shm::SubmissionDescriptor> producer_;
  shm::RingConsumer<shm::CompletionDescriptor> consumer_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> open_;  // of streams_
  std::vector<std::byte> last_;
  std::set<std::uint64_t> unanswered_;  // cookies
  shm::SubmissionDescriptor last_submission_;
  std::uint64_t cookie_ = 0;
  std::uint32_t request_ = 0;
  bool secured_ = false, honest_rings_ = true;
};

}  // namespace leat::fuzz
