#include "tools/leat/gateway/gateway_metrics.h"

#include "leat/leat.h"

namespace leat::gateway {
namespace {

using Labels = tools::MetricText::Labels;

template <class Value>
void each(tools::MetricText& out, const GatewayFigures& f, const Value& value) {
  for (const auto& [model, counts] : f.counts) out.add({{"model", model}}, static_cast<double>(value(counts)));
}

void add_models(tools::MetricText& out, const GatewayFigures& f) {
  out.counter("leat_gateway_requests", "inference requests that came; they are the answers and those in flight");
  each(out, f, [](const ModelCounts& c) { return c.requests; });
  out.gauge("leat_gateway_in_flight", "inference requests not answered yet");
  each(out, f, [](const ModelCounts& c) { return c.in_flight; });
  out.counter("leat_gateway_answers", "by HTTP status; 499: its client had gone");
  for (const auto& [model, counts] : f.counts)
    for (const auto& [status, count] : counts.by_status)
      out.add({{"model", model}, {"status", std::to_string(status)}}, static_cast<double>(count));
  out.counter("leat_gateway_refusals", "answers that are not 200, by reason");
  for (const auto& [model, counts] : f.counts)
    for (const auto& [reason, count] : counts.by_reason)
      out.add({{"model", model}, {"reason", reason}}, static_cast<double>(count));
  out.counter("leat_gateway_submitted", "frames that leatd took from this gateway");
  each(out, f, [](const ModelCounts& c) { return c.submitted; });
  out.counter("leat_gateway_frames", "leatd's answers to them, by outcome");
  for (const auto& [model, counts] : f.counts)
    for (const auto& [outcome, count] : counts.by_outcome)
      out.add({{"model", model}, {"outcome", leat_outcome_name(outcome)}}, static_cast<double>(count));
  out.counter("leat_gateway_lost", "frames whose leatd ended before it answered");
  each(out, f, [](const ModelCounts& c) { return c.lost; });
  out.counter("leat_gateway_queue_seconds", "time that frames waited, in all");
  each(out, f, [](const ModelCounts& c) { return static_cast<double>(c.queue_ns) / 1e9; });
  out.counter("leat_gateway_compute_seconds", "time that frames were computed on, in all");
  each(out, f, [](const ModelCounts& c) { return static_cast<double>(c.compute_ns) / 1e9; });
  out.counter("leat_gateway_input_seconds", "time that requests took to come, in all");
  each(out, f, [](const ModelCounts& c) { return static_cast<double>(c.input_ns) / 1e9; });
}

}  // namespace

void add_gateway_metrics(tools::MetricText& out, const GatewayFigures& f) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    out.gauge(name, help);
    out.add({}, value);
  };
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    out.counter(name, help);
    out.add({}, static_cast<double>(value));
  };
  gauge("leat_gateway_ready", "1: /v2/health/ready says yes", f.ready);
  gauge("leat_gateway_draining", "1: it is about to end", f.draining);
  gauge("leat_gateway_agent_share", "share of its weight that HAProxy is told, 0 to 1", f.agent_percent / 100.0);
  gauge("leat_gateway_connections", "open connections", static_cast<double>(f.connections));
  gauge("leat_gateway_held_bytes", "memory for what moves slowly", static_cast<double>(f.held_bytes.now()));
  counter("leat_gateway_connections_accepted", "connections accepted", f.http.accepted);
  counter("leat_gateway_connections_refused", "connections refused for want of a place", f.http.refused);
  counter("leat_gateway_connections_evicted", "idle connections that gave way to newcomers", f.http.evicted);
  counter("leat_gateway_connections_timed_out", "connections ended because something took too long", f.http.timed_out);
  counter("leat_gateway_http_requests", "requests of every kind", f.http.requests);
  counter("leat_gateway_bad_heads", "requests that were no HTTP/1.1", f.http.bad_heads);
  counter("leat_gateway_slow_bodies", "bodies that lost their slot because they came slowly", f.http.slow_bodies);
  add_models(out, f);
}

}  // namespace leat::gateway
