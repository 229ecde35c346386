#include "tools/leat/bridge/leatd_link.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "leat/outcome.h"
#include "tools/base/json/json.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kAgainNs = 250'000'000;  // after a connection or a stream was refused
constexpr std::int64_t kControlNs = 2'000'000'000;
constexpr std::size_t kMostStreams = 16;

// The names of what it serves; empty: leatd does not say.
std::vector<std::string> served_by(const std::string& socket) {
  constexpr std::size_t kLongest = std::size_t{1} << 17;  // message of leatd
  std::vector<std::string> names;
  std::string text(kLongest, '\0');
  if (leat_status(socket.empty() ? nullptr : socket.c_str(), text.data(), text.size(), nullptr) != LEAT_ERROR_ok)
    return names;
  const auto status = Json::try_parse(text.c_str());
  const Json* const applications = status ? status->find("applications") : nullptr;
  if (applications == nullptr || !applications->is_array()) return names;
  for (const Json& application : *applications) names.push_back(application.value("name", ""));
  return names;
}

std::string_view cause_of(leat_error error) {
  switch (error) {
    case LEAT_ERROR_no_such_application:
      return "unknown_model";
    case LEAT_ERROR_disconnected:
    case LEAT_ERROR_daemon_absent:
    case LEAT_ERROR_timed_out:
    case LEAT_ERROR_not_ready:
      return "no_daemon";
    default:
      return "no_stream";
  }
}

}  // namespace

LeatdLink::LeatdLink(CropExchange& exchange, LinkOptions options)
    : exchange_(exchange), options_(std::move(options)), thread_([this] { run(); }) {}

LeatdLink::~LeatdLink() {
  exchange_.stop();
  thread_.join();
}

void LeatdLink::run() {
  while (!exchange_.stopped()) {
    if (!client_) connect();
    for (Crop& crop : exchange_.take_crops()) waiting_.push_back(std::move(crop));
    take_answers();
    send_waiting();
    if (lost_)
      let_go();
    else
      wait();
  }
  let_go();
}

void LeatdLink::wait() {
  pollfd on[2] = {{exchange_.crops_bell(), POLLIN, 0}, {client_ ? leat_answer_fd(client_.get()) : -1, POLLIN, 0}};
  int timeout_ms = -1;
  if (!client_)
    timeout_ms = static_cast<int>(std::max<std::int64_t>(0, connect_again_ns_ - leat_now_ns()) / 1'000'000) + 1;
  else if (!waiting_.empty())  // answers make room; what is due meanwhile the door answers, and it goes out of here
    timeout_ms = 10;
  ::poll(on, 2, timeout_ms);
}

void LeatdLink::connect() {
  const std::int64_t now = leat_now_ns();
  if (now < connect_again_ns_) return;
  const leat_connect_options options{.socket = options_.socket.empty() ? nullptr : options_.socket.c_str(),
                                     .name = "leat bridge",
                                     .timeout_ns = kControlNs,
                                     .wait = LEAT_WAIT_PARK,
                                     .reserved = 0};
  leat_client* raw = nullptr;
  const leat_error error = leat_connect(&options, &raw);
  connect_again_ns_ = leat_now_ns() + kAgainNs;
  if (error != LEAT_ERROR_ok) return say(leat_last_error());
  client_.reset(raw);
  static_cast<void>(leat_answer_fd(raw));  // from here on an empty look arms it
  auto served = served_by(options_.socket);
  if (served.empty()) return client_.reset();
  exchange_.set_served(std::move(served));
  exchange_.set_connected(true);
  say("connected to leatd");
}

// Everything that leatd had is answered now; it comes back later, or never.
void LeatdLink::let_go() {
  exchange_.set_connected(false);
  for (const std::uint64_t id : in_flight_) exchange_.put(CropAnswer{.id = id, .cause = "no_daemon"});
  in_flight_.clear();
  streams_.clear();
  client_.reset();
  lost_ = false;
}

void LeatdLink::send_waiting() {
  const std::int64_t now = leat_now_ns();
  std::erase_if(waiting_, [&](const Crop& crop) { return crop.due_ns <= now; });  // the door has answered them
  while (!waiting_.empty()) {
    if (!client_ || lost_)
      zeros(waiting_.front(), "no_daemon");
    else if (!send(waiting_.front()))
      return;
    waiting_.pop_front();
  }
}

bool LeatdLink::send(Crop& crop) {
  const auto application = exchange_.application_of(crop.model);
  if (!application.ok()) {
    say(application.error());
    zeros(crop, "unknown_model");
    return true;
  }
  const Key key(*application, crop.layout.width, crop.layout.height);
  if (!streams_.contains(key) && streams_.size() >= kMostStreams) {
    say("crops came in more than 16 sizes; the others are answered by zeros");
    zeros(crop, "no_stream");
    return true;
  }
  Opened& to = opened(key);
  if (to.stream == nullptr) {
    zeros(crop, to.cause);
    return true;
  }
  leat_frame frame;
  leat_error error = leat_acquire(to.stream, &frame);
  if (error == LEAT_ERROR_ok) {
    write(crop, to, frame);
    leat_submit_options options{};
    options.capture_ns = crop.received_ns;
    options.cookie = crop.id;
    error = leat_submit(&frame, &options, nullptr);
    if (error != LEAT_ERROR_ok) leat_abandon(&frame);
  }
  if (error == LEAT_ERROR_ok) in_flight_.insert(crop.id);
  lost_ = lost_ || error == LEAT_ERROR_disconnected;
  return error == LEAT_ERROR_ok;
}

void LeatdLink::write(const Crop& crop, Opened& to, const leat_frame& frame) const {
  const std::span tensor(static_cast<const std::byte*>(crop.tensor.data()), crop.tensor.size());
  if (crop.layout.floats && to.range == FloatRange::one) to.range = range_of(tensor);
  write_pixels(crop.layout, tensor, to.range, frame.planes[0], frame.strides[0]);
}

void LeatdLink::take_answers() {
  leat_answer answer;
  while (client_ && !lost_) {
    const leat_error error = leat_next_answer(client_.get(), 0, &answer);
    if (error == LEAT_ERROR_disconnected) {
      say("leatd has gone; answers are zeros until it is back");
      lost_ = true;
    }
    if (error != LEAT_ERROR_ok) return;
    CropAnswer out{.id = answer.cookie, .cause = name_of(static_cast<Reason>(answer.reason))};
    if (answer.result != nullptr) {
      out.cause = name_of(static_cast<Outcome>(answer.outcome));
      out.table = table_of(*answer.result);
    }
    leat_release(&answer);
    in_flight_.erase(out.id);
    exchange_.put(out);
  }
}

LeatdLink::Opened& LeatdLink::opened(const Key& key) {
  Opened& entry = streams_[key];
  if (entry.stream == nullptr && leat_now_ns() >= entry.again_ns) open(key, entry);
  return entry;
}

void LeatdLink::open(const Key& key, Opened& entry) {
  const auto& [application, width, height] = key;
  leat_stream_options options;
  leat_stream_options_init(&options);
  options.application = application.c_str();
  options.format = options_.bgr ? LEAT_FORMAT_bgr24 : LEAT_FORMAT_rgb24;
  options.width = width;
  options.height = height;
  options.depth = options.slots = options_.depth;  // what is more waits here, where it can be answered in time
  options.overload = LEAT_OVERLOAD_fifo;  // each is of one camera, which waits for it: no newer one may take its place
  options.priority = options_.priority;
  options.slo_ns = options_.slo_ns;
  const leat_error error = leat_open_stream(client_.get(), &options, &entry.stream);
  entry.again_ns = leat_now_ns() + kAgainNs;
  if (error == LEAT_ERROR_ok) return;
  say(leat_last_error());
  entry.cause = cause_of(error);
  lost_ = entry.cause == "no_daemon";
}

void LeatdLink::zeros(const Crop& crop, std::string_view cause) {
  exchange_.put(CropAnswer{.id = crop.id, .cause = cause});
}

// Each line once, until another one is said.
void LeatdLink::say(const std::string& line) {
  if (line == said_) return;
  std::fprintf(stderr, "leat bridge: %s\n", line.c_str());
  said_ = line;
}

}  // namespace leat::tools
