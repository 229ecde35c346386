// The two processes of a hand-over (see handover_pair.h), as roles. Between them, on their own channel:
//   exporter -> importer   memory (blob, descriptor), event (handle), go (round)
//   importer -> exporter   mapped, armed, done ("more" or "last"), closed
// A side that fails tells the other one and the probe, in the same words.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

#include "bench/gpu/questions/groups.h"
#include "bench/gpu/questions/handover_pair.h"

namespace leat::probe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPeerLimit = seconds(10);

void send(Channel& channel, std::string_view kind, std::string_view body = {}, std::span<const int> fds = {}) {
  if (auto sent = channel.send(kind, body, fds); !sent) throw ProbeFailed(sent.error());
}

Message expect(Channel& channel, std::string_view kind) {
  auto message = channel.expect(kind, after(kPeerLimit));
  if (!message) throw ProbeFailed(message.error());
  return std::move(*message);
}

// The host word: a page of a memfd, mapped here and registered with CUDA.
class HostWord {
 public:
  explicit HostWord(int fd) {
    void* mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) throw ProbeFailed(std::string("mmap: ") + std::strerror(errno));
    page_ = mapped;
    const cudaError_t registered = cudaHostRegister(page_, kBytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
    if (registered != cudaSuccess) {
      ::munmap(page_, kBytes);
      LEAT_CUDA(registered);
    }
    void* address = nullptr;
    if (const cudaError_t found = cudaHostGetDevicePointer(&address, page_, 0); found != cudaSuccess) {
      release();
      LEAT_CUDA(found);
    }
    device_ = reinterpret_cast<CUdeviceptr>(address);
  }
  HostWord(const HostWord&) = delete;
  ~HostWord() { release(); }
  [[nodiscard]] CUdeviceptr device() const noexcept { return device_; }
  void reset() const { std::atomic_ref(*static_cast<std::uint32_t*>(page_)).store(0, std::memory_order_release); }

 private:
  static constexpr std::size_t kBytes = 4096;
  void release() noexcept {
    (void)cudaHostUnregister(page_);
    ::munmap(page_, kBytes);
  }
  void* page_ = nullptr;
  CUdeviceptr device_ = 0;
};

struct Peer {
  Channel channel;  // to the other side
  Fd page;
  const Stream stream{};
};

// Where the sequence word of this case is, and its owner.
CUdeviceptr word_of(const HandoverCase& what, const SharedMemory& memory, const std::unique_ptr<HostWord>& host) {
  return what.signal == Signal::host_word ? host->device() : reinterpret_cast<CUdeviceptr>(&memory.header()->word);
}

std::unique_ptr<HostWord> host_word_for(const HandoverCase& what, const Peer& peer) {
  return what.signal == Signal::host_word ? std::make_unique<HostWord>(peer.page.get()) : nullptr;
}

// ---- exporter ----

void export_memory(Peer& peer, SharedMemory& memory) {
  const Export exported = memory.share();
  const std::array<int, 1> fds{exported.fd.get()};
  send(peer.channel, "memory", exported.blob, exported.fd ? std::span<const int>(fds) : std::span<const int>());
}

void fill(const Peer& peer, const SharedMemory& memory, const HandoverCase& what, std::uint32_t seed) {
  LEAT_CUDA(kernels::fill(memory.data(), what.bytes, seed, &memory.header()->last, peer.stream));
}

// `event` outlives the importer's use of it: it belongs to the caller.
void export_rounds(Peer& peer, const SharedMemory& memory, const HandoverCase& what, std::unique_ptr<Event>& event) {
  const auto host_word = host_word_for(what, peer);
  const CUdeviceptr word = word_of(what, memory, host_word);
  const bool by_word = what.signal == Signal::device_word || what.signal == Signal::host_word;
  if (what.signal == Signal::event) {
    event = std::make_unique<Event>(cudaEventInterprocess | cudaEventDisableTiming);
    cudaIpcEventHandle_t handle{};
    LEAT_CUDA(cudaIpcGetEventHandle(&handle, *event));
    send(peer.channel, "event", {reinterpret_cast<const char*>(&handle), sizeof handle});
  }
  for (std::uint32_t round = 1;; ++round) {
    if (by_word) expect(peer.channel, "armed");
    fill(peer, memory, what, what.seed + round);
    if (by_word) {
      LEAT_DRIVER(cuStreamWriteValue32, peer.stream, word, round, CU_STREAM_WRITE_VALUE_DEFAULT);
    } else {
      if (event) {
        LEAT_CUDA(cudaEventRecord(*event, peer.stream));
      } else {
        peer.stream.wait();
      }
      send(peer.channel, "go");
    }
    if (expect(peer.channel, "done").body == "last") break;
  }
  peer.stream.wait();
}

void run_exporter(Peer& peer, Channel& probe, const HandoverCase& what) {
  const auto memory = allocate_shared(what.mechanism, what.bytes);
  std::unique_ptr<Event> event;
  LEAT_CUDA(cudaMemset(memory->header(), 0, kHeaderBytes));
  LEAT_CUDA(cudaDeviceSynchronize());
  if (what.kind == HandoverCase::Kind::rounds) {
    export_memory(peer, *memory);
    expect(peer.channel, "mapped");
    export_rounds(peer, *memory, what, event);
  } else {
    fill(peer, *memory, what, what.seed);
    peer.stream.wait();
    export_memory(peer, *memory);
  }
  // Kept until the importer has let go (or, to be outlived, until this process is killed).
  auto closed = peer.channel.expect("closed", after(seconds(60)));
  if (!closed) throw ProbeFailed(closed.error());
  send(probe, "result");
}

// ---- importer ----

// What the importer's kernels report; its own memory.
struct Findings {
  kernels::Stamp first;
  unsigned long long mismatches;
};

class Checker {
 public:
  explicit Checker(cudaStream_t stream) : stream_(stream) {}
  // Into the stream; `arm` comes between the preparation and the check.
  template <class Arm>
  void enqueue(const SharedMemory& memory, std::size_t bytes, std::uint32_t seed, Arm&& arm) {
    auto* findings = findings_.as<Findings>();
    LEAT_CUDA(cudaMemsetAsync(&findings->first, 0xff, sizeof findings->first, stream_));
    LEAT_CUDA(cudaMemsetAsync(&findings->mismatches, 0, sizeof findings->mismatches, stream_));
    arm();
    LEAT_CUDA(kernels::verify(memory.data(), bytes, seed, &findings->first, &findings->mismatches, stream_));
  }
  // Waits without blocking for ever: a word may never come.
  Findings wait() {
    const Deadline deadline = after(seconds(5));
    for (cudaError_t state = cudaStreamQuery(stream_); state != cudaSuccess; state = cudaStreamQuery(stream_)) {
      if (state != cudaErrorNotReady) LEAT_CUDA(state);
      if (Clock::now() > deadline) throw ProbeFailed("the importer's stream was still waiting after 5 s");
      std::this_thread::yield();
    }
    return findings_.read<Findings>();
  }

 private:
  cudaStream_t stream_;
  Buffer findings_{sizeof(Findings)};
};

std::unique_ptr<SharedMemory> import_memory(Peer& peer, const HandoverCase& what) {
  const Message message = expect(peer.channel, "memory");
  const int fd = message.fds.empty() ? -1 : message.fds.front().get();
  return import_shared(what.mechanism, what.bytes, message.body, fd, what.kind == HandoverCase::Kind::read_only);
}

struct ImportedEvent {
  cudaEvent_t event = nullptr;
  ~ImportedEvent() {
    if (event != nullptr) (void)cudaEventDestroy(event);
  }
};

// A stream that waits for a word nobody writes would hold this process for ever, also when it frees its memory: the
// word (0: there is none) is then written from here.
Findings wait_or_release(Checker& checker, CUdeviceptr word, std::uint32_t round) {
  try {
    return checker.wait();
  } catch (...) {
    if (word != 0 && driver().cuStreamWriteValue32 != nullptr) {
      const Stream other;
      (void)driver().cuStreamWriteValue32(other, word, round, CU_STREAM_WRITE_VALUE_DEFAULT);
    }
    throw;
  }
}

HandoverResult import_rounds(Peer& peer, const SharedMemory& memory, const HandoverCase& what) {
  const auto host_word = host_word_for(what, peer);
  if (host_word) host_word->reset();
  const CUdeviceptr word = word_of(what, memory, host_word);
  const bool by_word = what.signal == Signal::device_word || what.signal == Signal::host_word;
  send(peer.channel, "mapped");
  ImportedEvent imported;
  if (what.signal == Signal::event) {
    const Message message = expect(peer.channel, "event");
    cudaIpcEventHandle_t handle{};
    if (message.body.size() != sizeof handle) throw ProbeFailed("the event's handle has the wrong size");
    std::memcpy(&handle, message.body.data(), sizeof handle);
    LEAT_CUDA(cudaIpcOpenEventHandle(&imported.event, handle));
  }
  Checker checker(peer.stream);
  HandoverResult result;
  const Deadline deadline = after(milliseconds(what.limit_ms));
  for (std::uint32_t round = 1;; ++round) {
    if (!by_word) expect(peer.channel, "go");
    checker.enqueue(memory, what.bytes, what.seed + round, [&] {
      if (by_word) LEAT_DRIVER(cuStreamWaitValue32, peer.stream, word, round, CU_STREAM_WAIT_VALUE_GEQ);
      if (imported.event != nullptr) LEAT_CUDA(cudaStreamWaitEvent(peer.stream, imported.event, 0));
    });
    if (by_word) send(peer.channel, "armed");
    const Findings found = wait_or_release(checker, by_word ? word : 0, round);
    HandoverHeader header{};
    LEAT_CUDA(cudaMemcpy(&header, memory.header(), sizeof header, cudaMemcpyDeviceToHost));
    result.mismatches += found.mismatches;
    if (found.first < header.last) ++result.early;
    // The first rounds load kernels lazily; they are checked, not timed.
    // Whole nanoseconds first: a double does not hold a stamp exactly. Negative where the order was violated.
    const double us = static_cast<double>(static_cast<std::int64_t>(found.first - header.last)) / 1e3;
    if (round > 2) result.latency_us.push_back(us);
    const bool last = result.latency_us.size() >= static_cast<std::size_t>(what.rounds) ||
                      (Clock::now() > deadline && !result.latency_us.empty());
    send(peer.channel, "done", last ? "last" : "more");
    if (last) return result;
  }
}

// The exporter is gone: is the data still there, is it still writable, and is this process still well afterwards?
std::string outlive(Peer& peer, std::unique_ptr<SharedMemory> memory, const HandoverCase& what) {
  std::string lost;
  const auto attempt = [&](const char* text, auto&& action) {
    try {
      action();
    } catch (const std::exception& problem) {
      lost += (lost.empty() ? "" : "; ") + std::string(text) + ": " + problem.what();
    }
  };
  const auto verify = [&](std::uint32_t seed) {
    Checker checker(peer.stream);
    checker.enqueue(*memory, what.bytes, seed, [] {});
    if (checker.wait().mismatches != 0) throw ProbeFailed("the data changed");
  };
  attempt("reading", [&] { verify(what.seed); });
  attempt("writing", [&] {
    fill(peer, *memory, what, what.seed + 1);
    verify(what.seed + 1);
  });
  attempt("letting go and going on", [&] {
    memory.reset();
    LEAT_CUDA(cudaDeviceSynchronize());
    const Buffer fresh(what.bytes);
    fresh.clear();
    LEAT_CUDA(cudaDeviceSynchronize());
  });
  return lost;
}

void run_importer(Peer& peer, Channel& probe, const HandoverCase& what) {
  auto memory = import_memory(peer, what);
  if (what.kind == HandoverCase::Kind::rounds) {
    const HandoverResult result = import_rounds(peer, *memory, what);
    memory.reset();
    send(peer.channel, "closed");
    std::ostringstream text;
    text << result.mismatches << ' ' << result.early;
    for (double sample : result.latency_us) text << ' ' << sample;
    send(probe, "result", text.str());
    return;
  }
  Checker checker(peer.stream);
  checker.enqueue(*memory, what.bytes, what.seed, [] {});
  if (checker.wait().mismatches != 0) throw ProbeFailed("the importer read wrong data");
  if (what.kind == HandoverCase::Kind::outlive) {
    send(probe, "holding");
    expect(probe, "check");
    send(probe, "result", outlive(peer, std::move(memory), what));
    return;
  }
  cudaError_t written = kernels::fill(memory->data(), what.bytes, what.seed, &memory->header()->last, peer.stream);
  if (written == cudaSuccess) written = cudaStreamSynchronize(peer.stream);
  send(probe, "result", cudaGetErrorName(written));
}

}  // namespace

int run_handover_peer(Channel& channel, std::span<const std::string> arguments) {
  const bool exporter = arguments.size() == 1 && arguments[0] == "exporter";
  Message message = expect(channel, "peer");
  if (message.fds.size() != 2) throw ProbeFailed("the peer's channel did not arrive");
  LEAT_DRIVER(cuInit, 0);
  open_device();
  Peer peer{Channel(std::move(message.fds[0])), std::move(message.fds[1])};
  send(channel, "ready");
  for (;;) {
    Received next = channel.receive(after(std::chrono::minutes(10)));
    if (next.receipt != Receipt::message) return 0;
    try {
      const HandoverCase what = HandoverCase::from(next.message.body);
      exporter ? run_exporter(peer, channel, what) : run_importer(peer, channel, what);
    } catch (const std::exception& problem) {
      // Best effort: whoever is gone needs no telling. The pair is not used again.
      (void)peer.channel.send("failed", problem.what());
      (void)channel.send("failed", problem.what());
      return 1;
    }
  }
}

}  // namespace leat::probe
