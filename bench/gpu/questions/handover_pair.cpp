#include "bench/gpu/questions/handover_pair.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

using std::chrono::seconds;

constexpr std::array<std::string_view, 4> kSignalNames{"message", "event", "device_word", "host_word"};

Child start_peer(const char* side, const Environment& environment) {
  auto child = Child::start({.role = std::string(kPeerRole), .arguments = {side}, .environment = environment});
  if (!child) throw ProbeFailed(child.error());
  return std::move(*child);
}

void send(Channel& channel, std::string_view kind, std::string_view body = {}, std::span<const int> fds = {}) {
  if (auto sent = channel.send(kind, body, fds); !sent) throw ProbeFailed(sent.error());
}

std::string expect(Channel& channel, std::string_view kind, std::chrono::milliseconds limit) {
  auto message = channel.expect(kind, after(limit));
  if (!message) throw ProbeFailed(message.error());
  return message->body;
}

// One page for the host word, which both sides map and register.
Fd make_word_page() {
  Fd page(::memfd_create("leat-probe-word", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!page || ::ftruncate(page.get(), 4096) != 0 ||
      ::fcntl(page.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    throw ProbeFailed(std::string("memfd: ") + std::strerror(errno));
  }
  return page;
}

}  // namespace

std::string_view name_of(Signal signal) noexcept { return kSignalNames[static_cast<std::size_t>(signal)]; }

std::string HandoverCase::text() const {
  std::ostringstream text;
  text << static_cast<int>(kind) << ' ' << static_cast<int>(mechanism) << ' ' << static_cast<int>(signal) << ' '
       << bytes << ' ' << rounds << ' ' << limit_ms << ' ' << seed;
  return text.str();
}

HandoverCase HandoverCase::from(const std::string& text) {
  int kind = 0, mechanism = 0, signal = 0;
  HandoverCase result;
  std::istringstream words(text);
  if (!(words >> kind >> mechanism >> signal >> result.bytes >> result.rounds >> result.limit_ms >> result.seed) ||
      kind < 0 || kind > 2 || mechanism < 0 || mechanism > 2 || signal < 0 || signal > 3) {
    throw ProbeFailed("a hand-over's case is malformed: " + text);
  }
  result.kind = static_cast<Kind>(kind);
  result.mechanism = static_cast<Mechanism>(mechanism);
  result.signal = static_cast<Signal>(signal);
  return result;
}

HandoverPair::HandoverPair(const Environment& exporter, const Environment& importer)
    : exporter_(start_peer("exporter", exporter)), importer_(start_peer("importer", importer)) {
  auto between = Channel::pair();
  if (!between) throw ProbeFailed(between.error());
  const Fd page = make_word_page();
  const std::array<int, 2> first{between->first.fd(), page.get()}, second{between->second.fd(), page.get()};
  send(exporter_.channel(), "peer", {}, first);
  send(importer_.channel(), "peer", {}, second);
  expect(exporter_.channel(), "ready", seconds(30));
  expect(importer_.channel(), "ready", seconds(30));
}

void HandoverPair::begin(HandoverCase what) {
  // Memory may come back with what an earlier case left in it: no two cases of this process share a pattern.
  static std::uint32_t next_seed = 1;
  what.seed = next_seed;
  next_seed += 1'000'000;
  send(exporter_.channel(), "case", what.text());
  send(importer_.channel(), "case", what.text());
}

HandoverResult HandoverPair::run(const HandoverCase& what) {
  begin(what);
  std::istringstream words(
      expect(importer_.channel(), "result", std::chrono::milliseconds(what.limit_ms) + seconds(15)));
  expect(exporter_.channel(), "result", seconds(15));
  HandoverResult result;
  words >> result.mismatches >> result.early;
  for (double sample = 0; words >> sample;) result.latency_us.push_back(sample);
  if (result.latency_us.empty()) throw ProbeFailed("no round was finished");
  return result;
}

std::string HandoverPair::outlive(Mechanism mechanism, std::size_t bytes) {
  begin({.kind = HandoverCase::Kind::outlive, .mechanism = mechanism, .bytes = bytes});
  expect(importer_.channel(), "holding", seconds(15));
  exporter_.kill();
  send(importer_.channel(), "check");
  return expect(importer_.channel(), "result", seconds(20));
}

std::string HandoverPair::read_only() {
  begin({.kind = HandoverCase::Kind::read_only, .mechanism = Mechanism::vmm_fd});
  return expect(importer_.channel(), "result", seconds(20));
}

}  // namespace leat::probe
