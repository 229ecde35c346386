#include "engine/worker/protocol.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace leat::worker {
namespace {

using nlohmann::json;

std::vector<std::byte> packet_of(ControlType type, const void* body, std::size_t bytes) {
  std::vector<std::byte> packet(sizeof(type) + bytes);
  std::memcpy(packet.data(), &type, sizeof(type));
  if (bytes != 0) std::memcpy(packet.data() + sizeof(type), body, bytes);
  return packet;
}
std::vector<std::byte> packet_of(ControlType type, const json& body) {
  const std::string text = body.dump();
  return packet_of(type, text.data(), text.size());
}

json to_json(const std::vector<planner::Latency>& list) {
  json out = json::array();
  for (const auto& l : list) out.push_back({l.p50_ns, l.p99_ns, l.samples});
  return out;
}
std::vector<planner::Latency> latencies(const json& list) {
  std::vector<planner::Latency> out;
  for (const auto& l : list) out.push_back({l.at(0), l.at(1), l.at(2)});
  return out;
}

// Runs `read` on the packet's JSON; a packet that is not JSON, or lacks a key, becomes one line.
template <class T, class Read>
Result<T> from_json(const std::vector<std::byte>& packet, const char* what, Read read) {
  try {
    const auto* text = reinterpret_cast<const char*>(packet.data()) + sizeof(ControlType);
    return read(json::parse(text, text + (packet.size() - sizeof(ControlType))));
  } catch (const json::exception& e) {
    return Error{std::string("control message '") + what + "' does not parse: " + e.what() + "; install leatd and leat-worker of one release"};
  }
}

template <class T>
Result<T> fixed(const std::vector<std::byte>& packet, const char* what) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (packet.size() != sizeof(ControlType) + sizeof(T))
    return Error{std::string("control message '") + what + "' has a wrong length; install leatd and leat-worker of one release"};
  T out;
  std::memcpy(&out, packet.data() + sizeof(ControlType), sizeof(T));
  return out;
}

}  // namespace

std::vector<std::byte> encode(const Setup& s) {
  json modules = json::array();
  for (const auto& m : s.modules) {
    modules.push_back({{"application", m.application}, {"name", m.name}, {"executor", m.executor}, {"model_path", m.model_path},
                       {"preprocess", m.preprocess}, {"postprocess", m.postprocess}, {"labels", m.labels}, {"batch", m.batch},
                       {"after_fan_out", m.after_fan_out}, {"fan_out_cap", m.fan_out_cap},
                       {"latency_by_batch", to_json(m.latency_by_batch)}, {"extra", m.extra}, {"first_block", m.first_block},
                       {"end_block", m.end_block}, {"cuts", m.cuts}, {"edge_in", m.edge_in}, {"edge_out", m.edge_out}});
  }
  json edges = json::array();
  for (const auto& e : s.edges) edges.push_back({{"edge", e.edge}, {"writes", e.writes}, {"rows", e.spec.rows}, {"scrap", e.spec.scrap}, {"row_bytes", e.spec.row_bytes}});
  return packet_of(ControlType::setup, json{{"partition", s.partition}, {"cores", s.cores}, {"threads", s.threads},
                                            {"yields", s.yields}, {"calibrate", s.calibrate}, {"edges", edges}, {"modules", modules}});
}

std::vector<std::byte> encode(const Ready& r) {
  json list = json::array();
  for (const auto& l : r.latency_by_batch) list.push_back(to_json(l));
  return packet_of(ControlType::ready, json{{"latency_by_batch", list}});
}

std::vector<std::byte> encode(const AddPool& add) { return packet_of(ControlType::add_pool, &add, sizeof(add)); }
std::vector<std::byte> encode(const ForgetPool& forget) { return packet_of(ControlType::forget_pool, &forget, sizeof(forget)); }
std::vector<std::byte> encode_edge() { return packet_of(ControlType::edge, nullptr, 0); }
std::vector<std::byte> encode_stop() { return packet_of(ControlType::stop, nullptr, 0); }
std::vector<std::byte> encode_failed(const std::string& line) { return packet_of(ControlType::failed, line.data(), line.size()); }

Result<ControlType> type_of(const std::vector<std::byte>& packet) {
  ControlType type{};
  if (packet.size() < sizeof(type)) return Error{"control message shorter than its type; install leatd and leat-worker of one release"};
  std::memcpy(&type, packet.data(), sizeof(type));
  return type;
}

Result<Setup> decode_setup(const std::vector<std::byte>& packet) {
  return from_json<Setup>(packet, "setup", [](const json& j) {
    Setup s;
    j.at("partition").get_to(s.partition);
    j.at("cores").get_to(s.cores);
    j.at("threads").get_to(s.threads);
    j.at("yields").get_to(s.yields);
    j.at("calibrate").get_to(s.calibrate);
    for (const auto& e : j.at("edges"))
      s.edges.push_back({e.at("edge"), e.at("writes"), {.rows = e.at("rows"), .scrap = e.at("scrap"), .row_bytes = e.at("row_bytes")}});
    for (const auto& m : j.at("modules")) {
      ModuleSetup out;
      m.at("application").get_to(out.application);
      m.at("name").get_to(out.name);
      m.at("executor").get_to(out.executor);
      m.at("model_path").get_to(out.model_path);
      m.at("preprocess").get_to(out.preprocess);
      m.at("postprocess").get_to(out.postprocess);
      m.at("labels").get_to(out.labels);
      m.at("batch").get_to(out.batch);
      m.at("after_fan_out").get_to(out.after_fan_out);
      m.at("fan_out_cap").get_to(out.fan_out_cap);
      out.latency_by_batch = latencies(m.at("latency_by_batch"));
      m.at("extra").get_to(out.extra);
      m.at("first_block").get_to(out.first_block);
      m.at("end_block").get_to(out.end_block);
      m.at("cuts").get_to(out.cuts);
      m.at("edge_in").get_to(out.edge_in);
      m.at("edge_out").get_to(out.edge_out);
      s.modules.push_back(std::move(out));
    }
    return s;
  });
}

Result<Ready> decode_ready(const std::vector<std::byte>& packet) {
  return from_json<Ready>(packet, "ready", [](const json& j) {
    Ready r;
    for (const auto& l : j.at("latency_by_batch")) r.latency_by_batch.push_back(latencies(l));
    return r;
  });
}

Result<AddPool> decode_add_pool(const std::vector<std::byte>& packet) { return fixed<AddPool>(packet, "add_pool"); }
Result<ForgetPool> decode_forget_pool(const std::vector<std::byte>& packet) { return fixed<ForgetPool>(packet, "forget_pool"); }

std::string decode_failed(const std::vector<std::byte>& packet) {
  return {reinterpret_cast<const char*>(packet.data()) + sizeof(ControlType), packet.size() - sizeof(ControlType)};
}

}  // namespace leat::worker
