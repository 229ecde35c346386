// The bridge's side towards detectors: one ROUTER socket for any number of them, each of which asks one thing at a
// time. It answers by `answer_ns` whatever happens: a later answer makes Frigate throw its socket away and ask for the
// model anew, no answer makes its watchdog restart the detector. So it waits for nobody. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "leat/result.hpp"
#include "tools/leat/bridge/bridge_counts.h"
#include "tools/leat/bridge/crop_exchange.h"

namespace leat::tools {

struct DoorOptions {
  std::vector<std::string> endpoints;  // of ZeroMQ: tcp://127.0.0.1:5555, ipc:///run/leat/detector
  std::int64_t answer_ns = 0;          // from a question's arrival
};

class DetectorDoor {
 public:
  static Result<DetectorDoor> open(CropExchange& exchange, const DoorOptions& options);
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }  // with the ports they have
  [[nodiscard]] const BridgeCounts& counts() const { return counts_; }
  // Serves until `stop` is readable or `until_ns` (CLOCK_MONOTONIC; < 0: for ever).
  void serve(int stop, std::int64_t until_ns);
  // Everything that still waits is answered by zeros.
  void close();

 private:
  struct Waiting {
    std::vector<zmq::message_t> envelope;  // who asked: what stands before the answer
    std::int64_t received_ns = 0, due_ns = 0;
  };

  explicit DetectorDoor(CropExchange& exchange) : exchange_(&exchange) {}
  [[nodiscard]] int milliseconds_to_next(std::int64_t until_ns) const;
  void take_questions();
  void question(std::vector<zmq::message_t> parts);
  void crop(std::vector<zmq::message_t> envelope, const CropLayout& layout, zmq::message_t tensor);
  void give_answers();
  void answer_what_is_due();
  void answer(Waiting& to, std::string_view cause, const DetectionTable& table);
  void reply(std::vector<zmq::message_t>& envelope, zmq::message_t body);
  std::string& model_of(const zmq::message_t& peer);

  CropExchange* exchange_;
  std::int64_t answer_ns_ = 0;
  std::vector<std::string> endpoints_;
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  std::map<std::uint64_t, Waiting> waiting_;  // in the order in which they are due
  std::uint64_t next_id_ = 1;
  std::map<std::string, std::string, std::less<>> models_;  // [peer]
  BridgeCounts counts_;
};

}  // namespace leat::tools
