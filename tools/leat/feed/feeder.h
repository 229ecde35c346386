// One source fed into one stream, or into one for each task: its own connection, its own thread, no lock on the way of
// a frame.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leat/client.hpp"
#include "tools/leat/answers/stream_answers.h"
#include "tools/leat/feed/follower.h"
#include "tools/leat/feed/ledger.h"
#include "tools/leat/feed/pace.h"
#include "tools/leat/feed/source/decode_turns.h"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/task_part.h"
#include "tools/leat/feed/truth.h"
#include "tools/leat/feed/video/annotator.h"

namespace leat::tools {

struct FeederOptions {
  std::string name;  // shown by `leat top` and in the table
  std::string source, socket, application;
  SourceOptions source_options;
  std::int64_t slo_ns = 0;  // 0: the application's
  std::uint32_t depth = 0;  // 0: the library's default
  leat_overload overload = LEAT_OVERLOAD_latest;
  bool overload_chosen = false;  // false: latest for what keeps its own time, fifo for what waits for answers
  leat_priority priority = LEAT_PRIORITY_NORMAL;
  bool realtime = false;             // pictures go in when they are due; otherwise as fast as answers come
  std::vector<std::uint32_t> cores;  // where this feeder's thread runs; empty: anywhere
  bool yields = false;               // its thread gives way to others
  // Optional: of all feeders that share cores. Must outlive the feeder.
  DecodeTurns* turns = nullptr;
  bool loop = false;
  double rate = 0;                 // pictures per second instead of the source's own; 0: the source's
  std::uint64_t max_pictures = 0;  // 0: no limit
  std::int64_t run_ns = 0;         // 0: no limit
  const Truth* truth = nullptr;
  Judge* judge = nullptr;
  LineWriter* answers = nullptr;  // every answer as a line; outlives the feeder's run
  bool tracks = false;            // of the lines: identities, and what is left out
  double min_score = 0;
  std::vector<std::string> classes;
  std::string annotate;            // video file to write; empty: none
  Annotator* grid = nullptr;       // with all streams side by side; outlives the feeder's run
  std::uint32_t grid_place = 0;    // this stream's in it
  double accuracy = 0;             // coordinated: what may be lost between answers, 0..0.5; 0: every picture is sent
  std::string tracker = "blocks";  // coordinated: scene::kTrackers
  std::vector<TaskPart> tasks;     // coordinated: that take turns; empty: one stream of the whole picture
};

class Feeder {
 public:
  explicit Feeder(FeederOptions options) : options_(std::move(options)) {}
  // Opens source, connection, stream and annotation. Errors: one line.
  Status open();
  // Feeds until the source ends, a limit is reached or `stop` is set, then waits for the answers still due.
  // start_ns: leat_now_ns() at which picture 0 is due. One call, on any thread.
  Status run(std::int64_t start_ns, const std::atomic<bool>& stop);
  // A copy of the figures so far, of each stream; any thread.
  [[nodiscard]] std::vector<NamedLedger> figures() const;
  [[nodiscard]] std::int64_t first_submit_ns() const noexcept {
    return first_submit_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t last_answer_ns() const noexcept { return last_answer_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] std::string describe() const;  // "street.mp4: 1280x720 i420 at 30.0/s"

 private:
  enum class Step : std::uint8_t { fed, skipped, ended };
  Result<Step> feed_one(std::int64_t start_ns, const std::atomic<bool>& stop);
  struct Lane {  // a stream and what belongs to it
    TaskPart part;
    std::optional<Stream> stream;
    std::unique_ptr<Follower> follower;  // coordinated
    Truth truth_of_part;
    const Truth* truth = nullptr;
    Ledger ledger;
    std::optional<FollowerFigures> followed;
    std::optional<StreamAnswers> answers;
    std::uint64_t submitted = 0;
  };
  Status open_lane(Lane& lane, StreamOptions options);
  Status open_answers(Lane& lane, const std::string& application);
  // Coordinated: shows every picture, sends those that are asked for.
  Result<Step> follow_one(std::int64_t capture_ns, std::uint32_t picture);
  Result<Step> follow_lane(Lane& lane, std::int64_t capture_ns, std::uint32_t picture);
  // timed: what is hopeless by now is skipped, not sent.
  Result<Step> submit(Lane& lane, Frame& frame, std::int64_t capture_ns, std::uint32_t picture, bool timed);
  Result<std::optional<std::int64_t>> next_picture();
  // Decodes the next picture that there is still time for; waits for its turn to do so.
  Result<std::optional<std::int64_t>> decode_next(std::int64_t start_ns);
  // How old a picture may be now and still be answered in time, as answers usually go.
  [[nodiscard]] std::int64_t room_ns(std::int64_t now_ns) const noexcept;
  // feeder_turn.cpp. Takes answers until a picture is wanted. False: not before the next one is there, or the end.
  bool await_turn(std::int64_t capture_ns, std::int64_t start_ns, const std::atomic<bool>& stop);
  Result<bool> jump(std::int64_t start_ns);  // false: nothing to pass over
  void count_left_out();
  [[nodiscard]] bool hopeless(std::int64_t capture_ns, std::int64_t now_ns) const;
  void skip(Skip why, std::uint64_t pictures = 1) { skip(lanes_.front(), why, pictures); }
  void skip(Lane& lane, Skip why, std::uint64_t pictures = 1);
  [[nodiscard]] bool follows() const noexcept { return lanes_.front().follower != nullptr; }
  [[nodiscard]] bool keeps_time() const noexcept {
    return options_.realtime || options_.rate > 0 || source_->format().live;
  }
  void take_answers_until(std::int64_t until_ns, const std::atomic<bool>& stop);
  bool take_answer(std::int64_t timeout_ns);
  void drain();
  [[nodiscard]] Annotator* annotates() const noexcept {
    return annotator_ != nullptr ? annotator_.get() : options_.grid;
  }
  [[nodiscard]] Status lost() const;
  std::optional<Frame> slot(bool wait, const std::atomic<bool>& stop);

  static constexpr std::int64_t kLongestWait = 50'000'000;  // so that a stop is seen

  FeederOptions options_;
  std::unique_ptr<PictureSource> source_;
  std::optional<Client> client_;
  std::vector<Lane> lanes_;  // after client_: streams must go first; no fewer than one once opened
  std::unique_ptr<Annotator> annotator_;
  std::unique_ptr<OwnPicture> whole_;                // of which tasks have their parts
  std::uint64_t rounds_before_ = 0, number_ = 0;     // pictures of the rounds of --loop before this one; the newest
  std::array<std::uint64_t, 256> number_of_{};       // by the how manyth submission
  std::array<std::uint64_t, 256> lane_number_of_{};  // the how manyth of its lane's it is; by the same
  Pace pace_{0};
  Liveness liveness_;
  AnswerTime answer_time_;
  bool newcomer_ = true;              // has just begun, or passed over pictures
  std::int64_t served_until_ns_ = 0;  // until then its decoding comes before newcomers'
  std::int64_t slo_ns_ = 0;
  bool every_one_ = false;  // nothing is left out: as fast as answers come, or never_drop was asked for
  bool waits_for_grants_ = false;
  std::int64_t decode_ns_ = 0;  // what making a picture ready takes, smoothed
  std::uint32_t depth_ = 0;
  std::uint64_t fed_ = 0;         // pictures submitted
  std::uint64_t next_index_ = 0;  // of the picture that follows the last one made ready or passed over
  std::uint64_t passed_ = 0;      // pictures passed over on the way to the next one
  std::uint64_t in_flight_ = 0;
  std::array<std::int64_t, 256> submitted_ns_{};  // by the how manyth submission; more than can be in flight
  mutable std::mutex mutex_;  // guards the lanes' figures between this feeder's thread and figures()
  std::atomic<std::int64_t> first_submit_ns_{0},
      last_answer_ns_{0};  // relaxed: figures for display, and read after the join
};

}  // namespace leat::tools
