#include "engine/worker/link/protocol.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/exec/picture/sizes.h"
#include "engine/worker/link/channel.h"
#include "tools/base/json/json.h"

namespace leat::worker {
namespace {

constexpr std::int64_t kLongestBatchNs = 3'600'000'000'000;

std::vector<std::byte> packet_of(ControlType type, const void* body, std::size_t bytes) {
  std::vector<std::byte> packet(sizeof(type) + bytes);
  std::memcpy(packet.data(), &type, sizeof(type));
  if (bytes != 0) std::memcpy(packet.data() + sizeof(type), body, bytes);
  return packet;
}
std::vector<std::byte> packet_of(ControlType type, const Json& body) {
  const std::string text = body.dump();
  return packet_of(type, text.data(), text.size());
}

Json to_json(const std::vector<planner::Latency>& list) {
  Json out = Json::array();
  for (const auto& l : list) out.push_back({l.p50_ns, l.p99_ns, l.samples});
  return out;
}
std::vector<planner::Latency> latencies(const Json& list) {
  std::vector<planner::Latency> out;
  for (const auto& l : list)
    out.push_back({l.at(0).get<std::int64_t>(), l.at(1).get<std::int64_t>(), l.at(2).get<std::uint32_t>()});
  return out;
}

Sandbox sandbox_of(const Json& value) {
  const auto number = value.get<std::uint64_t>();
  return number <= static_cast<std::uint64_t>(Sandbox::off) ? static_cast<Sandbox>(number) : Sandbox::off;
}

Overlap overlap_of(const Json& value) {
  const auto number = value.get<std::uint64_t>();
  return number <= static_cast<std::uint64_t>(Overlap::off) ? static_cast<Overlap>(number) : Overlap::off;
}

// Runs `read` on the packet's JSON; a packet that is not JSON, or lacks a key, becomes one line.
template <class T, class Read>
Result<T> from_json(const std::vector<std::byte>& packet, const char* what, Read read) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(packet.data()), packet.size());
    return read(Json::parse(text.substr(sizeof(ControlType))));
  } catch (const JsonError& e) {
    return Error{std::string("control message '") + what + "' does not parse: " + e.what() +
                 "; install leatd and leat-worker of one release"};
  }
}

// Text that a worker wrote, fit for a line of leatd's log.
std::string one_line(std::string text) {
  constexpr std::size_t kLongestLine = 1000;
  text.resize(std::min(text.size(), kLongestLine));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return text;
}

constexpr std::size_t kLongestTensorName = 512;

// By now the worker has opened models: what leatd makes tables and copies of must be in their bounds.
bool can_be(const Ready& r) {
  const auto part = [](const exec::PartSpec& p) {
    return p.rank <= p.dims.size() && p.bytes <= shm::kMaxResultBytes && p.tail <= shm::kMaxResultBytes;
  };
  const auto parts = [&](const std::vector<exec::PartSpec>& list) {
    return list.size() <= LEAT_MAX_PARTS && std::all_of(list.begin(), list.end(), part);
  };
  const auto tensors = [](const std::vector<leat_tensor_shape>& list) {
    return list.size() <= LEAT_MAX_TENSORS &&
           std::all_of(list.begin(), list.end(), [](const auto& t) { return t.rank <= LEAT_MAX_TENSOR_RANK; });
  };
  const auto names = [](const std::vector<std::string>& list) {
    return list.size() <= LEAT_MAX_TENSORS &&
           std::all_of(list.begin(), list.end(), [](const auto& name) { return name.size() <= kLongestTensorName; });
  };
  const auto part_of_it = [](std::uint32_t permille) { return permille < 1000; };
  return r.overlap_permille.size() <= kMaxModules && std::ranges::all_of(r.overlap_permille, part_of_it) &&
         r.parts.size() <= kMaxModules && r.tensors.size() == r.parts.size() &&
         r.tensor_names.size() == r.parts.size() && r.recognised.size() <= kMaxModules &&
         std::all_of(r.tensor_names.begin(), r.tensor_names.end(), names) && r.device.modules.size() <= kMaxModules &&
         std::all_of(r.parts.begin(), r.parts.end(), parts) && std::all_of(r.tensors.begin(), r.tensors.end(), tensors);
}

bool can_be(const std::vector<planner::Latency>& list, std::size_t max) {
  return list.size() <= max && std::all_of(list.begin(), list.end(), [](const planner::Latency& l) {
           return l.p50_ns > 0 && l.p50_ns <= l.p99_ns && l.p99_ns <= kLongestBatchNs;
         });
}

template <class T>
Result<T> fixed(const std::vector<std::byte>& packet, const char* what) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (packet.size() != sizeof(ControlType) + sizeof(T))
    return Error{std::string("control message '") + what +
                 "' has a wrong length; install leatd and leat-worker of one release"};
  T out;
  std::memcpy(&out, packet.data() + sizeof(ControlType), sizeof(T));
  return out;
}

}  // namespace

std::vector<std::byte> encode(const Setup& s) {
  Json modules = Json::array();
  for (const auto& m : s.modules) {
    Json extra = Json::array();
    for (const auto& [key, value] : m.extra) extra.push_back({key, value});
    Json files = Json::array();
    for (const exec::ModelFile& f : m.files) files.push_back({f.path, f.location, f.sha256});
    modules.push_back({{"application", m.application},
                       {"name", m.name},
                       {"index", m.index},
                       {"executor", m.executor},
                       {"model_path", m.model_path},
                       {"as", m.as},
                       {"preprocess", m.preprocess},
                       {"postprocess", m.postprocess},
                       {"labels", m.labels},
                       {"first_head", m.first_head},
                       {"batch", m.batch},
                       {"after_fan_out", m.after_fan_out},
                       {"latency_by_batch", to_json(m.latency_by_batch)},
                       {"extra", extra},
                       {"first_block", m.first_block},
                       {"end_block", m.end_block},
                       {"cuts", m.cuts},
                       {"edge_in", m.edge_in},
                       {"edge_out", m.edge_out},
                       {"files", files},
                       {"version", m.version}});
  }
  Json edges = Json::array();
  for (const auto& e : s.edges)
    edges.push_back({{"edge", e.edge},
                     {"writes", e.writes},
                     {"device", e.device},
                     {"make", e.make},
                     {"peer", e.peer},
                     {"rows", e.spec.rows},
                     {"scrap", e.spec.scrap},
                     {"row_bytes", e.spec.row_bytes}});
  return packet_of(ControlType::setup, Json{{"partition", s.partition},
                                            {"cores", s.cores},
                                            {"threads", s.threads},
                                            {"yields", s.yields},
                                            {"calibrate", s.calibrate},
                                            {"alone_only", s.alone_only},
                                            {"user", s.user},
                                            {"sandbox", s.sandbox},
                                            {"overlap", s.overlap},
                                            {"overlap_permille", s.overlap_permille},
                                            {"device",
                                             {{"plugin", s.device.plugin},
                                              {"uuid", s.device.uuid},
                                              {"least", s.device.multiprocessors_min},
                                              {"most", s.device.multiprocessors_max},
                                              {"group", s.device.group}}},
                                            {"edges", edges},
                                            {"modules", modules}});
}

std::vector<std::byte> encode(const Ready& r) {
  Json list = Json::array();
  Json by_size = Json::array();
  for (const auto& l : r.latency_by_batch) list.push_back(to_json(l));
  for (const auto& l : r.latency_by_size) by_size.push_back(to_json(l));
  Json parts = Json::array(), tensors = Json::array(), recognised = Json::array();
  for (const auto& module : r.parts) {
    Json of_module = Json::array();
    for (const exec::PartSpec& p : module)
      of_module.push_back({p.kind, p.dtype, p.rank, p.dims, p.bytes, p.tail, p.name});
    parts.push_back(of_module);
  }
  for (const auto& module : r.tensors) {
    Json of_module = Json::array();
    for (const leat_tensor_shape& t : module) of_module.push_back({t.dtype, t.rank, t.dims});
    tensors.push_back(of_module);
  }
  for (const exec::Recognised& m : r.recognised) {
    Json of_module = Json::array();
    for (const exec::Concluded* c : {&m.preprocess, &m.postprocess, &m.labels})
      of_module.push_back({c->words, c->from});
    recognised.push_back(of_module);
  }
  return packet_of(ControlType::ready, Json{{"latency_by_batch", list},
                                            {"latency_by_size", by_size},
                                            {"overlap_permille", r.overlap_permille},
                                            {"sandbox", r.sandbox},
                                            {"not_enclosed", r.not_enclosed},
                                            {"undisturbed_percent", r.undisturbed_percent},
                                            {"parts", parts},
                                            {"tensors", tensors},
                                            {"tensor_names", r.tensor_names},
                                            {"recognised", recognised},
                                            {"device", as_json(r.device)}});
}

std::vector<std::byte> encode(const DeviceMemory& memory) { return packet_of(ControlType::memory, as_json(memory)); }
Result<DeviceMemory> decode_memory(const std::vector<std::byte>& packet) {
  constexpr std::size_t kMaxBytes = 256;  // it comes while others are served: no time for a long one
  if (packet.size() > kMaxBytes) return Error{"control message 'memory' is too long"};
  return from_json<DeviceMemory>(packet, "memory", [](const Json& j) { return device_memory_from(j); });
}

std::vector<std::byte> encode(const Measure& measure) {
  return packet_of(ControlType::measure, Json{measure.module, measure.longest_ns, measure.undisturbed_percent});
}
Result<Measure> decode_measure(const std::vector<std::byte>& packet) {
  return from_json<Measure>(packet, "measure", [](const Json& j) {
    return Measure{j.at(0).get<std::uint32_t>(), j.at(1).get<std::int64_t>(), j.at(2).get<std::uint32_t>()};
  });
}

std::vector<std::byte> encode(const Measured& m) {
  return packet_of(ControlType::measured, Json{{"module", m.module},
                                               {"latency_by_batch", to_json(m.latency_by_batch)},
                                               {"latency_by_size", to_json(m.latency_by_size)},
                                               {"undisturbed_percent", m.undisturbed_percent}});
}
Result<Measured> decode_measured(const std::vector<std::byte>& packet) {
  constexpr std::size_t kMaxBytes = 8192;  // it comes while others are served: no time for a long one
  if (packet.size() > kMaxBytes) return Error{"control message 'measured' is too long"};
  return from_json<Measured>(packet, "measured", [](const Json& j) -> Result<Measured> {
    Measured m{.module = j.at("module").get<std::uint32_t>(),
               .latency_by_batch = latencies(j.at("latency_by_batch")),
               .latency_by_size = latencies(j.at("latency_by_size")),
               .undisturbed_percent = std::min(j.at("undisturbed_percent").get<std::uint32_t>(), 100U)};
    if (!can_be(m.latency_by_batch, kMaxBatch) || !can_be(m.latency_by_size, exec::kMaxSizeClasses))
      return Error{"its worker reports latencies that cannot be; look at the executors it loads"};
    return m;
  });
}

std::vector<std::byte> encode(const AddPool& add) { return packet_of(ControlType::add_pool, &add, sizeof(add)); }
std::vector<std::byte> encode(const ForgetPool& forget) {
  return packet_of(ControlType::forget_pool, &forget, sizeof(forget));
}
std::vector<std::byte> encode_edge(std::uint32_t index) { return packet_of(ControlType::edge, &index, sizeof(index)); }
std::vector<std::byte> encode_edge_made(std::uint32_t index) {
  return packet_of(ControlType::edge_made, &index, sizeof(index));
}
std::vector<std::byte> encode_file() { return packet_of(ControlType::file, nullptr, 0); }
std::vector<std::byte> encode_stop() { return packet_of(ControlType::stop, nullptr, 0); }
std::vector<std::byte> encode_failed(const std::string& line) {
  return packet_of(ControlType::failed, line.data(), line.size());
}
std::vector<std::byte> encode_opening(std::uint32_t module) {
  return packet_of(ControlType::opening, &module, sizeof(module));
}
std::vector<std::byte> encode_not_finite(std::uint32_t module) {
  return packet_of(ControlType::not_finite, &module, sizeof(module));
}

std::vector<std::byte> encode(const MeasuringProgress& progress) {
  return packet_of(ControlType::measuring, &progress, sizeof(progress));
}

Result<ControlType> type_of(const std::vector<std::byte>& packet) {
  ControlType type{};
  if (packet.size() < sizeof(type))
    return Error{"control message shorter than its type; install leatd and leat-worker of one release"};
  std::memcpy(&type, packet.data(), sizeof(type));
  return type;
}

Result<Setup> decode_setup(const std::vector<std::byte>& packet) {
  return from_json<Setup>(packet, "setup", [](const Json& j) {
    Setup s;
    j.at("partition").get_to(s.partition);
    j.at("cores").get_to(s.cores);
    j.at("threads").get_to(s.threads);
    j.at("yields").get_to(s.yields);
    j.at("calibrate").get_to(s.calibrate);
    j.at("alone_only").get_to(s.alone_only);
    j.at("user").get_to(s.user);
    s.sandbox = sandbox_of(j.at("sandbox"));
    s.overlap = overlap_of(j.at("overlap"));
    j.at("overlap_permille").get_to(s.overlap_permille);
    const Json& device = j.at("device");
    device.at("plugin").get_to(s.device.plugin);
    device.at("uuid").get_to(s.device.uuid);
    device.at("least").get_to(s.device.multiprocessors_min);
    device.at("most").get_to(s.device.multiprocessors_max);
    device.at("group").get_to(s.device.group);
    for (const auto& e : j.at("edges")) {
      auto& out = s.edges.emplace_back();
      e.at("edge").get_to(out.edge);
      e.at("writes").get_to(out.writes);
      e.at("device").get_to(out.device);
      e.at("make").get_to(out.make);
      e.at("peer").get_to(out.peer);
      e.at("rows").get_to(out.spec.rows);
      e.at("scrap").get_to(out.spec.scrap);
      e.at("row_bytes").get_to(out.spec.row_bytes);
    }
    for (const auto& m : j.at("modules")) {
      ModuleSetup out;
      m.at("application").get_to(out.application);
      m.at("name").get_to(out.name);
      m.at("index").get_to(out.index);
      m.at("executor").get_to(out.executor);
      m.at("model_path").get_to(out.model_path);
      m.at("as").get_to(out.as);
      m.at("preprocess").get_to(out.preprocess);
      m.at("postprocess").get_to(out.postprocess);
      m.at("labels").get_to(out.labels);
      m.at("first_head").get_to(out.first_head);
      m.at("batch").get_to(out.batch);
      m.at("after_fan_out").get_to(out.after_fan_out);
      out.latency_by_batch = latencies(m.at("latency_by_batch"));
      for (const Json& e : m.at("extra"))
        out.extra.emplace_back(e.at(0).get<std::string>(), e.at(1).get<std::string>());
      m.at("first_block").get_to(out.first_block);
      m.at("end_block").get_to(out.end_block);
      m.at("cuts").get_to(out.cuts);
      m.at("edge_in").get_to(out.edge_in);
      m.at("edge_out").get_to(out.edge_out);
      for (const Json& f : m.at("files")) {
        exec::ModelFile& file = out.files.emplace_back();
        f.at(0).get_to(file.path), f.at(1).get_to(file.location), f.at(2).get_to(file.sha256);
      }
      m.at("version").get_to(out.version);
      s.modules.push_back(std::move(out));
    }
    return s;
  });
}

Result<Ready> decode_ready(const std::vector<std::byte>& packet) {
  return from_json<Ready>(packet, "ready", [](const Json& j) -> Result<Ready> {
    Ready r;
    for (const auto& l : j.at("latency_by_batch")) r.latency_by_batch.push_back(latencies(l));
    r.sandbox = sandbox_of(j.at("sandbox"));
    j.at("overlap_permille").get_to(r.overlap_permille);
    r.not_enclosed = one_line(j.at("not_enclosed").get<std::string>());
    r.undisturbed_percent = std::min(j.at("undisturbed_percent").get<std::uint32_t>(), 100U);
    // The worker has opened models by now: what it measured becomes the plan only if it can be true.
    for (const auto& l : j.at("latency_by_size")) r.latency_by_size.push_back(latencies(l));
    bool sound = r.latency_by_batch.size() <= kMaxModules &&
                 (r.latency_by_size.empty() || r.latency_by_size.size() == r.latency_by_batch.size());
    for (const auto& list : r.latency_by_batch) sound = sound && can_be(list, kMaxBatch);
    for (const auto& list : r.latency_by_size) sound = sound && can_be(list, exec::kMaxSizeClasses);
    if (!sound) return Error{"its worker reports latencies that cannot be; look at the executors it loads"};
    for (const auto& module : j.at("parts")) {
      r.parts.emplace_back();
      for (const auto& p : module) {
        auto& out = r.parts.back().emplace_back();
        p.at(0).get_to(out.kind);
        p.at(1).get_to(out.dtype);
        p.at(2).get_to(out.rank);
        p.at(3).get_to(out.dims);
        p.at(4).get_to(out.bytes);
        p.at(5).get_to(out.tail);
        p.at(6).get_to(out.name);
      }
    }
    for (const auto& module : j.at("tensors")) {
      r.tensors.emplace_back();
      for (const auto& t : module) {
        auto& shape = r.tensors.back().emplace_back();
        t.at(0).get_to(shape.dtype);
        t.at(1).get_to(shape.rank);
        for (std::size_t d = 0; d < LEAT_MAX_TENSOR_RANK; ++d) t.at(2).at(d).get_to(shape.dims[d]);
      }
    }
    j.at("tensor_names").get_to(r.tensor_names);
    for (auto& module : r.tensor_names)
      for (std::string& name : module) name = one_line(std::move(name));
    for (const auto& m : j.at("recognised")) {
      exec::Recognised& out = r.recognised.emplace_back();
      std::size_t i = 0;
      for (exec::Concluded* c : {&out.preprocess, &out.postprocess, &out.labels})
        m.at(i).at(0).get_to(c->words), m.at(i).at(1).get_to(c->from), ++i;
    }
    r.device = device_facts_from(j.at("device"));
    r.device.name = one_line(std::move(r.device.name));
    for (DeviceFacts::Module& m : r.device.modules)
      for (std::string* const why : {&m.graphs.why_not, &m.graphs.why_apart}) *why = one_line(std::move(*why));
    if (!can_be(r)) return Error{"its worker reports modules that cannot be; look at the executors it loads"};
    return r;
  });
}

Result<AddPool> decode_add_pool(const std::vector<std::byte>& packet) { return fixed<AddPool>(packet, "add_pool"); }
Result<ForgetPool> decode_forget_pool(const std::vector<std::byte>& packet) {
  return fixed<ForgetPool>(packet, "forget_pool");
}
Result<std::uint32_t> decode_opening(const std::vector<std::byte>& packet) {
  return fixed<std::uint32_t>(packet, "opening");
}

Result<std::uint32_t> decode_not_finite(const std::vector<std::byte>& packet) {
  return fixed<std::uint32_t>(packet, "not_finite");
}

Result<MeasuringProgress> decode_measuring(const std::vector<std::byte>& packet) {
  auto progress = fixed<MeasuringProgress>(packet, "measuring");
  if (progress.ok() && (progress->max == 0 || progress->done > progress->max))
    return Error{"its worker has measured more than there is"};
  return progress;
}

Result<std::uint32_t> decode_edge(const std::vector<std::byte>& packet) { return fixed<std::uint32_t>(packet, "edge"); }

std::string decode_failed(const std::vector<std::byte>& packet) {
  if (packet.size() < sizeof(ControlType)) return {};
  return one_line(std::string(reinterpret_cast<const char*>(packet.data()) + sizeof(ControlType),
                              packet.size() - sizeof(ControlType)));
}

}  // namespace leat::worker
