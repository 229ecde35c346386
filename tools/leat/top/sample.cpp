#include "tools/leat/top/sample.h"

#include <poll.h>

#include <cstdio>
#include <optional>

#include "tools/leat/patience.h"

namespace leat::tools {

const shm::RecordSnapshot* earlier(const Window& window, const shm::RecordSnapshot& record) {
  const Sample& before = window.before;
  const auto same = [&](const shm::RecordSnapshot& other) {
    return other.kind == record.kind && other.index == record.index && other.epoch == record.epoch;
  };
  for (const auto* single : {&before.daemon, &before.total}) {
    if (*single && same(**single)) return &**single;
  }
  for (const auto* list :
       {&before.clients, &before.streams, &before.modules, &before.partitions, &before.edges, &before.users}) {
    for (const shm::RecordSnapshot& other : *list) {
      if (same(other)) return &other;
    }
  }
  return nullptr;
}

std::string gpu_text(const Json& partition) {
  const Json* const gpu = partition.find("gpu");
  if (gpu == nullptr || !gpu->is_object()) return {};
  const Json* const instance = gpu->find("instance");
  std::string out = gpu->value("uuid", "?");
  if (instance != nullptr && instance->is_number()) out += " instance " + instance->dump();
  if (const int share = gpu->value("share_percent", 100); share != 100) out += ", " + std::to_string(share) + " %";
  if (const int count = gpu->value("multiprocessors", 0); count != 0)
    out += ", " + std::to_string(count) + " multiprocessors";
  const auto mib = [&](const char* key) { return std::to_string(gpu->value(key, std::uint64_t{0}) >> 20); };
  if (gpu->value("memory_bytes", std::uint64_t{0}) != 0)
    out += ", " + mib("allocated_bytes") + " of " + mib("memory_bytes") + " MiB made here";
  return out;
}

GpuFacts gpu_facts(const Json& partition) {
  const Json& gpu = partition.at("gpu");
  const auto number = [&](const char* key) {
    const Json* const value = gpu.find(key);
    return value != nullptr && value->is_number() ? value->get<double>() : -1;
  };
  return {.uuid = gpu.value("uuid", ""),
          .instance = number("instance"),
          .share_percent = number("share_percent"),
          .multiprocessors = number("multiprocessors"),
          .memory_bytes = number("allocated_bytes"),
          .text = gpu_text(partition)};
}

std::map<std::string, GpuFacts> devices_in(const std::string& status_json) {
  std::map<std::string, GpuFacts> out;
  const auto status = Json::try_parse(status_json);
  if (!status || !status->contains("partitions")) return out;
  for (const Json& partition : status->at("partitions"))
    if (!gpu_text(partition).empty()) out[partition.value("name", "")] = gpu_facts(partition);
  return out;
}

std::string way_text(const Json& way) {
  char figures[96] = "";
  const double gbps = way.value("gbps", 0.0), host = way.value("host_gbps", 0.0);
  if (gbps > 0) (void)std::snprintf(figures, sizeof figures, ", %.3g Gbit/s", gbps);
  std::string out = way.value("from", "?") + " to " + way.value("to", "?") + ": " + way.value("way", "?") + figures;
  if (host > 0) (void)std::snprintf(figures, sizeof figures, ", host rows %.3g Gbit/s", host), out += figures;
  const auto why = way.value("why_not", "");
  return why.empty() ? out : out + "; " + why;
}

std::map<std::string, std::string> ways_in(const std::string& status_json) {
  std::map<std::string, std::string> out;
  const auto status = Json::try_parse(status_json);
  if (!status || !status->contains("edges")) return out;
  for (const Json& edge : status->at("edges")) {
    std::string& text = out[edge.value("name", "")];
    for (const Json& way : edge.value("ways", Json::array())) {
      const auto word = way.value("way", "");
      if (text.find(word) == std::string::npos) text += (text.empty() ? "" : ", ") + word;
    }
  }
  return out;
}

Result<Watch> Watch::connect(const std::string& socket, std::int64_t patience_ns) {
  leat_error error{};
  auto observer = shm::Observer::connect(socket.empty() ? ::leat_default_socket() : socket, &error, patience_ns);
  if (!observer.ok()) return Error{observer.error()};
  auto counters = observer->counters(&error);
  if (!counters.ok()) return Error{counters.error()};
  auto reader = shm::CountersReader::map(std::move(counters->fd), counters->bytes);
  if (!reader.ok()) return Error{reader.error()};
  return Watch(std::move(*observer), std::move(*reader));
}
Result<Watch> Watch::connect(const std::string& socket) { return connect(socket, shm::kConnectNs); }

Result<Watch> Watch::connect_patiently(const std::string& socket) {
  const WaitingForLeatd waiting;
  auto watch = connect(socket, kPatienceNs);
  if (watch.ok()) watch->patient_ = true;
  return watch;
}

Sample Watch::sample() const {
  using shm::RecordKind;
  Sample sample{.at_ns = ::leat_now_ns(),
                .daemon = reader_.snapshot(RecordKind::daemon, 0),
                .total = reader_.snapshot(RecordKind::total, 0)};
  sample.clients = reader_.live(RecordKind::client);
  sample.streams = reader_.live(RecordKind::stream);
  sample.modules = reader_.live(RecordKind::module);
  sample.partitions = reader_.live(RecordKind::partition);
  sample.edges = reader_.live(RecordKind::edge);
  sample.users = reader_.live(RecordKind::user);
  return sample;
}

std::vector<shm::Event> Watch::events() {
  constexpr std::size_t kAtOnce = 1024;
  std::vector<shm::Event> out;
  for (std::size_t got = 0; out.size() < shm::kEvents;) {
    out.resize(got + kAtOnce);
    const std::uint32_t more = reader_.events(next_event_, std::span(out).subspan(got), &next_event_);
    out.resize(got += more);
    if (more < kAtOnce) break;
  }
  return out;
}

bool Watch::daemon_gone() const {
  pollfd poll{.fd = observer_.fd(), .events = 0, .revents = 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

Result<std::string> Watch::status_json() {
  leat_error error{};
  std::optional<WaitingForLeatd> waiting;
  if (patient_) waiting.emplace();
  return observer_.status(&error);
}

}  // namespace leat::tools
