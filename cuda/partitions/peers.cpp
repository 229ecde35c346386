#include "cuda/partitions/peers.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "cuda/partitions/gpus.h"
#include "engine/exec/device_plugin.h"
#include "tools/base/json/json.h"

namespace leat::partitions {
namespace {

using exec::Device;
using gpu::Channel;

constexpr std::uint64_t kBytes = std::uint64_t{32} << 20, kBytesOnStandIn = std::uint64_t{1} << 20;
constexpr int kRuns = 5;
constexpr std::chrono::seconds kLimit{30};  // of one pair

// A word that depends on its place: memory of another place, old memory and zeros are all noticed.
std::uint64_t word(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t x = seed + i * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 27);
}

struct End {
  std::unique_ptr<Device> device;
  exec::DeviceBuffer buffer;
  exec::PinnedBuffer pinned;
  std::uint64_t bytes = 0;

  Status open(const std::string& uuid, bool shared) {
    auto opened = Device::open("cuda", uuid);
    if (!opened.ok()) return Error{opened.error()};
    device = std::move(*opened);
    bytes = device->info().has_provider != 0 ? kBytes : kBytesOnStandIn;
    auto there = device->allocate(bytes, shared);
    if (!there.ok()) return Error{there.error()};
    buffer = std::move(*there);
    auto here = device->pinned(bytes);
    if (!here.ok()) return Error{here.error()};
    pinned = std::move(*here);
    return Done{};
  }
  // Nanoseconds of the fastest of some copies.
  Result<std::uint64_t> time_copy(void* to, const void* from) {
    std::uint64_t best = UINT64_MAX;
    const leat_device_api& api = *device->api();
    for (int run = 0; run <= kRuns; ++run) {
      std::uint64_t ns = 0;
      char error[256] = "";
      const bool good = api.stamp(device->handle(), 0, error, sizeof error) == LEAT_DEVICE_OK &&
                        device->copy(to, from, bytes) &&
                        api.stamp(device->handle(), 1, error, sizeof error) == LEAT_DEVICE_OK && device->wait() &&
                        api.elapsed(device->handle(), &ns, error, sizeof error) == LEAT_DEVICE_OK;
      if (!good) return Error{error[0] != '\0' ? error : device->error()};
      if (run != 0) best = std::min(best, std::max<std::uint64_t>(ns, 1));  // the first warms
    }
    return best;
  }
};

int failed(Channel& channel, const std::string& why) {
  (void)channel.send("failed", why);
  return 1;
}

// The producer's end: "memory" with the time of a copy to the host and the descriptor; stays until it is let go.
int make(Channel& channel, std::span<const std::string> arguments) {
  const std::uint64_t seed = std::strtoull(arguments[1].c_str(), nullptr, 10);
  End end;
  if (auto status = end.open(arguments[0], true); !status) return failed(channel, status.error());
  auto* const words = reinterpret_cast<std::uint64_t*>(end.pinned.data());
  for (std::uint64_t i = 0; i < end.bytes / sizeof(std::uint64_t); ++i) words[i] = word(seed, i);
  if (!end.device->copy(end.buffer.data(), end.pinned.data(), end.bytes) || !end.device->wait())
    return failed(channel, end.device->error());
  const auto down = end.time_copy(end.pinned.data(), end.buffer.data());
  if (!down.ok()) return failed(channel, down.error());
  const auto fd = end.device->export_memory(end.buffer);
  if (!fd.ok()) return failed(channel, fd.error());
  const int fds[] = {*fd};
  if (!channel.send("memory", std::to_string(*down), fds)) return 1;
  (void)channel.receive(subprocess::after(kLimit));
  return 0;
}

// The consumer's end: told "memory", it says "times": of a copy out of the mapping, and of one up from the host.
int take(Channel& channel, std::span<const std::string> arguments) {
  const std::uint64_t seed = std::strtoull(arguments[1].c_str(), nullptr, 10);
  End end;
  if (auto status = end.open(arguments[0], false); !status) return failed(channel, status.error());
  const auto up = end.time_copy(end.buffer.data(), end.pinned.data());
  if (!up.ok()) return failed(channel, up.error());
  if (!channel.send("up", std::to_string(*up))) return 1;
  auto memory = channel.expect("memory", subprocess::after(kLimit));
  if (!memory.ok() || memory->fds.size() != 1) return failed(channel, "the descriptor did not come through");
  auto mapped = end.device->import_memory(memory->fds[0].get(), end.bytes);
  if (!mapped.ok()) return failed(channel, mapped.error());
  const auto across = end.time_copy(end.buffer.data(), mapped->data());
  if (!across.ok()) return failed(channel, across.error());
  std::memset(end.pinned.data(), 0, end.bytes);
  if (!end.device->copy(end.pinned.data(), end.buffer.data(), end.bytes) || !end.device->wait())
    return failed(channel, end.device->error());
  const auto* const words = reinterpret_cast<const std::uint64_t*>(end.pinned.data());
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < end.bytes / sizeof(std::uint64_t); ++i) wrong += words[i] != word(seed, i) ? 1 : 0;
  if (wrong != 0)
    return failed(channel, "it maps, but " + std::to_string(wrong) + " of " +
                               std::to_string(end.bytes / sizeof(std::uint64_t)) +
                               " words read are not what was written");
  return channel.send("times", std::to_string(*across) + " " + std::to_string(end.bytes)) ? 0 : 1;
}

double gbps(std::uint64_t bytes, double ns) { return ns > 0 ? static_cast<double>(bytes) * 8 / ns : 0; }

Result<gpu::Child> end_of(const char* role, const std::string& device, const std::string& visible,
                          const std::string& seed) {
  return gpu::Child::start({.role = role,
                            .arguments = {device, seed},
                            .environment = {{"CUDA_VISIBLE_DEVICES", visible},
                                            {"CUDA_MPS_PIPE_DIRECTORY", "/nonexistent"},
                                            {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", ""}}});
}

// Throws its one line.
void ask(Pair& pair, std::uint64_t seed) {
  const auto deadline = subprocess::after(kLimit);
  const auto need = [](auto result) {
    if (!result.ok()) throw std::runtime_error(result.error());
    return std::move(*result);
  };
  const std::string visible = pair.from == pair.to ? pair.to : pair.to + "," + pair.from;
  gpu::Child maker = need(end_of("peer-make", pair.from, pair.from, std::to_string(seed)));
  gpu::Child taker = need(end_of("peer-take", pair.to, visible, std::to_string(seed)));
  const auto memory = need(maker.channel().expect("memory", deadline));
  const auto up = need(taker.channel().expect("up", deadline));
  const double host_ns = std::strtod(memory.body.c_str(), nullptr) + std::strtod(up.body.c_str(), nullptr);
  if (memory.fds.size() != 1) throw std::runtime_error("the descriptor did not come through");
  const int fds[] = {memory.fds[0].get()};
  if (auto sent = taker.channel().send("memory", {}, fds); !sent) throw std::runtime_error(sent.error());
  const auto times = taker.channel().expect("times", deadline);
  pair.host_gbps = gbps(kBytes, host_ns);
  unsigned long long across = 0, bytes = 0;
  if (times.ok() && std::sscanf(times->body.c_str(), "%llu %llu", &across, &bytes) == 2) {
    pair.mapped = true;
    pair.gbps = gbps(bytes, static_cast<double>(across));
    pair.host_gbps = gbps(bytes, host_ns);
  } else {
    pair.why_not = times.ok() ? "its answer cannot be read" : times.error();
  }
}

}  // namespace

Result<std::vector<std::string>> places() {
  const auto gpus = read_gpus();
  if (!gpus.ok()) return Error{gpus.error()};
  std::vector<std::string> out, seen;
  for (const Gpu& g : *gpus) {
    if (!g.mig) out.push_back(g.uuid);
    for (const Instance& i : g.instances) {
      const std::string place = place_of(*gpus, i.uuid);
      if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
      seen.push_back(place);
      out.push_back(i.uuid);
    }
  }
  return out;
}

std::vector<Pair> ask_pairs(const std::vector<std::pair<std::string, std::string>>& wishes) {
  const auto gpus = read_gpus();
  std::vector<Pair> out;
  std::uint64_t seed = 0x1ea7;
  for (const auto& [from, to] : wishes) {
    Pair& pair = out.emplace_back(Pair{.from = from, .to = to, .why_not = {}});
    pair.in_place = gpus.ok() && place_of(*gpus, from) == place_of(*gpus, to);
    try {
      ask(pair, ++seed);
    } catch (const std::runtime_error& e) {
      pair.why_not = e.what();
    }
  }
  return out;
}

Result<std::vector<Pair>> ask_all_pairs() {
  const auto all = places();
  if (!all.ok()) return Error{all.error()};
  std::vector<std::pair<std::string, std::string>> wishes;
  for (const std::string& from : *all)
    for (const std::string& to : *all) wishes.emplace_back(from, to);
  return ask_pairs(wishes);
}

double handover_gbps(const std::vector<Pair>& pairs) {
  double min = 0;
  for (const Pair& p : pairs) {
    if (p.from == p.to) continue;
    const double best = p.best_gbps();
    if (best <= 0) return 0;
    min = min == 0 ? best : std::min(min, best);
  }
  return min;
}

std::string text_of(const Pair& pair) {
  char text[128];
  if (pair.mapped)
    (void)std::snprintf(text, sizeof text, "%s, %.3g Gbit/s; by the host %.3g", pair.in_place ? "in place" : "peer",
                        pair.gbps, pair.host_gbps);
  else
    (void)std::snprintf(text, sizeof text, "host, %.3g Gbit/s", pair.host_gbps);
  return text;
}

std::string as_json(const std::vector<Pair>& pairs) {
  Json list = Json::array();
  for (const Pair& p : pairs)
    list.push_back({{"from", p.from},
                    {"to", p.to},
                    {"way", !p.mapped    ? "host"
                            : p.in_place ? "in_place"
                                         : "peer"},
                    {"gbps", p.gbps},
                    {"host_gbps", p.host_gbps},
                    {"why_not", p.why_not}});
  return Json{{"pairs", list}}.dump(2) + "\n";
}

std::span<const gpu::Role> peer_roles() {
  static const gpu::Role kRoles[] = {{"peer-make", make}, {"peer-take", take}};
  return kRoles;
}

}  // namespace leat::partitions
