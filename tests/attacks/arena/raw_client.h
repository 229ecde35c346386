// A client without the library: raw segments, raw rings, raw messages, nothing guarded. What hostile clients are made
// of. Thread rule: one thread.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "shm/src/protocol/control_protocol.h"
#include "shm/src/protocol/descriptors.h"
#include "shm/src/rings/ring.h"
#include "shm/src/segments/stream_pool.h"

namespace leat::test {

// A limit, not a bar: the machine may be busy.
inline constexpr std::int64_t kReplyNs = 20'000'000'000;

struct RawClient {
  shm::Fd socket, bell;
  shm::Fd links, frames;  // the uplink's descriptor, and that of the stream opened last
  shm::Mapping uplink, downlink;
  shm::StreamView view;  // of the stream opened last
  std::uint32_t stream = 0, request = 0;
  std::string refusal;  // why ask() had no reply last, or what came with it was no use
  shm::RingProducer<shm::SubmissionDescriptor> producer;
  shm::RingConsumer<shm::CompletionDescriptor> consumer;

  bool seals_first = false;         // its links, so that leatd cannot
  bool mapped(std::uint32_t part);  // says so, and waits until it is secured
  bool connect(const std::string& path);
  bool hello(const std::string& name = "attacker");
  // Gray pictures of 64 x 16 unless told otherwise. open_unmapped: the half before mapped(stream).
  bool open_unmapped(const shm::PoolSpec& spec, const std::string& application = "echo");
  bool open(const shm::PoolSpec& spec = {LEAT_FORMAT_gray8, 64, 16, {}, 16, LEAT_SLOT_HOST},
            const std::string& application = "echo");
  // A slot acquired and submitted, and the descriptor that says so, not yet in the ring. Without a free slot one that
  // names slot 0 anew.
  shm::SubmissionDescriptor good();
  [[nodiscard]] bool push(const shm::SubmissionDescriptor& d) { return producer.push(d); }
  void ring();
  bool hung_up();
  // Takes answers and gives their slots back; how many there were.
  std::uint32_t take_answers();
  void tear_words(std::uint64_t value);  // every slot word of the stream opened last

  // Sends and waits for the reply; empty: refused, no connection, or no reply in twenty seconds.
  template <class M>
  std::optional<shm::Reply> ask(M message) {
    message.header.request = ++request;
    leat_error error{};
    refusal.clear();
    if (const auto sent = shm::send(socket.get(), message); !sent.ok()) {
      refusal = sent.error();
      return std::nullopt;
    }
    auto reply = shm::await_reply(socket.get(), request, kReplyNs, &error);
    if (!reply.ok()) {
      refusal = reply.error();
      return std::nullopt;
    }
    return std::move(*reply);
  }
};

}  // namespace leat::test
