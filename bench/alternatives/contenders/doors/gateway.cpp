// `leat gateway` before leatd: whole pictures as a client of KServe's protocol sends them, on a kept connection a
// camera.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <cstring>

#include "bench/alternatives/contenders/chain.h"
#include "bench/alternatives/contenders/doors/door.h"
#include "bench/alternatives/contenders/leatd_run.h"
#include "bench/serving/leatd_child.h"
#include "shm/src/rings/clock.h"
#include "tools/base/text/fd.h"

namespace leat::bench::alternatives {

namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

class GatewayDoor final : public Door {
 public:
  GatewayDoor(const Run& run, std::uint32_t camera, std::uint16_t port)
      : port_(port),
        deadline_ns_(run.deadline_ns),
        stream_("camera" + std::to_string(camera)),
        rgb_(run.pictures->format(), kWidth, kHeight),
        socket_(io_) {}

  // Until it is answered in time: the first one opens the stream.
  Status greet(const leat_frame& picture) {
    for (int attempt = 0; attempt < kAttempts; ++attempt)
      if (ask(picture, shm::monotonic_ns()) == Fate::answered) return Done{};
    return Error{"the gateway does not serve"};
  }

  Fate ask(const leat_frame& picture, std::int64_t due_ns) override {
    const std::int64_t left_us = (due_ns + deadline_ns_ - shm::monotonic_ns()) / 1000;
    if (left_us <= 0) return Fate::passed;
    const auto pixels = rgb_.from(picture);
    const std::string head =
        R"({"inputs":[{"name":"image","datatype":"UINT8","shape":[1,)" + std::to_string(kHeight) + "," +
        std::to_string(kWidth) + R"(,3],"parameters":{"binary_data_size":)" + std::to_string(pixels.size()) +
        R"(}}],"parameters":{"binary_data_output":true,"timeout":)" + std::to_string(left_us) + "}}";
    http::request<http::vector_body<char>> request{http::verb::post, "/v2/models/shapes/infer", 11};
    request.set(http::field::host, "leat");
    request.set("X-Leat-Stream", stream_);
    request.set("Inference-Header-Content-Length", std::to_string(head.size()));
    request.body().resize(head.size() + pixels.size());
    std::memcpy(request.body().data(), head.data(), head.size());
    std::memcpy(request.body().data() + head.size(), pixels.data(), pixels.size());
    request.prepare_payload();
    boost::system::error_code error;
    if (!socket_.is_open()) socket_.connect({boost::asio::ip::address_v4::loopback(), port_}, error);
    if (error) return Fate::failed;
    // What is refused before all of it has been read costs the connection, and perhaps the refusal with it.
    http::write(socket_, request, error);
    http::response<http::string_body> response;
    if (!error) http::read(socket_, buffer_, response, error);
    if (error || !response.keep_alive()) {
      socket_ = tcp::socket(io_);
      buffer_.clear();
    }
    if (error) return Fate::passed;
    switch (response.result_int()) {
      case 200:
        return Fate::answered;
      case 429:
      case 503:
      case 504:
        return Fate::passed;
      default:
        return Fate::failed;
    }
  }

 private:
  static constexpr int kAttempts = 100;

  std::uint16_t port_;
  std::int64_t deadline_ns_;
  std::string stream_;
  Rgb rgb_;
  boost::asio::io_context io_;
  tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
};

Status film_over_http(const std::string& socket, const Run& run) {
  auto ready = subprocess::make_pipe();
  if (!ready.ok()) return Error{ready.error()};
  const std::string cameras = std::to_string(run.cameras);
  auto gateway =
      subprocess::Process::start({.words = {built("tools/leat/leat"), "gateway", "--socket", socket, "--listen",
                                            "127.0.0.1:0", "--ready-fd", "3", "--streams", cameras, "--depth", "2"},
                                  .fds = {{ready->write.get(), 3}}});
  if (!gateway.ok()) return Error{gateway.error()};
  ready->write.reset();
  char said[16] = {};  // its port
  unsigned port = 0;
  if (::read(ready->read.get(), said, sizeof said - 1) <= 0 || std::sscanf(said, "ready %u", &port) != 1)
    return Error{"the gateway did not start"};
  const Buffer first(run.pictures->format());
  return film_through(run, [&](std::uint32_t camera) -> Result<std::unique_ptr<Door>> {
    auto door = std::make_unique<GatewayDoor>(run, camera, static_cast<std::uint16_t>(port));
    if (const Status greeted = door->greet(first.frame()); !greeted) return Error{greeted.error()};
    return std::unique_ptr<Door>(std::move(door));
  });
}

}  // namespace

Result<std::unique_ptr<Running>> start_leat_gateway(const Run& run) {
  return start_with_leatd(run, [&](const std::string& socket, std::uint32_t) { return film_over_http(socket, run); });
}

}  // namespace leat::bench::alternatives
