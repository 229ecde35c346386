#include "tools/leat/gateway/serving/link.h"

#include <fcntl.h>

#include <utility>

namespace leat::gateway {

Link::Opening Link::open(const std::string& socket, const StreamSpec& spec) {
  auto client = Client::connect(socket, "gateway");
  if (!client.ok()) return {.opened = std::nullopt, .refusal = {.status = 503, .why = client.error()}};
  StreamOptions options;
  options.application = spec.key.application.c_str();
  options.format = spec.key.format;
  options.width = spec.key.width;
  options.height = spec.key.height;
  if (spec.key.format == LEAT_FORMAT_rgb24) options.strides[0] = 3 * spec.key.width;  // as requests bring them
  options.color_range = spec.key.color_range;
  options.color_matrix = spec.key.color_matrix;
  options.priority = spec.key.priority;
  options.slo_ns = spec.key.slo_ns;
  options.overload = LEAT_OVERLOAD_fifo;
  options.depth = spec.depth;
  options.slots = spec.slots;
  options.tensors = spec.tensors.data();
  options.tensor_count = static_cast<std::uint32_t>(spec.tensors.size());
  leat_stream* raw = nullptr;
  const leat_error error = leat_open_stream(client->raw(), &options, &raw);
  if (error == LEAT_ERROR_ok) return {.opened = Opened{std::move(*client), Stream(raw)}, .refusal = {}};
  const bool final = error == LEAT_ERROR_not_permitted || error == LEAT_ERROR_invalid_argument ||
                     error == LEAT_ERROR_format_mismatch || error == LEAT_ERROR_no_such_application;
  return {.opened = std::nullopt, .refusal = {.status = final ? 403 : 503, .why = ::leat_last_error()}};
}

Link::Link(boost::asio::io_context& io, StreamSpec spec, Opened opened, std::function<void(Opened)> dispose)
    : spec_(std::move(spec)),
      opened_(std::move(opened)),
      dispose_(std::move(dispose)),
      bell_(io),
      in_flight_(leat_stream_slots(opened_.stream.raw())),
      used_ns_(::leat_now_ns()) {
  for (std::size_t i = in_flight_.size(); i > 0; --i) free_.push_back(i - 1);
  // A descriptor of its own for the same bell: closing it does not concern the library's.
  const int fd = ::fcntl(opened_.client.answer_fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) {
    gone_ = true;
    return;
  }
  bell_.assign(fd);
  take_answers();  // arms it
}

Link::~Link() {
  *alive_ = false;
  lose();
  dispose_(std::move(opened_));
}

std::optional<Frame> Link::acquire() {
  if (gone_ || free_.empty()) return std::nullopt;
  used_ns_ = ::leat_now_ns();
  return opened_.stream.acquire();
}

leat_error Link::submit(Frame frame, leat_submit_options options, OnAnswer then) {
  if (gone_) return LEAT_ERROR_disconnected;
  if (free_.empty()) return LEAT_ERROR_ring_full;
  options.cookie = free_.back();
  if (const leat_error error = frame.submit(options); error != LEAT_ERROR_ok) return error;
  in_flight_[free_.back()] = std::move(then);
  free_.pop_back();
  ++waiting_;
  return LEAT_ERROR_ok;
}

void Link::wait() {
  bell_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [this, alive = alive_](const boost::system::error_code& error) {
                     if (!error && *alive) take_answers();
                   });
}

// Answers come until leatd has none: that arms the bell.
void Link::take_answers() {
  const auto alive = alive_;
  while (auto answer = opened_.client.next_answer()) {
    const std::uint64_t cookie = answer->raw().cookie;
    if (cookie >= in_flight_.size() || !in_flight_[cookie]) continue;
    const OnAnswer then = std::exchange(in_flight_[cookie], nullptr);
    free_.push_back(cookie);
    --waiting_;
    used_ns_ = ::leat_now_ns();
    then(std::move(answer));
    if (!*alive) return;
  }
  if (!opened_.client.connected()) return lose();
  wait();
}

void Link::lose() {
  gone_ = true;
  boost::system::error_code ignored;
  bell_.close(ignored);
  for (OnAnswer& slot : in_flight_) {
    if (!slot) continue;
    --waiting_;
    std::exchange(slot, nullptr)(std::nullopt);
  }
}

}  // namespace leat::gateway
