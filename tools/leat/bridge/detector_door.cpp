#include "tools/leat/bridge/detector_door.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "leat/leat.h"

namespace leat::tools {
namespace {

constexpr std::size_t kMostWaiting = 256;      // crops; more are answered by zeros at once
constexpr std::size_t kMostPeers = 4096;       // whose models are remembered
constexpr int kQueued = 4;                     // messages of one detector; an honest one has one
constexpr std::int64_t kMostBytes = 64 << 20;  // of a message: a model's file, which is read past
constexpr int kTurn = 64;                      // messages taken before answers are looked for

zmq::message_t body_of(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

Result<DetectorDoor> DetectorDoor::open(CropExchange& exchange, const DoorOptions& options) {
  DetectorDoor door(exchange);
  door.answer_ns_ = options.answer_ns;
  door.socket_ = zmq::socket_t(door.context_, zmq::socket_type::router);
  door.socket_.set(zmq::sockopt::rcvhwm, kQueued);
  door.socket_.set(zmq::sockopt::sndhwm, kQueued);
  door.socket_.set(zmq::sockopt::maxmsgsize, kMostBytes);
  door.socket_.set(zmq::sockopt::linger, 200);  // ms, for the last answers
  for (const std::string& endpoint : options.endpoints) {
    try {
      door.socket_.bind(endpoint);
    } catch (const zmq::error_t& error) {
      return Error{"cannot listen at '" + endpoint + "': " + error.what() +
                   "; an endpoint is tcp://ADDRESS:PORT or ipc://FILE, and nobody else may listen there"};
    }
    door.endpoints_.push_back(door.socket_.get(zmq::sockopt::last_endpoint));
  }
  return door;
}

void DetectorDoor::serve(int stop, std::int64_t until_ns) {
  zmq::pollitem_t on[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                          {nullptr, exchange_->answers_bell(), ZMQ_POLLIN, 0},
                          {nullptr, stop, ZMQ_POLLIN, 0}};
  while (until_ns < 0 || leat_now_ns() < until_ns) {
    // A signal ends the wait, not the loop: `stop` says what it meant.
    if (zmq_poll(on, 3, milliseconds_to_next(until_ns)) < 0 && zmq_errno() != EINTR) return;
    if ((on[2].revents & ZMQ_POLLIN) != 0) return;
    if ((on[1].revents & ZMQ_POLLIN) != 0) give_answers();
    if ((on[0].revents & ZMQ_POLLIN) != 0) take_questions();
    answer_what_is_due();
  }
}

int DetectorDoor::milliseconds_to_next(std::int64_t until_ns) const {
  std::int64_t next = until_ns;
  if (!waiting_.empty() && (next < 0 || waiting_.begin()->second.due_ns < next)) next = waiting_.begin()->second.due_ns;
  if (next < 0) return -1;
  return static_cast<int>(std::clamp<std::int64_t>((next - leat_now_ns()) / 1'000'000 + 1, 0, 1000));
}

void DetectorDoor::take_questions() {
  for (int i = 0; i < kTurn; ++i) {
    std::vector<zmq::message_t> parts;
    bool more = true;
    while (more) {
      zmq::message_t part;
      if (!socket_.recv(part, zmq::recv_flags::dontwait)) return;
      more = part.more();
      if (parts.size() < 8) parts.push_back(std::move(part));
    }
    question(std::move(parts));
  }
}

// Parts: the peer, an empty one (what REQ sockets put there), the header, and the tensor or file.
void DetectorDoor::question(std::vector<zmq::message_t> parts) {
  if (parts.size() < 3 || parts[1].size() != 0) return;  // no REQ socket: it waits for nothing
  std::vector<zmq::message_t> envelope;
  envelope.push_back(std::move(parts[0]));
  envelope.push_back(std::move(parts[1]));
  const auto message = read_message({static_cast<const char*>(parts[2].data()), parts[2].size()},
                                    parts.size() > 3 ? parts[3].size() : 0);
  if (!message.ok()) {
    ++counts_.questions;
    Waiting to{.envelope = std::move(envelope), .received_ns = leat_now_ns(), .due_ns = 0};
    return answer(to, "bad_message", {});
  }
  if (const auto* request = std::get_if<ModelRequest>(&*message)) {
    model_of(envelope[0]) = request->model;
    const bool serves = exchange_->application_of(request->model).ok();
    ++(serves ? counts_.models_served : counts_.models_refused);
    return reply(envelope, body_of(model_reply(serves)));
  }
  if (const auto* data = std::get_if<ModelData>(&*message)) {
    model_of(envelope[0]) = data->model;
    return reply(envelope, body_of(model_data_reply(exchange_->application_of(data->model).ok())));
  }
  crop(std::move(envelope), std::get<CropLayout>(*message), std::move(parts[3]));
}

void DetectorDoor::crop(std::vector<zmq::message_t> envelope, const CropLayout& layout, zmq::message_t tensor) {
  ++counts_.questions;
  const std::int64_t now = leat_now_ns();
  Waiting to{.envelope = std::move(envelope), .received_ns = now, .due_ns = now + answer_ns_};
  const std::string& model = model_of(to.envelope[0]);
  // It asked before this bridge ran, and which model it means cannot be told: unanswered, it asks for the model again.
  if (model.empty() && !exchange_->application_of(model).ok()) {
    ++counts_.left_alone;
    return;
  }
  if (waiting_.size() >= kMostWaiting) return answer(to, "too_many", {});
  Crop crop{.id = next_id_++,
            .model = model,
            .layout = layout,
            .tensor = std::move(tensor),
            .received_ns = now,
            .due_ns = to.due_ns};
  waiting_.emplace(crop.id, std::move(to));
  counts_.waiting = waiting_.size();
  exchange_->put(std::move(crop));
}

void DetectorDoor::give_answers() {
  for (const CropAnswer& given : exchange_->take_answers()) {
    const auto to = waiting_.find(given.id);
    if (to == waiting_.end()) {
      ++counts_.after_time;
      continue;
    }
    answer(to->second, given.cause, given.table);
    waiting_.erase(to);
  }
  counts_.waiting = waiting_.size();
}

void DetectorDoor::answer_what_is_due() {
  while (!waiting_.empty() && waiting_.begin()->second.due_ns <= leat_now_ns()) {
    answer(waiting_.begin()->second, exchange_->connected() ? "not_in_time" : "no_daemon", {});
    waiting_.erase(waiting_.begin());
  }
  counts_.waiting = waiting_.size();
}

void DetectorDoor::close() {
  for (auto& [id, to] : waiting_) answer(to, "stopping", {});
  waiting_.clear();
  counts_.waiting = 0;
}

void DetectorDoor::answer(Waiting& to, std::string_view cause, const DetectionTable& table) {
  if (cause == name_of(Outcome::completed) || cause == name_of(Outcome::late)) {
    ++counts_.answered[cause];
    counts_.took(static_cast<double>(leat_now_ns() - to.received_ns) / 1e6);
  } else {
    ++counts_.zeros[cause];
  }
  reply(to.envelope, zmq::message_t(table.data(), sizeof table));
}

void DetectorDoor::reply(std::vector<zmq::message_t>& envelope, zmq::message_t body) {
  // Never waits: what a detector that has gone, or does not read, cannot take is thrown away.
  for (zmq::message_t& part : envelope)
    if (!socket_.send(part, zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return;
  static_cast<void>(socket_.send(body, zmq::send_flags::dontwait));
}

std::string& DetectorDoor::model_of(const zmq::message_t& peer) {
  const std::string_view name(static_cast<const char*>(peer.data()), peer.size());
  if (const auto found = models_.find(name); found != models_.end()) return found->second;
  if (models_.size() >= kMostPeers) models_.erase(models_.begin());
  return models_[std::string(name)];
}

}  // namespace leat::tools
