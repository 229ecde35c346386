// The client library's part in grants: whether a frame is wanted, and the waits for that.
#include "leat/leat.h"
#include "shm/src/client/client_errors.h"
#include "shm/src/client/client_parts.h"

using namespace leat::shm;

namespace {

// Streams of which a frame was not wanted.
template <class Use>
void for_each_that_asks(leat_client* c, const Use& use) {
  for (const auto& s : c->streams)
    if (s && s->waits_for_grants && s->grants.asks()) use(s->grants);
}

bool any_news(leat_client* c) {
  bool any = false;
  for_each_that_asks(c, [&](const GrantView& grants) { any = any || grants.news(); });
  return any;
}

class AwaitsTurn final : public BellWatch::Sleeper {
 public:
  explicit AwaitsTurn(GrantView& grants) noexcept : grants_(grants) { grants_.await(true); }
  ~AwaitsTurn() { grants_.await(false); }
  void publish() noexcept override {}  // answers are the other thread's
  bool nothing() const noexcept override { return !grants_.news(); }

 private:
  GrantView& grants_;
};

// With one thread: answers, and turns of whoever asks.
class AwaitsBoth final : public BellWatch::Sleeper {
 public:
  explicit AwaitsBoth(leat_client* c) noexcept : c_(c) {
    for_each_that_asks(c, [](GrantView& grants) { grants.await(true); });
  }
  ~AwaitsBoth() {
    for_each_that_asks(c_, [](GrantView& grants) { grants.await(false); });
  }
  void publish() noexcept override { c_->completions.publish(); }
  bool nothing() const noexcept override { return c_->kept.empty() && c_->completions.empty() && !any_news(c_); }

 private:
  leat_client* c_;
};

// Sleeps until `me` has something, or the time is up.
template <class Sleeper>
leat_error wait_for(leat_client* c, Sleeper& me, std::int64_t until_ns) {
  while (me.nothing()) {
    if (c->disconnected.load(std::memory_order_relaxed)) return disconnected(c);
    if (until_ns >= 0 && leat_now_ns() >= until_ns) return LEAT_ERROR_timed_out;
    if (!c->watch.sleep(c->bell, *c->sleep, me, until_ns)) c->disconnected.store(true, std::memory_order_relaxed);
  }
  return LEAT_ERROR_ok;
}

std::int64_t end_of(std::int64_t timeout_ns) { return timeout_ns < 0 ? -1 : leat_now_ns() + timeout_ns; }

}  // namespace

namespace leat::shm {

bool arm_descriptor(leat_client* c) {
  announce_awake(*c->sleep);
  if (c->bell.drain() != Drained::rings) c->disconnected.store(true, std::memory_order_relaxed);
  for_each_that_asks(c, [](GrantView& grants) { grants.await(true); });
  return may_sleep(
      [c] {
        c->completions.publish();
        announce_sleep(*c->sleep);
      },
      [c] { return c->completions.empty() && !any_news(c); });
}

}  // namespace leat::shm

int leat_wanted(leat_stream* stream, int64_t capture_ns) { return leat_should_submit(stream, capture_ns); }

leat_error leat_wait_wanted(leat_stream* stream, int64_t capture_ns, int64_t timeout_ns) {
  if (stream == nullptr || stream->schedule != nullptr)
    return fail(LEAT_ERROR_invalid_argument,
                "leat_wait_wanted: no stream, or a coordinated one; open it with waits_for_grants");
  if (leat_wanted(stream, capture_ns) != 0) return LEAT_ERROR_ok;
  leat_client* c = stream->client;
  if (timeout_ns == 0) {
    if (c->fd_used && !arm_descriptor(c) && leat_wanted(stream, capture_ns) != 0) return LEAT_ERROR_ok;
    return c->disconnected.load(std::memory_order_relaxed) ? disconnected(c) : fail_static(LEAT_ERROR_timed_out);
  }
  if (c->fd_used)
    return fail(LEAT_ERROR_invalid_argument,
                "leat_wait_wanted: this client's descriptor is in use; wait on that, and look with a timeout of 0");
  const std::int64_t until_ns = end_of(timeout_ns);
  AwaitsTurn me(stream->grants);
  do {
    if (const leat_error error = wait_for(c, me, until_ns); error != LEAT_ERROR_ok)
      return error == LEAT_ERROR_timed_out ? fail_static(error) : error;
  } while (leat_wanted(stream, capture_ns) == 0);
  return LEAT_ERROR_ok;
}

leat_error leat_wait_any(leat_client* client, int64_t timeout_ns) {
  if (client->fd_used)
    return fail(LEAT_ERROR_invalid_argument, "leat_wait_any: this client's descriptor is in use; wait on that");
  AwaitsBoth me(client);
  const leat_error error = wait_for(client, me, end_of(timeout_ns));
  return error == LEAT_ERROR_timed_out ? fail_static(error) : error;
}
