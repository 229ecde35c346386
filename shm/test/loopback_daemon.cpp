#include "shm/test/loopback_daemon.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "leat/leat.h"

namespace leat::shm::test {

std::uint64_t checksum(const std::uint8_t* data, std::uint64_t bytes) noexcept {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325u;
  for (std::uint64_t i = 0; i < bytes; ++i) h = (h ^ data[i]) * 0x100'0000'01b3u;
  return h;
}

LoopbackDaemon::LoopbackDaemon(Options options) : options_(std::move(options)) {
  Result<Listener> listener = Listener::open(options_.socket, 0600);
  if (!listener) {
    problem_ = listener.error();
    return;
  }
  Result<CountersWriter> counters = CountersWriter::create();
  Result<Doorbell> bell = Doorbell::create();
  if (!counters || !bell) {
    problem_ = counters ? bell.error() : counters.error();
    return;
  }
  listener_ = std::move(listener).value();
  counters_ = std::move(counters).value();
  stop_bell_ = std::move(bell).value();
  counters_.begin(RecordKind::daemon, 0, "loopback").set(DaemonCounter::pid, static_cast<std::uint64_t>(getpid()));
  thread_ = std::thread([this] { run(); });
}

LoopbackDaemon::~LoopbackDaemon() {
  if (!thread_.joinable()) return;
  stop_ = true;
  stop_bell_.ring();
  thread_.join();
}

void LoopbackDaemon::release_held() noexcept {
  release_ = true;
  stop_bell_.ring();
}

std::uint64_t LoopbackDaemon::violations() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& n : violations_) sum += n;
  return sum;
}

void LoopbackDaemon::run() {
  while (!stop_) turn();
  for (auto& c : connections_) end(*c);
  connections_.clear();
}

// True: nothing to do, it is safe to block.
bool LoopbackDaemon::idle() {
  const auto announce = [this] {
    for (auto& c : connections_)
      if (c->port) c->port->announce_sleep();
  };
  return may_sleep(announce, [this] {
    return std::none_of(connections_.begin(), connections_.end(),
                        [](auto& c) { return c->port && c->port->has_submissions(); });
  });
}

void LoopbackDaemon::turn() {
  const bool block = idle();
  std::vector<pollfd> fds = {{stop_bell_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
  for (auto& c : connections_) {
    fds.push_back({c->socket.get(), POLLIN, 0});
    fds.push_back({c->port ? c->port->bell_fd() : -1, POLLIN, 0});
  }
  ::poll(fds.data(), fds.size(), block ? -1 : 0);
  for (auto& c : connections_)
    if (c->port) c->port->announce_awake();
  if (fds[0].revents) stop_bell_.drain();
  const std::size_t known = connections_.size();
  Fd fd;
  std::string text;
  if (fds[1].revents && listener_.accept(&fd, &text) == Accepted::connection) {
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->socket = std::move(fd);
    ++live_;
  }
  const bool release = release_.exchange(false);
  for (std::size_t i = 0; i < known; ++i) {
    Connection& c = *connections_[i];
    bool alive = fds[2 + 2 * i].revents == 0 || serve_control(c);
    if (c.port) {
      if (fds[3 + 2 * i].revents) alive = c.port->drain_bell() == Drained::rings && alive;
      serve_port(c);
      if (release)
        for (const Taken& t : std::exchange(c.held, {})) answer(c, t, Outcome::completed, Reason::none);
      if (c.port->wants_ring()) {
        c.port->ring();
        ++wakes_;
      }
      if (c.port->violation() != Violation::none) {
        ++violations_[static_cast<std::size_t>(c.port->violation())];
        alive = false;
      }
    }
    if (!alive) end(c);
  }
  std::erase_if(connections_, [](auto& c) { return !c->socket; });
}

bool LoopbackDaemon::serve_control(Connection& c) {
  for (int budget = 0; budget < 16; ++budget) {
    std::string text;
    const Got got = receive(c.socket.get(), false, &packet_, nullptr, &text);
    if (got == Got::nothing) return true;
    if (got == Got::closed || got == Got::descriptors) return false;
    Header header;
    const char* wrong = got == Got::broken ? text.c_str() : decode_header(packet_, &header);
    if (wrong == nullptr) {
      if (!handle(c, header)) return false;
      continue;
    }
    ++violations_[static_cast<std::size_t>(Violation::control_message)];
    const leat_error error = wrong == kVersionProblem.data() ? LEAT_ERROR_wrong_version : LEAT_ERROR_protocol;
    static_cast<void>(refuse(c.socket.get(), 0, error, wrong));
    return false;
  }
  return true;
}

bool LoopbackDaemon::handle(Connection& c, const Header& header) {
  const auto broken = [&](const char* wrong) {
    ++violations_[static_cast<std::size_t>(Violation::control_message)];
    static_cast<void>(refuse(c.socket.get(), header.request, LEAT_ERROR_protocol, wrong));
    return false;
  };
  const auto order = [&] {
    ++violations_[static_cast<std::size_t>(Violation::control_order)];
    return false;
  };
  switch (header.type) {
    case MessageType::hello: {
      Hello m;
      if (const char* wrong = decode(packet_, &m)) return broken(wrong);
      return c.port || c.observer ? order() : welcome(c, m);
    }
    case MessageType::mapped: {
      Mapped m;
      if (const char* wrong = decode(packet_, &m)) return broken(wrong);
      const bool links = m.stream == kLinks;
      if (!c.port || (links ? c.port->secured() : !c.port->attached(m.stream))) return order();
      if (!(links ? c.port->secure() : c.port->pool(m.stream)->secure())) return false;
      Secured secured;
      secured.header.request = header.request;
      secured.stream = m.stream;
      return send(c.socket.get(), secured).ok();
    }
    case MessageType::open_stream:
      return c.port && c.port->secured() ? open_stream(c) : order();
    case MessageType::close_stream: {
      CloseStream m;
      if (const char* wrong = decode(packet_, &m)) return broken(wrong);
      if (!c.port || !c.port->attached(m.stream)) return order();
      serve_port(c);
      std::erase_if(c.held, [&](const Taken& t) {
        if (t.stream != m.stream) return false;
        answer(c, t, Outcome::dropped, Reason::stream_closed);
        return true;
      });
      if (c.port->violation() != Violation::none) return false;
      c.port->detach(m.stream);
      StreamClosed closed;
      closed.header.request = header.request;
      closed.stream = m.stream;
      return send(c.socket.get(), closed).ok();
    }
    case MessageType::observe: {
      Observed m;
      m.header.request = header.request;
      m.bytes = counters_.bytes();
      Result<Fd> fd = counters_.share();
      if (!fd) return false;
      const int fds[] = {fd->get()};
      return send(c.socket.get(), m, fds).ok();
    }
    case MessageType::status_request: {
      StatusReply m;
      m.header.request = header.request;
      return send(c.socket.get(), m, {}, "{\"loopback\": true}").ok();
    }
    default:
      return order();
  }
}

bool LoopbackDaemon::welcome(Connection& c, const Hello& m) {
  if (options_.refuse_uid) {
    static_cast<void>(refuse(c.socket.get(), m.header.request, LEAT_ERROR_not_permitted,
                             "this user may not use leatd; see its configuration"));
    return false;
  }
  Welcome w;
  w.header.request = m.header.request;
  set_text(w.daemon_version, "loopback");
  c.observer = m.role == PeerRole::observer;
  if (c.observer) return send(c.socket.get(), w).ok();
  Result<std::unique_ptr<ClientPort>> port = ClientPort::create();
  if (!port) return refuse(c.socket.get(), m.header.request, LEAT_ERROR_no_memory, port.error()).ok();
  c.port = std::move(port).value();
  Result<Fd> up = c.port->uplink_for_client(), down = c.port->downlink_for_client();
  const Fd bell = c.port->bell_for_client();
  if (!up || !down) return false;
  const int fds[] = {up->get(), down->get(), bell.get()};
  return send(c.socket.get(), w, fds).ok();
}

bool LoopbackDaemon::open_stream(Connection& c) {
  OpenStream m;
  if (const char* wrong = decode(packet_, &m)) {
    ++violations_[static_cast<std::size_t>(Violation::control_message)];
    static_cast<void>(refuse(c.socket.get(), 0, LEAT_ERROR_protocol, wrong));
    return false;
  }
  const auto no = [&](leat_error error, std::string_view text) {
    return refuse(c.socket.get(), m.header.request, error, text).ok();
  };
  if (std::find(options_.applications.begin(), options_.applications.end(), text_of(m.application)) ==
      options_.applications.end())
    return no(LEAT_ERROR_no_such_application, "no application of that name; there is 'echo'");
  std::uint32_t index = 0;
  while (index < kMaxStreamsPerClient && c.port->attached(index)) ++index;
  if (index == kMaxStreamsPerClient) return no(LEAT_ERROR_no_room, "this client has all the streams it may have");
  Result<StreamPool> pool = StreamPool::create(m.pool);
  if (!pool) return no(LEAT_ERROR_no_memory, pool.error());
  Result<Fd> frames = pool->frames_for_client(), results = pool->results_for_client();
  if (!frames || !results) return false;
  StreamOpened opened;
  opened.header.request = m.header.request;
  opened.stream = index;
  opened.pool = pool->spec();
  opened.depth = m.settings.depth;
  opened.slo_ns = m.settings.slo_ns != 0 ? m.settings.slo_ns : 200'000'000;
  const int fds[] = {frames->get(), results->get()};
  if (!c.port->attach(index, std::make_unique<StreamPool>(std::move(pool).value())))
    return no(LEAT_ERROR_no_room, "this client has all the slots it may have");
  return send(c.socket.get(), opened, fds, "circle\tsquare\nred\tgreen").ok();
}

void LoopbackDaemon::serve_port(Connection& c) {
  Taken taken[64];
  for (std::uint32_t n; (n = c.port->take(leat_now_ns(), taken)) != 0;) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const Taken& t = taken[i];
      if (t.kind == SubmissionKind::cancel) {
        std::erase_if(c.held, [&](const Taken& h) {
          if (h.stream != t.stream || h.slot != t.slot) return false;
          answer(c, h, Outcome::dropped, Reason::cancelled);
          return true;
        });
      } else if (options_.answer_now(t)) {
        answer(c, t, Outcome::completed, Reason::none);
      } else {
        c.held.push_back(t);
      }
    }
  }
}

void LoopbackDaemon::answer(Connection& c, const Taken& t, Outcome outcome, Reason reason) {
  const std::int64_t began_ns = outcome == Outcome::completed ? leat_now_ns() : 0;
  if (outcome == Outcome::completed) {
    StreamPool& pool = *c.port->pool(t.stream);
    leat_result* r = pool.result(t.slot);
    r->version = LEAT_RESULT_VERSION;
    r->kind = LEAT_RESULT_CHECKSUM;
    r->frame_width = pool.spec().width;
    r->frame_height = pool.spec().height;
    r->checksum = checksum(pool.frame(t.slot), t.bytes);
  }
  c.port->answer({t.stream, t.slot, outcome, reason, outcome == Outcome::completed, t.color, UINT32_MAX, t.deadline_ns,
                  leat_now_ns(), began_ns});
  ++answered_;
}

void LoopbackDaemon::end(Connection& c) {
  if (!c.socket) return;
  if (c.port) {
    c.port->orphan();
    c.port->hang_up();
  }
  c.socket = Fd();
  --live_;
}

}  // namespace leat::shm::test
