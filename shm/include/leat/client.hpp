// C++ over the C ABI (leat.h): owning handles, results with text, nothing else. Header-only; link libleat.
// Shapes, units, thread rule and errors are those of leat.h. Handles move; a moved-from handle is empty.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "leat/leat.h"
#include "leat/outcome.h"
#include "leat/result.hpp"
#include "leat/track_ids.h"

namespace leat {

// A frame slot being written. Destroyed unsubmitted, it goes back to the pool.
class Frame {
 public:
  Frame() = default;
  explicit Frame(const leat_frame& raw) : raw_(raw) {}
  Frame(Frame&& other) noexcept : raw_(std::exchange(other.raw_, {})) {}
  Frame& operator=(Frame&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Frame() {
    if (raw_.stream) leat_abandon(&raw_);
  }
  const leat_frame* operator->() const noexcept { return &raw_; }
  const leat_frame& raw() const noexcept { return raw_; }
  std::uint8_t* plane(std::uint32_t index) const noexcept { return raw_.planes[index]; }
  // Submits; on success this handle is empty. On an error it still owns the slot.
  leat_error submit(const leat_submit_options& options = {}, std::uint64_t* ticket = nullptr) noexcept {
    const leat_error error = leat_submit(&raw_, &options, ticket);
    if (error == LEAT_ERROR_ok) raw_ = {};
    return error;
  }

 private:
  leat_frame raw_{};
};

// One answer. Its result and pixels are valid while the handle lives.
class Answer {
 public:
  Answer() = default;
  explicit Answer(const leat_answer& raw) : raw_(raw) {}
  Answer(Answer&& other) noexcept : raw_(std::exchange(other.raw_, {})) {}
  Answer& operator=(Answer&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Answer() {
    if (raw_.stream) leat_release(&raw_);
  }
  const leat_answer* operator->() const noexcept { return &raw_; }
  const leat_answer& raw() const noexcept { return raw_; }
  Outcome outcome() const noexcept { return static_cast<Outcome>(raw_.outcome); }
  Reason reason() const noexcept { return static_cast<Reason>(raw_.reason); }
  const leat_result* result() const noexcept { return raw_.result; }
  bool damaged() const noexcept { return (raw_.flags & LEAT_ANSWER_DAMAGED) != 0; }  // submitted so
  // Which version of the models it is of (leat_result::model_version); 0: no result, or no model file.
  std::uint64_t model_version() const noexcept { return raw_.result != nullptr ? raw_.result->model_version : 0; }
  std::chrono::nanoseconds latency() const noexcept {
    return std::chrono::nanoseconds(raw_.answered_ns - raw_.capture_ns);
  }

 private:
  leat_answer raw_{};
};

struct StreamOptions : leat_stream_options {
  StreamOptions() { leat_stream_options_init(this); }
};

// A stream; closed when destroyed. Must not outlive its Client, nor be outlived by its frames and answers.
class Stream {
 public:
  Stream() = default;
  explicit Stream(leat_stream* raw) : raw_(raw) {}
  Stream(Stream&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Stream() {
    if (raw_) leat_close_stream(raw_);
  }
  leat_stream* raw() const noexcept { return raw_; }
  // Empty when every slot is in use (ring_full) or the connection is gone; leat_last_error() says which.
  std::optional<Frame> acquire() noexcept {
    leat_frame frame;
    if (leat_acquire(raw_, &frame) != LEAT_ERROR_ok) return std::nullopt;
    return Frame(frame);
  }
  leat_error cancel(std::uint64_t ticket) noexcept { return leat_cancel(raw_, ticket); }
  // Whether a frame taken then is wanted now: of a stream that waits for grants, or is coordinated; else it always is.
  bool wanted(std::int64_t capture_ns = 0) noexcept { return leat_wanted(raw_, capture_ns) != 0; }
  // Waits until one is. False: not within the time given, or the connection is gone; leat_last_error() says which.
  bool wait_wanted(std::chrono::nanoseconds timeout, std::int64_t capture_ns = 0) noexcept {
    return leat_wait_wanted(raw_, capture_ns, timeout.count()) == LEAT_ERROR_ok;
  }
  // Of a coordinated stream, for each frame: whether it is to be submitted. expected: what tracking has lost on it by
  // now, as TrackedStream::expected() says.
  bool should_submit(std::int64_t capture_ns, double expected = -1) noexcept {
    return leat_should_submit_expecting(raw_, capture_ns, expected) != 0;
  }
  // At an answer: what tracking had lost by then (a TrackingReport's figures), and what it had expected to.
  leat_error observe(std::uint32_t stride, double drop, double expected = -1) noexcept {
    return leat_observe_expecting(raw_, stride, drop, expected);
  }

 private:
  leat_stream* raw_ = nullptr;
};

// A connection.
class Client {
 public:
  // Result's text is leat_last_error(). `socket` empty: leat_default_socket().
  static Result<Client> connect(const std::string& socket = {}, const std::string& name = {}) {
    leat_connect_options options{};
    options.socket = socket.empty() ? nullptr : socket.c_str();
    options.name = name.empty() ? nullptr : name.c_str();
    leat_client* raw = nullptr;
    if (leat_connect(&options, &raw) != LEAT_ERROR_ok) return Error{leat_last_error()};
    return Client(raw);
  }
  Client(Client&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Client() { leat_disconnect(raw_); }
  leat_client* raw() const noexcept { return raw_; }
  Result<Stream> open_stream(const leat_stream_options& options) {
    leat_stream* stream = nullptr;
    if (leat_open_stream(raw_, &options, &stream) != LEAT_ERROR_ok) return Error{leat_last_error()};
    return Stream(stream);
  }
  // Empty: none within the time given, or disconnected (then connected() is false).
  std::optional<Answer> next_answer(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(0)) noexcept {
    leat_answer answer;
    const leat_error error = leat_next_answer(raw_, timeout.count(), &answer);
    connected_ = error != LEAT_ERROR_disconnected;
    if (error != LEAT_ERROR_ok) return std::nullopt;
    return Answer(answer);
  }
  // Until an answer can be taken, or a stream for which no frame was wanted is told something new. False: neither.
  bool wait_any(std::chrono::nanoseconds timeout) noexcept {
    const leat_error error = leat_wait_any(raw_, timeout.count());
    connected_ = error != LEAT_ERROR_disconnected;
    return error == LEAT_ERROR_ok;
  }
  bool connected() const noexcept { return connected_; }
  leat_error flush() noexcept { return leat_flush(raw_); }
  int answer_fd() noexcept { return leat_answer_fd(raw_); }

 private:
  explicit Client(leat_client* raw) : raw_(raw) {}
  leat_client* raw_ = nullptr;
  bool connected_ = true;
};

// Which detection is which object, over the answers of one stream (track_ids.h).
class TrackIds {
 public:
  static Result<TrackIds> create(const leat_track_ids_options* options = nullptr) {
    leat_track_ids* raw = nullptr;
    if (leat_track_ids_create(options, &raw) != LEAT_ERROR_ok) return Error{leat_last_error()};
    return TrackIds(raw);
  }
  TrackIds(TrackIds&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  TrackIds& operator=(TrackIds&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~TrackIds() { leat_track_ids_destroy(raw_); }
  // One for each detection, at most LEAT_MAX_DETECTIONS, valid until the next call; 0: none. Empty: no memory.
  std::span<const std::uint64_t> update(std::int64_t capture_ns, std::span<const leat_detection> found) noexcept {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(found.size(), ids_.size()));
    if (leat_track_ids_update(raw_, capture_ns, found.data(), count, ids_.data()) != LEAT_ERROR_ok) return {};
    return {ids_.data(), count};
  }
  // Of an answer's detections. One without (a dropped frame) says nothing about what is there, and changes nothing.
  std::span<const std::uint64_t> update(const leat_answer& answer) noexcept {
    const leat_result* const r = answer.result;
    if (r == nullptr || r->kind != LEAT_RESULT_DETECTIONS) return {};
    return update(answer.capture_ns, {r->detections, r->detection_count});
  }

 private:
  explicit TrackIds(leat_track_ids* raw) : raw_(raw) {}
  leat_track_ids* raw_ = nullptr;
  std::array<std::uint64_t, LEAT_MAX_DETECTIONS> ids_{};
};

}  // namespace leat
