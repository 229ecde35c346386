// The client library's C ABI: one connection, its streams, frames and answers. See leat/leat.h for the contract.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "leat/leat.h"
#include "shm/src/client/client_errors.h"
#include "shm/src/client/client_parts.h"
#include "shm/src/client/client_state.h"
#include "shm/src/protocol/control_protocol.h"
#include "shm/src/rings/fences.h"
#include "shm/src/rings/wait_policy.h"
#include "tools/base/cores/core_count.h"

using namespace leat::shm;
using leat::Result;

namespace {

// A host with ten times the work that it can do still answers.
constexpr std::int64_t kDefaultTimeoutNs = 10'000'000'000;

// For people to read: cut to fit, and what is no plain letter is a question mark.
template <std::size_t N>
void set_printable(char (&to)[N], const char* text) noexcept {
  set_text(to, text);
  for (char& ch : to)
    if (ch != '\0' && (ch < ' ' || ch > '~')) ch = '?';
}

bool gone(leat_client* c) {
  if (c->disconnected.load(std::memory_order_relaxed)) return true;
  if (!c->bell.hung_up()) return false;
  c->disconnected.store(true, std::memory_order_relaxed);
  return true;
}

// Of a child of the process that connected: the memory is not mapped there, and what it said would be taken for its
// parent's.
bool anothers(const leat_client* c) { return c->control.process != ::getpid(); }
leat_error refuse_anothers() {
  return fail(LEAT_ERROR_invalid_argument,
              "this client belongs to the process that connected; connect in this one too");
}

// Sends a control message and waits for its reply, which must be an R.
template <class R, class M>
leat_error exchange(leat_client* c, M message, R* reply, std::vector<Fd>* fds, std::string* tail,
                    std::int64_t timeout_ns) {
  message.header.request = c->control.request++;
  // Also where it cannot be sent: the connection may have been refused, and the reason waits to be read.
  const bool sent = send(c->control.socket.get(), message).ok();
  leat_error error = LEAT_ERROR_ok;
  Result<Reply> got = await_reply(c->control.socket.get(), message.header.request, sent ? timeout_ns : 0, &error);
  if (!got && !sent && error == LEAT_ERROR_timed_out) return disconnected(c);
  if (!got) {
    if (error == LEAT_ERROR_disconnected) return disconnected(c);
    return fail(error, got.error());
  }
  std::string_view text;
  if (const char* wrong = decode(got->packet, reply, &text)) return fail(LEAT_ERROR_protocol, wrong);
  if (tail) *tail = text;
  if (fds) *fds = std::move(got->fds);
  return LEAT_ERROR_ok;
}

// Says that it has mapped what it was given and waits until leatd has sealed it (Mapped).
leat_error secured(leat_client* c, std::uint32_t stream, std::int64_t timeout_ns) {
  Mapped m;
  m.stream = stream;
  Secured reply;
  return exchange(c, m, &reply, nullptr, nullptr, timeout_ns);
}

// Maps what Welcome brought: uplink, downlink, bell.
leat_error map_links(leat_client* c, std::vector<Fd> fds) {
  if (fds.size() != 3) return fail(LEAT_ERROR_protocol, "leatd's welcome lacks its descriptors");
  constexpr LinkLayout up = uplink_layout(), down = downlink_layout();
  Result<Mapping> u = Mapping::map(fds[0].get(), up.bytes, Access::read_write, true);
  if (!u) return fail(LEAT_ERROR_no_memory, u.error());
  Result<Mapping> d = Mapping::map(fds[1].get(), down.bytes, Access::read_only, true);
  if (!d) return fail(LEAT_ERROR_no_memory, d.error());
  if (!u->at<SegmentHeader>(0)->published(SegmentKind::uplink) ||
      !d->at<SegmentHeader>(0)->published(SegmentKind::downlink))
    return fail(LEAT_ERROR_wrong_version,
                "leatd's segments are of another layout version; install the same release of both");
  c->uplink = std::move(u).value();
  c->downlink = std::move(d).value();
  c->bell = BellSocket(std::move(fds[2]));
  c->submissions = {c->uplink.at<SubmissionDescriptor>(up.cells_offset), up.capacity,
                    c->downlink.at<IndexLine>(down.index_offset)};
  c->completions = {c->downlink.at<CompletionDescriptor>(down.cells_offset), down.capacity,
                    c->uplink.at<IndexLine>(up.index_offset)};
  c->daemon_waker = Waker(c->downlink.at<SleepWord>(down.sleep_offset));
  c->sleep = c->uplink.at<SleepWord>(up.sleep_offset);
  return secured(c, kLinks, c->control.timeout_ns);
}

std::vector<std::vector<std::string>> split_names(std::string_view tail) {
  std::vector<std::vector<std::string>> heads;
  while (!tail.empty()) {
    const std::size_t end = tail.find('\n');
    std::string_view line = tail.substr(0, end);
    tail = end == std::string_view::npos ? std::string_view() : tail.substr(end + 1);
    auto& names = heads.emplace_back();
    while (!line.empty()) {
      const std::size_t tab = line.find('\t');
      names.emplace_back(line.substr(0, tab));
      line = tab == std::string_view::npos ? std::string_view() : line.substr(tab + 1);
    }
  }
  return heads;
}

void fill_frame(leat_stream* s, std::uint32_t slot, std::uint32_t generation, Color color, leat_frame* out) {
  const PoolLayout& l = s->view.layout();
  *out = {};
  out->stream = s;
  out->slot = slot;
  out->generation = generation;
  out->format = s->view.spec().format;
  out->width = s->view.spec().width;
  out->height = s->view.spec().height;
  out->plane_count = l.planes;
  out->bytes = l.frame_bytes;
  for (std::uint32_t p = 0; p < l.planes; ++p) {
    out->planes[p] = s->view.writable_plane(slot, p);
    out->strides[p] = l.strides[p];
    out->rows[p] = l.rows[p];
    out->row_bytes[p] = l.row_bytes[p];
  }
  out->color_range = color.range;
  out->color_matrix = color.matrix;
  const PoolSpec& spec = s->view.spec();
  out->tensor_count = spec.tensor_count;
  for (std::uint32_t i = 0; i < spec.tensor_count; ++i) {
    out->tensors[i] = s->view.writable_plane(slot, 0) + l.tensor_offset[i];
    out->tensor_bytes[i] = tensor_bytes(spec.tensors[i]);
  }
}

// A ticket is slot and generation: what the daemon's cancel needs, unique within a stream for 2^32 uses of a slot.
constexpr std::uint64_t ticket_of(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | slot;
}

// False: an answer of a stream that was closed meanwhile; it is discarded.
bool fill_answer(leat_client* c, const CompletionDescriptor& d, leat_answer* out) {
  if (d.stream >= kMaxStreamsPerClient || !c->streams[d.stream]) return false;
  leat_stream* s = c->streams[d.stream].get();
  *out = {};
  out->stream = s;
  out->ticket = ticket_of(d.slot, d.generation);
  out->cookie = d.cookie;
  out->outcome = d.outcome;
  out->reason = d.reason;
  out->flags = d.flags;
  out->slot = d.slot;
  out->generation = d.generation;
  out->where = d.where;
  out->capture_ns = d.capture_ns;
  out->deadline_ns = d.deadline_ns;
  out->answered_ns = d.answered_ns;
  // Relaxed: who reads it holds the answer, and with it the slot, which comes back to here only by way of leatd.
  if (d.slot < s->answered.size()) {
    leat_stream::Answered& answered = s->answered[d.slot];
    atomic_ref(answered.dispatched_ns).store(d.dispatched_ns, std::memory_order_relaxed);
    atomic_ref(answered.color).store(d.color, std::memory_order_relaxed);
  }
  out->result = d.has_result != 0 && d.slot < s->view.spec().slots ? s->view.result(d.slot) : nullptr;
  out->result_bytes = out->result != nullptr ? s->view.layout().result_stride : 0;
  return true;
}

bool pop_answer(leat_client* c, leat_answer* out) {
  CompletionDescriptor d;
  while (!c->kept.empty()) {
    d = c->kept.front();
    c->kept.pop_front();
    if (fill_answer(c, d, out)) return true;
  }
  while (c->completions.pop(d))
    if (fill_answer(c, d, out)) return true;
  return false;
}

class AwaitsAnswer final : public BellWatch::Sleeper {
 public:
  explicit AwaitsAnswer(leat_client* c) noexcept : c_(c) {}
  void publish() noexcept override { c_->completions.publish(); }
  bool nothing() const noexcept override { return c_->completions.empty(); }

 private:
  leat_client* c_;
};

// leatd brings large pools step by step, beside those of others.
constexpr std::int64_t patience_ns(const PoolLayout& l) { return static_cast<std::int64_t>(l.frames_bytes) * 40; }

leat_error open_stream(leat_client* c, const leat_stream_options& o, leat_stream** out) {
  OpenStream m;
  if (std::char_traits<char>::length(o.application) >= sizeof m.application)
    return fail(LEAT_ERROR_invalid_argument, "application: a name has at most 63 bytes");
  set_text(m.application, o.application);
  if (o.name != nullptr) set_printable(m.name, o.name);
  m.pool = {o.format, o.width, o.height, {o.strides[0], o.strides[1], o.strides[2]}, 0, o.memory};
  m.pool.codec = o.codec;
  if (o.tensor_count > LEAT_MAX_TENSORS || (o.tensor_count != 0 && o.tensors == nullptr))
    return fail(LEAT_ERROR_invalid_argument, "tensors: 1..8 shapes are needed with the format tensors");
  m.pool.tensor_count = o.tensor_count;
  std::copy_n(o.tensors, o.tensor_count, m.pool.tensors);
  m.settings = settings_of(o);
  m.pool.slots = o.slots != 0 ? o.slots : m.settings.depth + 3;
  m.fewer_slots = o.slots == 0 && o.depth == 0 ? 1 : 0;
  if (const char* text = problem(m.settings)) return fail(LEAT_ERROR_invalid_argument, text);  // of which slots follow
  if (const char* text = problem(m)) return fail(LEAT_ERROR_invalid_argument, text);

  StreamOpened opened;
  std::vector<Fd> fds;
  std::string tail;
  const std::int64_t timeout_ns = c->control.timeout_ns + patience_ns(pool_layout(m.pool));
  if (const leat_error e = exchange(c, m, &opened, &fds, &tail, timeout_ns); e != LEAT_ERROR_ok) return e;
  if (fds.size() != 2) return fail(LEAT_ERROR_protocol, "leatd's reply lacks the stream's descriptors");
  if (c->streams[opened.stream]) return fail(LEAT_ERROR_protocol, "leatd gave a stream index that is in use");
  Result<StreamView> view =
      StreamView::map_for_client(opened.pool, std::move(fds[0]), std::move(fds[1]),
                                 FrameSlots(c->uplink.at<SlotWord>(uplink_layout().stream_words(opened.stream)),
                                            opened.pool.slots, opened.stream));
  if (!view) {
    CloseStream close;
    close.stream = opened.stream;
    StreamClosed closed;
    (void)exchange(c, close, &closed, nullptr, nullptr, c->control.timeout_ns);
    return fail(LEAT_ERROR_no_memory, view.error());
  }
  if (const leat_error e = secured(c, opened.stream, timeout_ns); e != LEAT_ERROR_ok) return e;
  auto s = std::make_unique<leat_stream>();
  s->client = c;
  s->index = opened.stream;
  s->slo_ns = opened.slo_ns;
  s->view = std::move(view).value();
  s->answered.resize(opened.pool.slots);
  s->color = opened.pool.bitstream() ? m.settings.color()
                                     : color_of(m.settings.color(), {}, opened.pool.format, opened.pool.height);
  s->names = split_names(tail);
  SchedulePage* const page = c->downlink.at<SchedulePage>(downlink_layout().schedule(opened.stream));
  if (m.settings.sla_drop_ppm != 0) s->schedule = page;
  s->waits_for_grants = m.settings.waits_for_grants != 0;
  if (s->waits_for_grants) s->grants.attach(page, c->uplink.at<OfferCell>(uplink_layout().offer(opened.stream)));
  s->clock = FrameClock(m.settings.period_ns);
  *out = s.get();
  c->streams[opened.stream] = std::move(s);
  return LEAT_ERROR_ok;
}

}  // namespace

leat_error leat::shm::disconnected(leat_client* c) {
  c->disconnected.store(true, std::memory_order_relaxed);
  return fail(LEAT_ERROR_disconnected,
              "leatd at " + c->control.path + " closed the connection or ended; disconnect and connect again");
}

leat_error leat_connect(const leat_connect_options* options, leat_client** out) try {
  if (out == nullptr) return fail(LEAT_ERROR_invalid_argument, "leat_connect: out is NULL");
  *out = nullptr;
  const leat_connect_options o = options ? *options : leat_connect_options{};
  if (o.timeout_ns < 0 || o.wait > LEAT_WAIT_YIELD || o.reserved != 0)
    return fail(LEAT_ERROR_invalid_argument, "leat_connect: an option is out of its range");
  auto c = std::make_unique<leat_client>();
  c->control.path = o.socket ? o.socket : leat_default_socket();
  c->control.timeout_ns = o.timeout_ns != 0 ? o.timeout_ns : kDefaultTimeoutNs;
  // Who asks to yield is heard even when pinned to one core: it is the worker there that a yield lets run.
  const bool yields = o.wait == LEAT_WAIT_YIELD;
  c->wait =
      choose_wait_policy(Role::client, yields ? std::max(2u, leat::core_count()) : leat::core_count(), false, yields);
  leat_error error = LEAT_ERROR_ok;
  Result<Fd> socket = connect_to(c->control.path, &error, c->control.timeout_ns);
  if (!socket) return fail(error, socket.error());
  c->control.socket = std::move(socket).value();
  Hello hello;
  set_printable(hello.name, o.name ? o.name : program_invocation_short_name);
  Welcome welcome;
  std::vector<Fd> fds;
  if (const leat_error e = exchange(c.get(), hello, &welcome, &fds, nullptr, c->control.timeout_ns); e != LEAT_ERROR_ok)
    return e;
  if (const leat_error e = map_links(c.get(), std::move(fds)); e != LEAT_ERROR_ok) return e;
  *out = c.release();
  return LEAT_ERROR_ok;
} catch (const std::bad_alloc&) {
  return fail(LEAT_ERROR_no_memory, "no memory for a connection");
}

void leat_disconnect(leat_client* client) {
  if (client != nullptr && !anothers(client)) delete client;
}

void leat_stream_options_init(leat_stream_options* options) {
  *options = {};
  options->overload = LEAT_OVERLOAD_latest;
  options->priority = LEAT_PRIORITY_NORMAL;
}

leat_error leat_open_stream(leat_client* client, const leat_stream_options* options, leat_stream** out) try {
  if (client == nullptr || options == nullptr || out == nullptr || options->application == nullptr)
    return fail(LEAT_ERROR_invalid_argument, "leat_open_stream: an argument or the application's name is missing");
  *out = nullptr;
  if (anothers(client)) return refuse_anothers();
  const std::lock_guard lock(client->control.mutex);
  if (gone(client)) return disconnected(client);
  return open_stream(client, *options, out);
} catch (const std::bad_alloc&) {
  return fail(LEAT_ERROR_no_memory, "no memory for a stream");
}

leat_error leat_close_stream(leat_stream* stream) try {
  if (stream == nullptr) return LEAT_ERROR_ok;
  leat_client* c = stream->client;
  if (anothers(c)) return refuse_anothers();
  const std::lock_guard lock(c->control.mutex);
  leat_flush(c);
  CloseStream m;
  m.stream = stream->index;
  StreamClosed closed;
  const leat_error error = gone(c) ? LEAT_ERROR_ok : exchange(c, m, &closed, nullptr, nullptr, c->control.timeout_ns);
  // The daemon has answered everything of this stream before it replied: discard those, keep the others'.
  CompletionDescriptor d;
  while (c->completions.pop(d))
    if (d.stream != m.stream) c->kept.push_back(d);
  std::erase_if(c->kept, [&](const CompletionDescriptor& k) { return k.stream == m.stream; });
  c->streams[m.stream].reset();
  return error;
} catch (const std::bad_alloc&) {
  return fail(LEAT_ERROR_no_memory, "no memory to close a stream");
}

uint32_t leat_stream_slots(const leat_stream* stream) { return stream->view.spec().slots; }
int64_t leat_stream_slo_ns(const leat_stream* stream) { return stream->slo_ns; }

const char* leat_class_name(const leat_stream* stream, uint32_t head, int32_t class_id) {
  if (head >= stream->names.size() || class_id < 0 || static_cast<std::size_t>(class_id) >= stream->names[head].size())
    return nullptr;
  const std::string& name = stream->names[head][static_cast<std::size_t>(class_id)];
  return name.empty() ? nullptr : name.c_str();  // a gap in the numbers
}

leat_error leat_acquire(leat_stream* stream, leat_frame* out) {
  const auto got = stream->view.slots().acquire();
  if (!got) {
    *out = {};
    if (gone(stream->client)) return disconnected(stream->client);
    return fail_static(LEAT_ERROR_ring_full);
  }
  fill_frame(stream, got->slot, got->generation, stream->color, out);
  return LEAT_ERROR_ok;
}

void leat_abandon(leat_frame* frame) {
  if (frame == nullptr || frame->stream == nullptr) return;
  frame->stream->view.slots().abandon(frame->slot, frame->generation);
  *frame = {};
}

leat_error leat_submit(leat_frame* frame, const leat_submit_options* options, uint64_t* ticket) {
  if (frame == nullptr || frame->stream == nullptr)
    return fail(LEAT_ERROR_invalid_argument, "leat_submit: the frame was not acquired");
  leat_stream* s = frame->stream;
  leat_client* c = s->client;
  const leat_submit_options o = options ? *options : leat_submit_options{};
  if (o.capture_ns < 0 || o.deadline_ns < 0 || o.items > kMaxItems ||
      (o.flags & ~(LEAT_SUBMIT_MORE | LEAT_SUBMIT_GAP | LEAT_SUBMIT_DAMAGED)) != 0 ||
      !color_known(o.color_range, o.color_matrix))
    return fail(LEAT_ERROR_invalid_argument,
                "leat_submit: a time is negative, there are over 64 items, or a flag, color_range or color_matrix is "
                "unknown");
  const PoolSpec& spec = s->view.spec();
  if (spec.bitstream() ? o.bytes == 0 || o.bytes > spec.strides[0] || o.items > 1
                       : o.bytes != 0 || (o.flags & LEAT_SUBMIT_GAP) != 0)
    return fail(LEAT_ERROR_invalid_argument,
                "leat_submit: a bitstream's frame is one access unit of at least one byte and at most the slot's room; "
                "other frames have no length and no gap");
  if (c->submissions.room(1) == 0) return gone(c) ? disconnected(c) : fail_static(LEAT_ERROR_ring_full);
  if (!s->view.slots().submit(frame->slot, frame->generation))
    return fail(LEAT_ERROR_invalid_argument, "leat_submit: the frame was submitted or abandoned before");
  SubmissionDescriptor d;
  d.kind = SubmissionKind::submit;
  d.memory = static_cast<std::uint8_t>(spec.memory);
  d.bytes = o.bytes;
  d.gap = (o.flags & LEAT_SUBMIT_GAP) != 0 ? 1 : 0;
  d.damaged = (o.flags & LEAT_SUBMIT_DAMAGED) != 0 ? 1 : 0;
  d.color = {static_cast<std::uint8_t>(o.color_range), static_cast<std::uint8_t>(o.color_matrix)};
  d.stream = static_cast<std::uint16_t>(s->index);
  d.cookie = o.cookie;
  d.capture_ns = o.capture_ns != 0 ? o.capture_ns : leat_now_ns();
  d.deadline_ns = o.deadline_ns;
  d.slot = frame->slot;
  d.generation = frame->generation;
  d.key = o.key;
  d.items = o.items != 0 ? o.items : 1;
  static_cast<void>(c->submissions.push(d));  // there is room: looked above, and this thread is the only producer
  if (ticket) *ticket = ticket_of(frame->slot, frame->generation);
  *frame = {};
  if (s->waits_for_grants) s->grants.use();
  c->unflushed = true;
  return (o.flags & LEAT_SUBMIT_MORE) != 0 ? LEAT_ERROR_ok : leat_flush(c);
}

leat_error leat_flush(leat_client* client) {
  if (std::exchange(client->unflushed, false) && client->daemon_waker.should_ring()) client->bell.ring();
  return LEAT_ERROR_ok;
}

leat_error leat_cancel(leat_stream* stream, uint64_t ticket) {
  leat_client* c = stream->client;
  SubmissionDescriptor d;
  d.kind = SubmissionKind::cancel;
  d.stream = static_cast<std::uint16_t>(stream->index);
  d.slot = static_cast<std::uint32_t>(ticket);
  d.generation = static_cast<std::uint32_t>(ticket >> 32);
  if (d.slot >= stream->view.spec().slots)
    return fail(LEAT_ERROR_invalid_argument, "leat_cancel: not a ticket of this stream");
  if (!c->submissions.push(d)) return gone(c) ? disconnected(c) : fail_static(LEAT_ERROR_ring_full);
  c->unflushed = true;
  return leat_flush(c);
}

leat_error leat_next_answer(leat_client* client, int64_t timeout_ns, leat_answer* out) {
  leat_client* c = client;
  if (pop_answer(c, out)) return LEAT_ERROR_ok;
  if (timeout_ns == 0) {
    if (c->fd_used && !arm_descriptor(c) && pop_answer(c, out)) return LEAT_ERROR_ok;
    if (c->disconnected.load(std::memory_order_relaxed)) return pop_answer(c, out) ? LEAT_ERROR_ok : disconnected(c);
    return fail_static(LEAT_ERROR_timed_out);
  }
  const std::int64_t until = timeout_ns < 0 ? -1 : leat_now_ns() + timeout_ns;
  Waiter waiter(c->wait);
  for (;;) {
    if (waiter.should_park(true)) {
      if (c->disconnected.load(std::memory_order_relaxed)) return pop_answer(c, out) ? LEAT_ERROR_ok : disconnected(c);
      if (until >= 0 && leat_now_ns() >= until) return gone(c) ? disconnected(c) : fail_static(LEAT_ERROR_timed_out);
      AwaitsAnswer me(c);
      if (!c->watch.sleep(c->bell, *c->sleep, me, until)) c->disconnected.store(true, std::memory_order_relaxed);
      waiter.reset();
    }
    if (pop_answer(c, out)) return LEAT_ERROR_ok;
  }
}

leat_error leat_answer_frame(const leat_answer* answer, leat_frame* out) {
  if (answer == nullptr || answer->stream == nullptr)
    return fail(LEAT_ERROR_invalid_argument, "leat_answer_frame: no answer");
  leat_stream* const s = answer->stream;
  Color color;
  if (answer->slot < s->answered.size())
    color = atomic_ref(s->answered[answer->slot].color).load(std::memory_order_relaxed);
  fill_frame(s, answer->slot, answer->generation, color_or(color, s->color), out);
  return LEAT_ERROR_ok;
}

int64_t leat_dispatched_ns(const leat_answer* answer) {
  if (answer == nullptr || answer->stream == nullptr || answer->slot >= answer->stream->answered.size()) return 0;
  return atomic_ref(answer->stream->answered[answer->slot].dispatched_ns).load(std::memory_order_relaxed);
}

void leat_release(leat_answer* answer) {
  if (answer == nullptr || answer->stream == nullptr) return;
  answer->stream->view.slots().free(answer->slot, answer->generation);
  *answer = {};
}

int leat_answer_fd(leat_client* client) {
  if (gone(client)) return -1;
  client->fd_used = true;  // from now on an empty leat_next_answer(.., 0, ..) arms it
  return client->bell.fd();
}
