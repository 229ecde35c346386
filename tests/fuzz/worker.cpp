// The worker's protocol, both ways: what a worker that runs other people's models may send (its control messages), and
// what it reads, each decoded as what its type says. A message that is understood says the same when it is encoded and
// read again.
#include "engine/worker/link/channel.h"
#include "engine/worker/link/protocol.h"
#include "tests/fuzz/harness.h"

namespace leat::fuzz {
namespace {

std::string text_of(const std::vector<std::byte>& packet) {
  return {reinterpret_cast<const char*>(packet.data()), packet.size()};
}

template <class M, class Decode>
void same_again(const Result<M>& message, Decode decode) {
  if (!message.ok()) return insist(!message.error().empty(), "an error without a text");
  const auto packet = worker::encode(*message);
  const auto again = decode(packet);
  insist(again.ok(), "a message that cannot be read again");
  insist(worker::encode(*again) == packet, "a message that reads otherwise than it was written");
}

void check_ready(const std::vector<std::byte>& packet) {
  const auto ready = worker::decode_ready(packet);
  same_again(ready, worker::decode_ready);
  if (!ready.ok()) return;
  for (const auto& list : ready->latency_by_batch) {
    insist(list.size() <= worker::kMaxBatch, "latencies of batches that cannot be");
    for (const auto& l : list) insist(l.p50_ns > 0 && l.p50_ns <= l.p99_ns, "a latency that cannot be");
  }
}

}  // namespace

std::vector<std::string> seeds() {
  worker::Setup setup;
  setup.partition = "p";
  setup.cores = {0, 1};
  setup.edges = {{.edge = 1, .writes = true, .spec = {.rows = 5, .scrap = 4, .row_bytes = 1000}}};
  worker::ModuleSetup module;
  module.application = "a";
  module.name = "m";
  module.executor = "onnx";
  module.labels = {"x\ty"};
  module.latency_by_batch = {{1, 2, 3, 0}};
  module.extra = {{"key", "value"}};
  module.cuts = {"t"};
  module.edge_out = 0;
  setup.modules = {module};
  worker::Ready ready;
  ready.latency_by_batch = {{{10, 20, 3, 0}, {15, 20, 3, 0}}, {}};
  ready.latency_by_size = {{{5, 6, 3, 0}, {10, 20, 3, 0}}, {}};
  worker::AddPool add;
  add.spec = {LEAT_FORMAT_nv12, 64, 32, {}, 4, LEAT_SLOT_HOST};
  return {text_of(worker::encode(setup)),       text_of(worker::encode(ready)),
          text_of(worker::encode(add)),         text_of(worker::encode(worker::ForgetPool{1, 2})),
          text_of(worker::encode_edge(0)),      text_of(worker::encode_stop()),
          text_of(worker::encode_failed("why"))};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::vector<std::byte> packet(bytes.begin(), bytes.end());
  const auto type = worker::type_of(packet);
  if (!type.ok()) return 0;  // nobody decodes a packet without a type
  switch (*type) {
    case worker::ControlType::setup:
      fuzz::same_again(worker::decode_setup(packet), worker::decode_setup);
      break;
    case worker::ControlType::add_pool:
      fuzz::same_again(worker::decode_add_pool(packet), worker::decode_add_pool);
      break;
    case worker::ControlType::forget_pool:
      fuzz::same_again(worker::decode_forget_pool(packet), worker::decode_forget_pool);
      break;
    case worker::ControlType::edge:
      (void)worker::decode_edge(packet);
      break;
    case worker::ControlType::opening:
      (void)worker::decode_opening(packet);
      break;
    case worker::ControlType::ready:
      fuzz::check_ready(packet);
      break;
    default:
      fuzz::insist(worker::decode_failed(packet).find('\n') == std::string::npos, "a failure of several lines");
  }
  return 0;
}
