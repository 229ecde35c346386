// Two users who send frames to one leatd, each in a process of its own: an honest one, and one whose frames cost others
// dear. What the honest one has of them is what is looked at. Needs root, to be other users.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "leat/client.hpp"
#include "tests/serving/daemon_fixture.h"

namespace leat::test {

inline constexpr std::uint32_t kHonest = 4'000'000'001, kDear = 4'000'000'002;

// Frames one after the other at a fixed rate.
struct Flow {
  leat_stream_options stream;
  double rate = 50;  // frames a second
  std::uint32_t frames = 200;
  std::function<void(const leat_frame&)> fill;
};

struct Tally {
  std::uint32_t submitted = 0, answered = 0, in_time = 0;
  std::uint32_t refused = 0, poison = 0;  // rejected; for poison, whatever the outcome
};

// A process of that user which sends the frames and ends.
class Sender {
 public:
  Sender(std::uint32_t uid, const std::string& socket, const Flow& flow);
  ~Sender();  // waits for it
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  Tally tally() const;  // waits for its end

 private:
  pid_t pid_ = -1;
  int from_ = -1;
};

// A leatd that every user may talk to: of this process's user, or of an ordinary one.
std::unique_ptr<Leatd> open_to_all(const std::string& config, bool as_root);

}  // namespace leat::test
