// Two processes, exporter and importer, that hand memory over again and again: the parent's side, and the one-line
// description of a case that all three read. A hand-over is: the exporter's kernel fills the memory with a fresh
// pattern, a signal says so, the importer's kernel checks it. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "bench/gpu/ask.h"
#include "bench/gpu/processes.h"
#include "bench/gpu/questions/handover_memory.h"

namespace leat::probe {

// How the importer learns that the data is there.
enum class Signal : unsigned char {
  message,      // the exporter's host thread waits for its stream, then sends a message
  event,        // an interprocess event is recorded, a message says so, the importer's stream waits for the event
  device_word,  // the importer's stream waits for a word in the shared device memory (cuStreamWaitValue32)
  host_word,    // ... for a word in host memory that both have registered
};
inline constexpr Signal kSignals[] = {Signal::message, Signal::event, Signal::device_word, Signal::host_word};
[[nodiscard]] std::string_view name_of(Signal signal) noexcept;

struct HandoverCase {
  enum class Kind : unsigned char { rounds, outlive, read_only } kind = Kind::rounds;
  Mechanism mechanism = Mechanism::vmm_fd;
  Signal signal = Signal::message;
  std::size_t bytes = kMiB;  // a multiple of 16
  int rounds = 1;
  int limit_ms = 2000;     // rounds end here, however few they were
  std::uint32_t seed = 0;  // of the first pattern; the pair gives every case another one

  [[nodiscard]] std::string text() const;
  static HandoverCase from(const std::string& text);
};

struct HandoverResult {
  std::vector<double> latency_us;     // from the producer's last block to the consumer's first, by the device's timer
  unsigned long long mismatches = 0;  // 16-byte words that were wrong, over all rounds
  unsigned early = 0;                 // rounds whose consumer began before the producer had ended
};

class HandoverPair {
 public:
  // Starts both and waits until they have contexts. Throws ProbeFailed.
  HandoverPair(const Environment& exporter, const Environment& importer);

  // Throws ProbeFailed with the words of the side that failed; the pair is then useless.
  HandoverResult run(const HandoverCase& what);
  // Kills the exporter while the importer holds its memory: what the importer could still do, as text; empty: all.
  std::string outlive(Mechanism mechanism, std::size_t bytes);
  // Asks for a read-only mapping. Throws where it is refused; otherwise how a write through it ended.
  std::string read_only();

 private:
  void begin(HandoverCase what);
  Child exporter_, importer_;
};

}  // namespace leat::probe
