// One source fed into one stream: its own connection, its own thread, no lock on the way of a frame.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "leat/client.hpp"
#include "tools/leat/feed/annotator.h"
#include "tools/leat/feed/ledger.h"
#include "tools/leat/feed/picture_source.h"
#include "tools/leat/feed/truth.h"

namespace leat::tools {

struct FeederOptions {
  std::string name;               // shown by `leat top` and in the table
  std::string source, socket, application;
  SourceOptions source_options;
  std::int64_t slo_ns = 0;        // 0: the application's
  std::uint32_t depth = 0;        // 0: the library's default
  leat_overload overload = LEAT_OVERLOAD_latest;
  bool overload_chosen = false;   // false: latest for what keeps its own time, fifo for what waits for answers
  leat_priority priority = LEAT_PRIORITY_NORMAL;
  bool realtime = false;          // pictures go in when they are due; otherwise as fast as answers come
  bool loop = false;
  double rate = 0;                // pictures per second instead of the source's own; 0: the source's
  std::uint64_t pictures_most = 0;  // 0: no limit
  std::int64_t run_ns = 0;        // 0: no limit
  const Truth* truth = nullptr;
  Judge* judge = nullptr;
  std::string annotate;           // video file to write; empty: none
};

// When each picture is due, in nanoseconds from the start. A pure function of the source's times, so that tests can walk it.
class Pace {
 public:
  explicit Pace(double rate) : period_ns_(rate > 0 ? 1e9 / rate : 0) {}
  // `picture_ns`: the source's own time of this picture. Ignored when a rate was given.
  std::int64_t due(std::int64_t picture_ns) noexcept;
  // The source begins again: its times start from 0 once more, one step after the last picture.
  void again() noexcept;

 private:
  double period_ns_;
  std::uint64_t count_ = 0;
  std::int64_t base_ = 0, last_ = 0, step_ = 33'333'333;
};

class Feeder {
 public:
  explicit Feeder(FeederOptions options) : options_(std::move(options)) {}
  // Opens source, connection, stream and annotation. Errors: one line.
  Status open();
  // Feeds until the source ends, a limit is reached or `stop` is set, then waits for the answers still due.
  // start_ns: leat_now_ns() at which picture 0 is due. One call, on any thread.
  Status run(std::int64_t start_ns, const std::atomic<bool>& stop);
  // A copy of the figures so far; any thread.
  [[nodiscard]] NamedLedger figures() const;
  [[nodiscard]] std::int64_t first_submit_ns() const noexcept { return first_submit_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t last_answer_ns() const noexcept { return last_answer_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] std::string describe() const;  // "street.mp4: 1280x720 i420 at 30.0/s"

 private:
  enum class Step : std::uint8_t { fed, skipped, ended };
  Result<Step> feed_one(std::int64_t start_ns, const std::atomic<bool>& stop);
  Result<std::optional<std::int64_t>> next_picture();
  void take_answers_until(std::int64_t until_ns, const std::atomic<bool>& stop);
  bool take_answer(std::int64_t timeout_ns);
  void drain();
  [[nodiscard]] Status lost() const;
  std::optional<Frame> slot(bool wait, const std::atomic<bool>& stop);

  FeederOptions options_;
  std::unique_ptr<PictureSource> source_;
  std::optional<Client> client_;
  std::optional<Stream> stream_;      // after client_: it must go first
  std::unique_ptr<Annotator> annotator_;
  Pace pace_{0};
  std::uint32_t depth_ = 0;
  std::uint64_t fed_ = 0;             // pictures submitted
  std::uint32_t picture_ = 0;         // of the source, since its beginning
  std::uint64_t in_flight_ = 0;
  mutable std::mutex mutex_;          // guards ledger_ between this feeder's thread and figures()
  Ledger ledger_;
  std::atomic<std::int64_t> first_submit_ns_{0}, last_answer_ns_{0};  // relaxed: figures for display, and read after the join
};

}  // namespace leat::tools
