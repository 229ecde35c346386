// Bells whose calls take long, because many threads wait at the client's end: apart from the scheduler thread, which
// tells when one is to be rung and is told when one was. A job's thread rings and drains them, one at a time each, and
// times it: who makes that take long again is ended. Where calls on his user's things take long again, the bells of
// clients that connect soon after are apart from the beginning. When no call on anything of his user's has taken long
// for a while, a bell goes back: a pause of the machine may have hit an honest one. See client_sessions.h.
#include "engine/daemon/clients/client_sessions.h"
#include "shm/src/rings/clock.h"

namespace leat::daemon {

void ClientSessions::ask_of_port(const Session& s, PoolJob::Work work, std::shared_ptr<shm::ClientPort> port) {
  PoolJob job;
  job.work = work;
  job.user = s.who.login.uid;
  job.session = s.who.serial;
  job.port = std::move(port);
  env_.pools.ask(std::move(job));
}

void ClientSessions::set_apart(Session& s) {
  if (!s.connected) return;
  s.bell.apart = true;
  (void)too_slow(s, s.bell.calls, SlowCalls::kSlowNs + 1);
  if (s.connected) watch_bell(s);
}

void ClientSessions::watch_bell(Session& s) {
  const auto index = static_cast<std::uint64_t>(&s - sessions_.data());
  s.bell.watched = env_.loop.watch(s.links.port->bell_fd(), first_token_ + sessions_.size() + index).ok();
}

void ClientSessions::on_bell(Session& s) {
  if (!s.connected || !s.bell.watched) return;
  env_.loop.unwatch(s.links.port->bell_fd());  // until it is drained
  s.bell.watched = false;
  ask_of_port(s, PoolJob::Work::drain, s.links.port);
}

void ClientSessions::ring(Session& s) {
  if (!s.connected) return;
  s.bell.again = s.bell.ringing;
  if (!std::exchange(s.bell.ringing, true)) ask_of_port(s, PoolJob::Work::ring, s.links.port);
}

void ClientSessions::bell_done(Session& s, const PoolJob& job) {
  if (job.work == PoolJob::Work::ring) s.bell.ringing = false;
  if (!s.connected || too_slow(s, s.bell.calls, job.own_ns)) return;
  if (job.work == PoolJob::Work::ring) {
    if (std::exchange(s.bell.again, false)) ring(s);
    return;
  }
  if (job.drained == shm::Drained::descriptors) return violate(s, shm::Violation::descriptors);
  if (job.drained == shm::Drained::hung_up) return;  // its socket tells of the end
  env_.command({.kind = Command::Kind::look});
  if (!s.bell.ringing && !s.who.account->slow.askance(shm::monotonic_ns())) {
    s.bell.apart = false;
    return env_.command({.kind = Command::Kind::bell_back, .client = s.client});
  }
  watch_bell(s);
}

}  // namespace leat::daemon
