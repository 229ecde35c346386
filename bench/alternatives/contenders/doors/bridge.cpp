// `leat bridge zmq` before leatd: pictures of the detector's size, as Frigate sends them, a socket a camera. An answer
// of zeros, which is also what a refusal comes as, is a picture given up: there is something in each of these.
#include <array>
#include <cstring>
#include <zmq.hpp>

#include "bench/alternatives/contenders/doors/door.h"
#include "bench/alternatives/contenders/leatd_run.h"
#include "bench/serving/leatd_child.h"

namespace leat::bench::alternatives {

namespace {

constexpr std::uint32_t kInputWidth = 320, kInputHeight = 320;  // as Frigate's crops are square
constexpr std::size_t kTableBytes = 20 * 6 * sizeof(float);

class BridgeDoor final : public Door {
 public:
  BridgeDoor(leat_format format, const std::string& endpoint)
      : rgb_(format, kInputWidth, kInputHeight), socket_(context_, zmq::socket_type::req) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.connect(endpoint);
  }

  Status greet() {
    const std::string hello = R"({"model_request":true,"model_name":"shapes.onnx"})";
    socket_.send(zmq::buffer(hello), zmq::send_flags::none);
    zmq::message_t reply;
    if (!socket_.recv(reply)) return Error{"the bridge does not answer"};
    return reply.to_string_view().find(R"("model_loaded":true)") != std::string_view::npos
               ? Status(Done{})
               : Error{"the bridge does not serve the model: " + reply.to_string()};
  }

  Fate ask(const leat_frame& picture, std::int64_t) override {
    const auto pixels = rgb_.from(picture);
    socket_.send(zmq::buffer(header_), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(pixels.data(), pixels.size()), zmq::send_flags::none);
    zmq::message_t table;
    if (!socket_.recv(table) || table.size() != kTableBytes) return Fate::failed;
    static constexpr std::array<char, kTableBytes> kZeros{};
    return std::memcmp(table.data(), kZeros.data(), kTableBytes) == 0 ? Fate::passed : Fate::answered;
  }

 private:
  Rgb rgb_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  const std::string header_ = R"({"shape":[1,)" + std::to_string(kInputHeight) + "," + std::to_string(kInputWidth) +
                              R"(,3],"dtype":"uint8","model_type":"yologeneric"})";
};

Status film_over_zmq(const std::string& socket, const Run& run) {
  const std::string endpoint = "ipc://" + socket + ".zmq";
  auto bridge = subprocess::Process::start({.words = {built("tools/leat/leat"), "bridge", "zmq", "--socket", socket,
                                                      "--endpoint", endpoint, "--every", "0"}});
  if (!bridge.ok()) return Error{bridge.error()};
  return film_through(run, [&](std::uint32_t) -> Result<std::unique_ptr<Door>> {
    auto door = std::make_unique<BridgeDoor>(run.pictures->format(), endpoint);
    if (const Status met = door->greet(); !met) return Error{met.error()};
    return std::unique_ptr<Door>(std::move(door));
  });
}

}  // namespace

Result<std::unique_ptr<Running>> start_leat_bridge(const Run& run) {
  return start_with_leatd(run, [&](const std::string& socket, std::uint32_t) { return film_over_zmq(socket, run); });
}

}  // namespace leat::bench::alternatives
