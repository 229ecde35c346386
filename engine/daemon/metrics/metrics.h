// leatd's records in the counters segment (shm/src/counters/counters.h), and the few moves that must stay consistent: a
// stream's ledger and the total are always written together, so that a snapshot balances.
//
// Threads: records are begun and ended by the control thread, before a thing is handed to the scheduler thread and
// after it comes back; values are written by the thread that owns the thing. Hot calls neither allocate nor call the
// kernel.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "leat/outcome.h"
#include "leat/result.hpp"
#include "shm/src/counters/counters.h"

namespace leat::daemon {

class Metrics {
 public:
  static Result<std::unique_ptr<Metrics>> create();

  shm::CountersWriter& writer() noexcept { return writer_; }
  shm::Record daemon() noexcept { return daemon_; }
  shm::Record total() noexcept { return total_; }
  shm::Record of(shm::RecordKind kind, std::uint32_t index) noexcept { return writer_.record(kind, index); }

  // ---- scheduler thread ----
  void submitted(std::uint32_t stream, std::uint32_t user, std::uint64_t frame_bytes, std::int64_t age_ns) noexcept;
  void first_dispatch(std::uint32_t stream, std::int64_t waited_ns) noexcept;
  void answered(std::uint32_t stream, std::uint32_t user, Outcome outcome, Reason reason, std::int64_t latency_ns,
                std::int64_t now_ns) noexcept;
  // Of a frame, its part of a batch's time.
  void took(std::uint32_t stream, std::uint32_t user, std::int64_t busy_ns) noexcept;
  void event(shm::EventKind kind, std::int64_t now_ns, std::uint32_t stream, std::uint64_t token, std::uint64_t a = 0,
             std::uint64_t b = 0, std::uint64_t c = 0) noexcept;
  void within_share(std::uint32_t stream, std::uint64_t of_stream, std::uint64_t of_all) noexcept {
    of(shm::RecordKind::stream, stream).set(shm::StreamCounter::within_share, of_stream);
    total_.set(shm::StreamCounter::within_share, of_all);
  }
  void damaged(std::uint32_t stream) noexcept {
    of(shm::RecordKind::stream, stream).add(shm::StreamCounter::damaged);
    total_.add(shm::StreamCounter::damaged);
  }
  void copied(std::uint64_t pixel_bytes) noexcept { total_.add(shm::StreamCounter::bytes_copied, pixel_bytes); }
  std::uint64_t in_flight() const noexcept { return in_flight_total_; }
  void answered_late(std::uint32_t application) noexcept {
    if (application < late_.size()) late_[application].fetch_add(1, std::memory_order_relaxed);
  }

  // ---- control thread ----
  // Answers of an application that came after their deadlines, ever; its number may have been another's before.
  [[nodiscard]] std::uint64_t late(std::uint32_t application) const noexcept {
    return application < late_.size() ? late_[application].load(std::memory_order_relaxed) : 0;
  }

 private:
  explicit Metrics(shm::CountersWriter writer) : writer_(std::move(writer)) {}
  void enter(shm::Record& record, std::uint64_t frame_bytes) noexcept;
  void leave(shm::Record& record, Outcome outcome, Reason reason, std::int64_t latency_ns,
             std::int64_t now_ns) noexcept;

  shm::CountersWriter writer_;
  shm::Record daemon_, total_;
  std::uint64_t in_flight_total_ = 0;
  // [application]; as many as there can be modules
  std::array<std::atomic<std::uint64_t>, shm::kMaxRecords[static_cast<std::size_t>(shm::RecordKind::module)]> late_{};
};

}  // namespace leat::daemon
