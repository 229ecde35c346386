// A stream of the gateway's at its leatd, on a connection of its own, and the frames in flight on it. Opening one takes
// as long as its memory does, so it is done on a thread (node.h); from then on everything is the gateway's thread's,
// and nothing waits. When leatd goes, every frame in flight is answered with nothing, and the link is `gone`.
// Ownership: shared; whoever has a frame or an answer of it keeps it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/client.hpp"

namespace leat::gateway {

// What makes a stream another one.
struct StreamKey {
  std::string application;
  std::string name;         // the client's own stream; empty: shared by all who name none
  std::int64_t slo_ns = 0;  // 0: the application's
  std::uint32_t priority = LEAT_PRIORITY_NORMAL;
  std::uint32_t format = LEAT_FORMAT_tensors, width = 0, height = 0;
  std::uint32_t color_range = LEAT_COLOR_RANGE_unspecified, color_matrix = LEAT_COLOR_MATRIX_unspecified;
  auto operator<=>(const StreamKey&) const = default;
};

struct StreamSpec {
  StreamKey key;
  std::vector<leat_tensor_shape> tensors;
  std::uint32_t depth = 8, slots = 12;
};

// Why there is no stream: 503, another node or another moment may have one; 403, its settings are not allowed.
struct Refusal {
  int status = 0;
  std::string why;
};

// Answered once: by leatd, or with nothing where leatd has gone.
using OnAnswer = std::function<void(std::optional<Answer>)>;

class Link {
 public:
  struct Opened {
    Client client;
    Stream stream;
  };
  struct Opening {
    std::optional<Opened> opened;
    Refusal refusal;
  };
  // Blocks. Any thread.
  static Opening open(const std::string& socket, const StreamSpec& spec);

  // `dispose` takes what closing would block on.
  Link(boost::asio::io_context& io, StreamSpec spec, Opened opened, std::function<void(Opened)> dispose);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Nothing: every slot is in use, or leatd is gone.
  std::optional<Frame> acquire();
  leat_error submit(Frame frame, leat_submit_options options, OnAnswer then);

  [[nodiscard]] const StreamSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] leat_stream* raw() const noexcept { return opened_.stream.raw(); }
  [[nodiscard]] std::int64_t slo_ns() const noexcept { return leat_stream_slo_ns(raw()); }
  [[nodiscard]] bool gone() const noexcept { return gone_; }
  // Nobody has a frame or an answer of it, and nobody has used it since.
  [[nodiscard]] bool unused() const noexcept { return waiting_ == 0; }
  [[nodiscard]] std::int64_t used_ns() const noexcept { return used_ns_; }

 private:
  void wait();
  void take_answers();
  void lose();

  StreamSpec spec_;
  Opened opened_;
  std::function<void(Opened)> dispose_;
  boost::asio::posix::stream_descriptor bell_;
  std::vector<OnAnswer> in_flight_;  // by cookie
  std::vector<std::size_t> free_;
  std::size_t waiting_ = 0;
  std::int64_t used_ns_ = 0;
  bool gone_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace leat::gateway
