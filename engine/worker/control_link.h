// The worker's end of its control socket (protocol.h). One thread. Errors: one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "shm/src/protocol/control_protocol.h"
#include "tools/base/text/fd.h"

namespace leat::worker {

class ControlLink {
 public:
  explicit ControlLink(Fd fd) noexcept : fd_(std::move(fd)) {}

  enum class Got : std::uint8_t { message, nothing, gone };  // gone: leatd is
  // One message, in packet and descriptors from then on; `wait`: until there is one, or leatd is gone.
  Got receive(bool wait);
  // While it starts: leatd still has something to say.
  Status wait_for_message();

  // To leatd. tell() neither waits nor passes descriptors, and is what the sandbox allows.
  Status tell(std::span<const std::byte> packet) const;
  // The same of what must not be lost. False: leatd has not read what came before; again when fd() can be written.
  [[nodiscard]] bool told(std::span<const std::byte> packet) const;
  Status send(std::vector<std::byte> packet, std::span<const int> descriptors = {}) const;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::uint32_t messages() const noexcept { return messages_; }  // DispatchCell::control counts the same

  std::vector<std::byte> packet;  // the last message
  std::vector<Fd> descriptors;    // that came with it

 private:
  Fd fd_;
  std::uint32_t messages_ = 0;  // read so far
  std::string why_;             // what ended it
};

}  // namespace leat::worker
