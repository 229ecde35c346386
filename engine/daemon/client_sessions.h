// The control side of clients and observers: who may connect, what they ask, what they get. One session per connection.
// Every message is validated by the control protocol's decode(); a client that sends anything else loses its connection
// and raises a counter.
//
// Thread rule: the control thread. Nothing here blocks, but opening a stream prefaults its slots (about 1 ms per MiB).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/daemon/config.h"
#include "engine/daemon/counters_board.h"
#include "engine/daemon/event_loop.h"
#include "engine/daemon/mailbox.h"
#include "engine/daemon/supervisor.h"
#include "shm/src/client_port.h"
#include "shm/src/protocol.h"

namespace leat::daemon {

// What a client may know of an application.
struct ServedApplication {
  std::string name;
  std::int64_t slo_ns = 0;
  std::string class_names;  // StreamOpened's tail
};

class ClientSessions {
 public:
  struct Environment {
    const Config& config;
    std::vector<ServedApplication> applications;
    EventLoop& loop;
    CountersBoard& board;
    Supervisor& supervisor;
    std::function<void(const Command&)> command;        // to the scheduler thread
    std::function<std::string()> status_json;
    std::function<const char*()> not_ready;             // nullptr: serving; else why not yet or not any more
  };
  // The event loop's token of session i is first_token + i; there are capacity() of them.
  ClientSessions(Environment environment, std::uint64_t first_token);
  ~ClientSessions();

  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(sessions_.size()); }
  std::uint32_t clients() const noexcept { return clients_; }
  void accept(shm::Fd connection);
  void on_ready(std::uint32_t session, const Readiness& ready);
  void on_notice(const Notice& notice);  // those that concern clients and streams
  void close_all();                      // connections; ports go as their notices come

 private:
  enum class StreamState : std::uint8_t { none, opening, open, closing };
  struct StreamEntry {
    StreamState state = StreamState::none;
    std::uint32_t request = 0;       // of the message to answer
    bool reply = false;              // closing: the client asked and waits
    std::uint32_t application = 0;
    std::uint32_t pool_id = 0, record = 0;
    shm::StreamPool* pool = nullptr; // the scheduler thread's while it lives; its descriptors may be copied from here
    std::uint64_t bytes = 0;
    std::uint32_t slots = 0, depth = 0;
    std::int64_t slo_ns = 0;
  };
  struct Session {
    bool used = false, allowed = false, greeted = false, observer = false;
    bool connected = false;          // false: the connection has ended, the port is being drained
    shm::Fd socket;
    shm::Peer peer;
    std::string name;
    std::uint32_t client = 0;        // index of record and of the scheduler's table
    std::unique_ptr<shm::ClientPort> port;
    std::uint64_t bytes = 0;
    std::uint32_t slots = 0, streams = 0;
    std::vector<StreamEntry> stream;
  };

  bool allowed(const shm::Peer& peer) const;
  void handle(std::uint32_t session, const std::vector<std::byte>& packet);
  void hello(Session& s, const std::vector<std::byte>& packet);
  void open_stream(Session& s, const std::vector<std::byte>& packet);
  void close_stream(Session& s, const std::vector<std::byte>& packet);
  void observe(Session& s, std::uint32_t request);
  void stream_opened(Session& s, std::uint32_t stream);
  void stream_gone(Session& s, const Notice& notice);
  // What stands against the stream, as a refusal; ok: nothing.
  leat_error refuse_reason(const Session& s, const shm::OpenStream& m, std::uint64_t bytes, std::string* text) const;

  void refuse(Session& s, std::uint32_t request, leat_error error, const std::string& text);
  template <class M>
  void reply(Session& s, M message, std::uint32_t request, std::span<const int> fds = {}, std::string_view tail = {});
  void violate(Session& s, shm::Violation cause);
  void disconnect(Session& s);
  void publish(const Session& s);
  Session* of_client(std::uint32_t client);

  Environment env_;
  std::uint64_t first_token_;
  std::vector<Session> sessions_;            // clients and observers
  std::vector<std::uint32_t> session_of_;    // [client]
  std::vector<std::uint32_t> pool_generation_;
  std::vector<bool> pool_used_;              // also the streams' counters records: pool id = record index
  std::uint32_t clients_ = 0, streams_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace leat::daemon
