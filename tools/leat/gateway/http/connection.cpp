#include "tools/leat/gateway/http/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "leat/leat.h"

namespace leat::gateway {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kReadAtOnce = 4U << 20;
constexpr std::uint64_t kMaxThrownAway = 4U << 20;  // of a body that nobody wants, so that its sender reads the answer
constexpr std::int64_t kEndingNs = 2'000'000'000;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// Bytes; 0: it would block; -1: the other end is gone.
ssize_t receive(int fd, void* to, std::size_t bytes) {
  for (;;) {
    const ssize_t got = ::recv(fd, to, bytes, MSG_DONTWAIT);
    if (got > 0) return got;
    if (got == 0) return -1;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  }
}

}  // namespace

Connection::Connection(boost::asio::io_context& io, int fd, Peer peer, Shared& shared)
    : fd_(io, fd), peer_(std::move(peer)), shared_(shared) {}

Connection::~Connection() = default;

void Connection::start() {
  enter(State::head, shared_.limits.head_ns);
  wait_readable();
}

void Connection::enter(State state, std::int64_t wait_ns) {
  state_ = state;
  since_ns_ = ::leat_now_ns();
  deadline_ns_ = since_ns_ + wait_ns;
}

void Connection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  job_.reset();
  then_ = nullptr;
  reply_ = {};
  boost::system::error_code ignored;
  fd_.close(ignored);
  shared_.ended(*this);
}

void Connection::look(std::int64_t now) {
  if (state_ == State::body && !moved_ && !place_.empty() && now - since_ns_ > shared_.limits.slow_ns) {
    moved_ = true;
    if (const auto other = job_->other_place(filled_); !other.empty()) {
      place_ = other;
      ++shared_.counts.slow_bodies;
    }
  }
  if (state_ == State::working && give_up_ns_ != 0 && now > give_up_ns_) {
    give_up_ns_ = 0;
    reply(error_reply(504, "late: no answer came in time"));
  }
  if (state_ == State::closed || state_ == State::working || now < deadline_ns_) return;
  ++shared_.counts.timed_out;
  close();
}

void Connection::wait_readable() {
  if (waiting_ || state_ == State::closed) return;
  waiting_ = true;
  fd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                 [self = shared_from_this()](const boost::system::error_code& error) {
                   self->waiting_ = false;
                   if (error || self->state_ == State::closed) return;
                   self->on_readable();
                 });
}

void Connection::on_readable() {
  switch (state_) {
    case State::head:
      return on_head(true);
    case State::body:
      return fill();
    case State::ending:
      return read_away();
    default:  // what is next waits in the socket
      return;
  }
}

void Connection::on_head(bool more_came) {
  if (more_came) {
    const std::size_t had = in_.size();
    in_.resize(had + kReadBytes);
    const ssize_t got = receive(fd_.native_handle(), in_.data() + had, kReadBytes);
    in_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) return close();
    if (had == 0 && !in_.empty()) enter(State::head, shared_.limits.head_ns);
  }
  if (in_.empty()) return wait_readable();
  HeadRead read = read_head(in_);
  if (read.status != 0) {
    ++shared_.counts.bad_heads;
    return refuse(read.status, read.why);
  }
  if (read.bytes == 0) return wait_readable();
  in_.erase(0, read.bytes);
  head_ = std::move(read.head);
  began_ns_ = since_ns_;
  begin_request();
}

void Connection::refuse(int status, const std::string& why) {
  replied_ = false;
  body_left_ = UINT64_MAX;  // nobody knows where it ends
  head_.keep_alive = false;
  Reply reply = error_reply(status, why);
  reply.close = true;
  this->reply(std::move(reply));
}

void Connection::begin_request() {
  ++shared_.counts.requests;
  replied_ = moved_ = false;
  give_up_ns_ = 0;
  place_ = {};
  then_ = nullptr;
  body_left_ = head_.content_bytes;
  thrown_away_ = 0;
  enter(State::working, 0);
  if (head_.content_bytes > shared_.limits.body_bytes)
    return refuse(413, "a body has at most " + std::to_string(shared_.limits.body_bytes) + " bytes here");
  job_ = shared_.service.begin(head_, peer_);
  job_->start(*this);
}

void Connection::read(std::span<std::byte> place, std::function<void()> then) {
  if (replied_ || state_ == State::closed) return;
  if (head_.expects_continue) {
    head_.expects_continue = false;
    if (in_.empty() && ::send(fd_.native_handle(), kContinue.data(), kContinue.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
                           static_cast<ssize_t>(kContinue.size()))
      return boost::asio::post(fd_.get_executor(), [self = shared_from_this()] { self->close(); });
  }
  const bool first = body_left_ == head_.content_bytes;
  const std::int64_t since = since_ns_, deadline = deadline_ns_;
  enter(State::body, shared_.limits.body_ns);
  if (!first) {  // the whole body has one limit
    since_ns_ = since;
    deadline_ns_ = deadline;
  }
  place_ = place.first(std::min<std::uint64_t>(place.size(), body_left_));
  then_ = std::move(then);
  filled_ = std::min(place_.size(), in_.size());
  std::memcpy(place_.data(), in_.data(), filled_);
  in_.erase(0, filled_);
  boost::asio::post(fd_.get_executor(), [self = shared_from_this()] { self->fill(); });
}

void Connection::fill() {
  if (state_ != State::body || !then_) return;
  for (std::size_t now = 0; filled_ < place_.size();) {
    if (now > kReadAtOnce) return wait_readable();  // others have their turn
    const ssize_t got = receive(fd_.native_handle(), place_.data() + filled_, place_.size() - filled_);
    if (got < 0) return close();
    if (got == 0) return wait_readable();
    filled_ += static_cast<std::size_t>(got);
    now += static_cast<std::size_t>(got);
  }
  body_left_ -= place_.size();
  place_ = {};
  const std::int64_t since = since_ns_, deadline = deadline_ns_;
  enter(State::working, 0);
  since_ns_ = since;
  deadline_ns_ = deadline;
  const auto then = std::exchange(then_, nullptr);
  then();
}

void Connection::reply(Reply reply) {
  if (replied_ || state_ == State::closed) return;
  replied_ = true;
  then_ = nullptr;
  place_ = {};
  reply_ = std::move(reply);
  boost::asio::post(fd_.get_executor(), [self = shared_from_this()] { self->send(); });
}

void Connection::send() {
  if (state_ == State::closed) return;
  job_.reset();
  keep_alive_ = head_.keep_alive && !reply_.close && body_left_ == 0 && !shared_.draining;
  out_head_ = head_of(reply_, keep_alive_);
  enter(State::writing, shared_.limits.write_ns);
  if (head_.method == "HEAD") reply_.body.clear(), reply_.pieces.clear();
  std::vector<iovec> parts;
  parts.push_back({out_head_.data(), out_head_.size()});
  if (!reply_.body.empty()) parts.push_back({reply_.body.data(), reply_.body.size()});
  for (const auto& piece : reply_.pieces)
    parts.push_back({const_cast<std::byte*>(piece.data()), piece.size()});  // sendmsg only reads it
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t sent_bytes = ::sendmsg(fd_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent_bytes < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return close();
    sent_bytes = 0;
  }
  std::size_t whole = 0;
  for (const iovec& part : parts) whole += part.iov_len;
  if (static_cast<std::size_t>(sent_bytes) == whole) return sent();
  keep_unsent(static_cast<std::size_t>(sent_bytes));
}

// What others lent for the reply goes back now; the rest is sent from a copy, as fast as it is read.
void Connection::keep_unsent(std::size_t already) {
  const std::size_t left = out_head_.size() + reply_.body_bytes() - already;
  if (!out_.take(shared_.held, left)) return close();
  std::size_t skip = already, at = 0;
  const auto add = [&](const void* from, std::size_t bytes) {
    const std::size_t skipped = std::min(skip, bytes);
    skip -= skipped;
    std::memcpy(out_.bytes().data() + at, static_cast<const std::byte*>(from) + skipped, bytes - skipped);
    at += bytes - skipped;
  };
  add(out_head_.data(), out_head_.size());
  add(reply_.body.data(), reply_.body.size());
  for (const auto& piece : reply_.pieces) add(piece.data(), piece.size());
  reply_ = {};
  out_sent_ = 0;
  wait_writable();
}

void Connection::wait_writable() {
  fd_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                 [self = shared_from_this()](const boost::system::error_code& error) {
                   if (error || self->state_ != State::writing) return;
                   if (self->send_some()) self->sent();
                 });
}

bool Connection::send_some() {
  while (out_sent_ < out_.bytes().size()) {
    const auto left = out_.bytes().subspan(out_sent_);
    const ssize_t bytes = ::send(fd_.native_handle(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_writable(), false;
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return close(), false;
    out_sent_ += static_cast<std::size_t>(bytes);
  }
  return true;
}

void Connection::sent() {
  reply_ = {};
  out_ = HeldMemory();
  if (keep_alive_) {
    used_ = true;
    enter(State::head, in_.empty() ? shared_.limits.idle_ns : shared_.limits.head_ns);
    return on_head(false);
  }
  if (body_left_ == 0) return close();
  // Closed with bytes unread, the answer might be lost with the connection.
  (void)::shutdown(fd_.native_handle(), SHUT_WR);
  enter(State::ending, kEndingNs);
  in_.clear();
  read_away();
}

void Connection::read_away() {
  char scrap[kReadBytes];
  for (int i = 0; i < 8; ++i) {
    const ssize_t got = receive(fd_.native_handle(), scrap, sizeof scrap);
    if (got < 0) return close();
    if (got == 0) break;
    thrown_away_ += static_cast<std::uint64_t>(got);
    if (thrown_away_ > kMaxThrownAway) return close();
  }
  wait_readable();
}

}  // namespace leat::gateway
