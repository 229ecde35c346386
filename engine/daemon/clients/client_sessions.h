// The control side of clients and observers: who may connect, what they ask, what they get. One session per connection.
// Every message is validated by the control protocol's decode(); a client that sends anything else loses its connection
// and raises a counter. What a user may have and ask for is looked up once, when he connects (user_limits.h), and what
// he has is kept in his account (user_accounts.h); who asks for more gets one line that says what to raise.
//
// Admission (client_admission.cpp): accepting, hello, ending, and what leatd itself is short of. A user at his limit
// makes room with an observer of his own, of the process that has most of them; some sessions are kept for root and
// leatd's own user, so that an operator always gets in. Descriptors sent count as in flight until they are read; a
// connection that ends with some unread lingers until they are, and counts as one of its user's sessions.
// Messages and streams: client_sessions.cpp.
//
// The life of a stream (client_streams.cpp): building -> unmapped (its client is told and maps it) -> securing ->
// announced (workers are told) -> opening -> open -> closing -> discarding. What takes as long as the client chose is
// done by the pool builder meanwhile (pool_builder.h); what is granted counts until the memory is given back. No frame
// of a stream is sent to a worker that has not been sent its pool before.
//
// What a client can make take long is not done here: making and letting go of what is shared with it, sockets too, and
// hanging up its bell are jobs of its user's (jobs/pool_builder.h), and so are all calls on its bell once one of them
// took long (client_bells.cpp).
//
// Thread rule: the control thread. Nothing here blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/daemon/clients/jobs/pool_builder.h"
#include "engine/daemon/clients/observer_views.h"
#include "engine/daemon/clients/pool_numbers.h"
#include "engine/daemon/clients/served_application.h"
#include "engine/daemon/clients/stream_rules.h"
#include "engine/daemon/clients/users/subordinate_uids.h"
#include "engine/daemon/clients/users/user_accounts.h"
#include "engine/daemon/configuration/config.h"
#include "engine/daemon/event_loop/event_loop.h"
#include "engine/daemon/metrics/metrics.h"
#include "engine/daemon/metrics/slow_calls.h"
#include "engine/daemon/scheduler_thread/command_queue.h"
#include "engine/daemon/scheduler_thread/granted_stream.h"
#include "engine/daemon/workers/supervisor.h"
#include "shm/src/client/client_port.h"
#include "shm/src/protocol/control_protocol.h"
#include "shm/src/protocol/listener.h"

namespace leat::daemon {

class ClientSessions {
 public:
  struct Environment {
    const Config& config;
    std::vector<ServedApplication> applications;
    EventLoop& loop;
    Metrics& metrics;
    Supervisor& supervisor;
    PoolBuilder& pools;
    std::function<void(const Command&)> command;  // to the scheduler thread
    std::function<Result<std::uint64_t>(const shm::Change&, std::string_view text)> change;
    std::function<std::string()> status_json;
    std::function<const char*()> not_ready;  // nullptr: serving; else why not yet or not any more
  };
  // The event loop's tokens from first_token on are its sessions' sockets and bells.
  ClientSessions(Environment environment, std::uint64_t first_token);
  ~ClientSessions();

  // What the models turned out to need: before anything is served, and when others take their place. No name: nothing
  // is served by that number.
  void serve(std::uint32_t application, ServedApplication as) {
    if (application >= env_.applications.size()) env_.applications.resize(application + 1);
    env_.applications[application] = std::move(as);
  }
  void limits_changed();       // the configuration's are others now: for those too who are connected
  void objectives_changed() {  // for streams that are opened from now on
    for (std::size_t a = 0; a < env_.applications.size(); ++a)
      env_.applications[a].slo_ns = env_.config.applications[a].application.slo_ns;
  }
  std::uint32_t clients() const noexcept { return totals_.clients; }
  // False: enough for a moment; some that were turned away are still to be closed.
  bool accept(shm::Fd connection);
  void turn_away(shm::Fd connection) { let_go(UINT32_MAX, std::move(connection)); }  // of nobody known
  // Once a turn of the control thread: ends who has not said hello in time, lets go on who had to wait.
  void advance(std::int64_t now_ns);
  [[nodiscard]] std::int64_t next_due() const noexcept;  // when advance() should be called; INT64_MAX: whenever
  void on_ready(std::uint64_t token);
  void on_scheduler_event(const SchedulerEvent& event);  // those that concern clients and streams
  void on_pools();                                       // the pool builder has done something
  void close_all();  // connections, for the end; ports go as the scheduler thread gives them back

 private:
  enum class StreamState : std::uint8_t {
    none,
    building,
    unmapped,
    securing,
    announced,
    opening,
    open,
    closing,
    discarding
  };
  struct StreamEntry {
    StreamState state = StreamState::none;
    std::uint32_t request = 0;              // of the message to answer
    bool reply = false;                     // closing: the client asked and waits
    std::unique_ptr<shm::StreamPool> pool;  // while unmapped or announced
    GrantedStream granted;
    std::uint64_t bytes = 0;
    std::uint32_t slots = 0;
  };
  // Of a client's uplink and downlink. The scheduler thread knows the port once they are secured, and drains it then.
  // none: an observer's, or of who has not said hello.
  enum class LinkState : std::uint8_t { none, making, unmapped, securing, secured, drained, closing };
  struct Links {
    LinkState state = LinkState::none;
    std::uint32_t request = 0;              // to answer when they are secured
    std::shared_ptr<shm::ClientPort> port;  // once they are made; jobs have it too
  };
  // The bell of a client whose wakes take long, which are jobs then (client_bells.cpp).
  struct Bell {
    bool apart = false, watched = false;
    bool ringing = false, again = false;  // a job is out; it was asked for once more meanwhile
    SlowCalls calls;
  };
  // Who is at the other end, and for whom it counts.
  struct Who {
    bool trusted = false;
    shm::Peer peer;  // as the kernel says
    Login login;     // whom all it has and asks for is counted for
    UserLimits limits;
    UserAccount* account = nullptr;
    std::uint64_t serial = 0;  // the older, the lower
    std::string name;
  };
  struct Connection {
    shm::Fd socket;
    std::int64_t accepted_ns = 0;
    std::int64_t waits_until_ns = 0;      // its messages came too fast: not looked at before; 0: it does not wait
    std::uint32_t descriptors_out = 0;    // sent and not known to be read
    shm::TokenBucket messages{500, 200};  // who sends more waits
    SlowCalls calls;                      // on its socket
  };
  struct Observing {
    bool given = false;  // the counters
    bool view = false;   // they are a view of his own records
  };
  struct Session {
    bool used = false, greeted = false, observer = false;
    bool connected = false;  // false: the connection has ended, the port is being drained or the session lingers
    Who who;
    Connection connection;
    Observing observing;
    // A client's.
    std::uint32_t client = 0;  // index of record and of the scheduler's table
    Links links;
    Bell bell;
    std::uint64_t bytes = 0;
    std::uint32_t slots = 0, streams = 0;
    std::vector<StreamEntry> stream;
  };
  // Of all sessions together.
  struct Totals {
    std::uint32_t sessions = 0, clients = 0, streams = 0;
    std::uint32_t announced = 0;  // streams
    std::uint32_t closing = 0;    // connections that are still to be closed
    std::uint32_t descriptors_out = 0;
    std::uint64_t bytes = 0, requests = 0;
  };

  // Of a table's places, those that are kept for root and leatd's own user.
  static std::uint32_t kept_of(std::uint32_t places) { return places < 2 ? 0 : std::max(places / 16, 1u); }
  bool allowed(const shm::Peer& peer) const;
  bool sees_all(const Session& s) const;
  Objection objection_to(const shm::Peer& peer, const Login& login, const UserAccount& account,
                         const UserLimits& limits, bool trusted, int connection);
  bool make_room(const UserAccount& account, const shm::Peer& peer, bool trusted);
  bool few_descriptors(int any, bool trusted) const;
  void settle_descriptors(Session& s);
  bool may_send(const Session& s, std::uint32_t descriptors);
  void release(Session& s);
  void let_go(std::uint32_t user, shm::Fd shared);
  void hang_up(Session& s);
  bool too_slow(Session& s, SlowCalls& calls, std::int64_t own_ns);
  void on_socket(std::uint32_t session);

  void ask_of_port(const Session& s, PoolJob::Work work, std::shared_ptr<shm::ClientPort> port);
  void on_bell(Session& s);
  void ring(Session& s);
  void set_apart(Session& s);
  void watch_bell(Session& s);
  void bell_done(Session& s, const PoolJob& job);

  void handle(std::uint32_t session, const std::vector<std::byte>& packet);
  void hello(Session& s, const std::vector<std::byte>& packet);
  void open_stream(Session& s, const std::vector<std::byte>& packet);
  void close_stream(Session& s, const std::vector<std::byte>& packet);
  void observe(Session& s, std::uint32_t request);
  void stop_viewing(Session& s);
  void status(Session& s, std::uint32_t request);
  void change(Session& s, const std::vector<std::byte>& packet);
  void linked(Session& s, PoolJob job);
  void mapped(Session& s, const std::vector<std::byte>& packet);
  void overdue(Session* s, std::uint32_t user);
  void links_secured(Session& s, const std::string& error);
  void stream_built(Session& s, PoolJob job);
  void stream_secured(Session& s, PoolJob job);
  void open_announced(Session& s);
  void stream_opened(Session& s, std::uint32_t stream);
  void discard(Session& s, std::uint32_t index, std::unique_ptr<shm::StreamPool> pool);
  void stream_gone(Session& s, std::uint32_t index);
  void leave(Session& s);          // the connection has ended: what the scheduler thread does not know goes
  void finish_client(Session& s);  // when nothing of it is left
  Session* of_serial(std::uint64_t serial);

  const ServedApplication* application_of(std::string_view name) const;
  Objection objection_to(const Session& s, const shm::OpenStream& m, std::uint64_t bytes,
                         const ServedApplication& application) const;
  static Objection objection_to_another(const Session& s, const shm::OpenStream& m);
  Objection objection_to_number(const Session& s, std::uint32_t depth) const;
  Objection objection_to_memory(const Session& s, std::uint64_t bytes) const;
  std::uint32_t grant(Session& s, const shm::OpenStream& m, const ServedApplication& application,
                      const shm::PoolLayout& layout);  // index of the stream
  void begin_record(const Session& s, std::uint32_t index, const shm::PoolSpec& pool, const std::string& label);

  void refuse(Session& s, std::uint32_t request, leat_error error, shm::Refusal why, const std::string& text);
  void refused(UserAccount& account, shm::Refusal why, const std::string& text, std::int64_t now);
  // False: it did not go out, and the client was told, or is gone.
  template <class M>
  bool reply(Session& s, const M& message, std::uint32_t request, std::span<const int> fds = {},
             std::string_view tail = {}) {
    M numbered = message;
    numbered.header.request = request;
    return deliver(s, request, shm::encode(numbered, tail), fds);
  }
  bool deliver(Session& s, std::uint32_t request, std::span<const std::byte> packet, std::span<const int> fds);
  void violate(Session& s, shm::Violation cause);
  void disconnect(Session& s);
  void publish(const Session& s);
  Session* of_client(std::uint32_t client);

  Environment env_;
  std::uint64_t first_token_;
  UserAccounts accounts_;
  std::int64_t told_refusal_ns_ = 0;
  SubordinateUids subordinates_;
  ObserverViews views_;
  PoolNumbers pool_numbers_;
  Totals totals_;
  std::uint64_t open_files_ = 0;  // this process may have
  std::uint64_t serial_ = 0;
  std::string status_;                     // made once a turn at most
  std::int64_t due_ns_ = INT64_MAX;        // nothing to advance before
  std::vector<Session> sessions_;          // clients and observers
  std::vector<std::uint32_t> session_of_;  // [client]
};

}  // namespace leat::daemon
