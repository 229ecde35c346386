#include "tools/leat/gateway/gateway.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "tools/leat/gateway/gateway_metrics.h"
#include "tools/leat/gateway/http/text_job.h"
#include "tools/leat/metrics/daemon_metrics.h"
#include "tools/leat/metrics/slack.h"

namespace leat::gateway {
namespace {

constexpr auto kDrainLook = std::chrono::milliseconds(20);
// Balancers look every half second: they must have seen that the node is not ready before it is gone.
constexpr std::int64_t kQuietNs = 700'000'000;

void raise_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

std::string from_here(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  if (host == "::") return "[::1]";
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

Gateway::Gateway(GatewayOptions options)
    : options_(std::move(options)),
      held_(options_.held_bytes),
      admission_(options_.in_flight, options_.client_in_flight),
      node_(io_,
            {.socket = options_.socket, .name = options_.node, .streams = options_.streams, .depth = options_.depth}),
      serving_{node_,     admission_,     counts_, held_, options_.shared_memory ? &regions_ : nullptr,
               draining_, options_.way_ns},
      routes_(serving_, options_.tokens),
      decoder_(io_),
      server_(io_, routes_, options_.http, held_),
      signals_(io_, SIGTERM, SIGINT),
      drain_timer_(io_) {
  node_.looked = [this] { looked(); };
  routes_.add("GET", "/metrics", [this](const Head& head, const std::string&) {
    return std::make_unique<TextJob>([this, head](std::string_view, const Channel&) { return metrics(head); });
  });
  routes_.add("POST", "/v1/vision/detection", [this](const Head&, const std::string&) { return picture({}); });
  routes_.add("POST", "/v1/vision/custom/", [this](const Head&, const std::string& name) { return picture(name); });
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) on_signal();
  });
}

Status Gateway::listen() {
  raise_descriptors();
  std::string own;  // by TCP, seen from this host
  for (const Address& address : options_.listen) {
    if (auto status = server_.listen(address); !status) return status;
    if (address.path.empty()) own = from_here(address.host) + ":" + std::to_string(server_.port());
  }
  if (options_.grpc) {
    GrpcOptions grpc = *options_.grpc;
    grpc.gateway = own;
    grpc_ = std::make_unique<GrpcDoor>(std::move(grpc));
    if (auto status = grpc_->start(); !status) return status;
  }
  if (!options_.agent) return Done{};
  agent_ = std::make_unique<Agent>(io_, [this] { return agent_line(); });
  return agent_->listen(*options_.agent);
}

int Gateway::run() {
  io_.run();
  return 0;
}

void Gateway::on_signal() {
  if (draining_) return io_.stop();
  draining_ = true;
  server_.drain();
  drain_began_ns_ = quiet_since_ns_ = ::leat_now_ns();
  drain_further();
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) on_signal();
  });
}

void Gateway::drain_further() {
  const std::int64_t now = ::leat_now_ns();
  if (server_.busy() != 0 || admission_.in_flight() != 0) quiet_since_ns_ = now;
  const bool quiet = now - quiet_since_ns_ > std::min(kQuietNs, options_.drain_ns);
  if (quiet || now - drain_began_ns_ > options_.drain_ns) return io_.stop();
  drain_timer_.expires_after(kDrainLook);
  drain_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) drain_further();
  });
}

// Of the model that is slowest here: what all partitions that are up could do of it.
double Gateway::rate() const {
  double out = 0;
  for (const Model& m : node_.catalogue().models)
    if (m.items_per_second > 0) out = out == 0 ? m.items_per_second : std::min(out, m.items_per_second);
  return out;
}

void Gateway::looked() {
  if (grpc_ && !draining_) grpc_->look();
  const auto slack = tools::slack_of(node_.window());
  if (!slack) return;
  slack_ = slack->free;
  const double speed = options_.reference_rate > 0 ? std::min(1.0, rate() / options_.reference_rate) : 1.0;
  share_.saw(slack_, speed);
  char text[64];
  std::snprintf(text, sizeof text, "TEXT application_utilization=%.3f", 1 - slack_);
  serving_.load = text;
}

std::string Gateway::agent_line() const {
  if (draining_) return "drain";
  if (!node_.ready()) return "down #not ready";
  return "ready up " + std::to_string(share_.percent()) + "%";
}

// Empty: the application named by --pictures, else the only one that takes pictures.
std::unique_ptr<Job> Gateway::picture(const std::string& application) {
  auto catalogue = node_.kept();
  const std::string& wanted = application.empty() ? options_.pictures : application;
  const Model* found = nullptr;
  std::uint32_t count = 0;
  for (const Model& m : catalogue->models) {
    if (!m.pictures || (!wanted.empty() && m.name != wanted)) continue;
    found = &m;
    ++count;
  }
  if (count == 1) return std::make_unique<PictureJob>(serving_, std::move(catalogue), *found, decoder_);
  if (!node_.ready()) return std::make_unique<TextJob>(error_reply(503, "not ready: " + node_.why_not()));
  return std::make_unique<TextJob>(error_reply(
      404, count == 0 ? "no application here takes pictures under that name"
                      : "several applications take pictures; name one: /v1/vision/custom/NAME, or --pictures"));
}

Reply Gateway::metrics(const Head& head) const {
  tools::MetricText text(tools::metric_format_of(head.field("accept")));
  text.gauge("leat_up", "1: the daemon answers");
  text.add({}, node_.window().now.at_ns != 0 ? 1 : 0);
  tools::add_slack(text, node_.window());
  text.gauge("leat_sustainable_rate", "items a second that the partitions that are up could do of the slowest model");
  text.add({}, rate());
  std::uint64_t largest = 0;
  for (const Model& m : node_.catalogue().models) {
    std::uint64_t bytes = 0;
    for (const Tensor& t : m.inputs) bytes += t.bytes;
    largest = std::max(largest, bytes);
  }
  text.gauge("leat_gateway_largest_body_bytes", "the inputs of the model that takes most");
  text.add({}, static_cast<double>(largest));
  add_gateway_metrics(text, {.counts = counts_,
                             .http = server_.counts(),
                             .connections = server_.connections(),
                             .held_bytes = held_,
                             .ready = node_.ready() && !draining_,
                             .draining = draining_,
                             .agent_percent = share_.percent()});
  tools::add_daemon_metrics(text, node_.window().now);
  Reply out;
  out.type = text.content_type();
  out.body = std::move(text).finish();
  return out;
}

}  // namespace leat::gateway
