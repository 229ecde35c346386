// One source fed into one stream, or into one for each task, on a thread of its own.
//
// feeder.cpp has the way of a picture: when it is decoded, whether it is sent, what becomes of its answer.
// feeder_streams.cpp has what is opened, lost and opened again: the source, the streams on the shared connection, also
// where pictures change their size or pixel format.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shm/src/protocol/limiters.h"
#include "tools/leat/answers/stream_answers.h"
#include "tools/leat/feed/connection/connection.h"
#include "tools/leat/feed/follower.h"
#include "tools/leat/feed/ledger.h"
#include "tools/leat/feed/pace.h"
#include "tools/leat/feed/source/decode_turns.h"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/source_clock.h"
#include "tools/leat/feed/task_part.h"
#include "tools/leat/feed/truth.h"
#include "tools/leat/feed/video/annotator.h"

namespace leat::tools {

// Of a picture that may show an error of its stream (PictureSource::damaged). mark: it is submitted as damaged, and its
// answer says so. drop: it is not submitted. keep: it is submitted as any other.
enum class DamagedPictures : std::uint8_t { mark, drop, keep };

struct FeederOptions {
  std::string name;  // shown by `leat top` and in the table
  std::string source;
  std::string socket;                // of a connection of its own, where it is given none
  std::string application;           // empty: the only one that leatd serves
  Connection* connection = nullptr;  // shared with others; outlives the feeder
  std::uint32_t number = 0;          // among the connection's feeders: numbers the group of its tasks
  // leatd may go and come: what is due meanwhile is left out, and the streams are opened anew. false: that is the end.
  bool stays = false;
  std::int64_t stall_ns = 0;  // of a live source: without a picture for so long it has stalled; 0: never
  SourceOptions source_options;
  std::int64_t slo_ns = 0;  // 0: the application's
  std::uint32_t depth = 0;  // 0: the library's default
  leat_overload overload = LEAT_OVERLOAD_latest;
  bool overload_chosen = false;  // false: latest for what keeps its own time, fifo for what waits for answers
  leat_priority priority = LEAT_PRIORITY_NORMAL;
  DamagedPictures damaged = DamagedPictures::mark;
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
  std::string certainty;           // coordinated: file of the tracker's rule; empty: its own
  std::vector<TaskPart> tasks;     // coordinated: that take turns; empty: one stream of the whole picture
};

class Feeder {
 public:
  explicit Feeder(FeederOptions options);
  ~Feeder();
  // Opens source, streams and annotation. Errors: one line.
  Status open();
  // The source alone, also anew after it broke off: what it was fed into stays open if its pictures have the same
  // format. `stop` ends it.
  Status open_source(const std::atomic<bool>& stop);
  // The streams, where they are not open.
  Status open_streams();
  // Feeds until the source ends, a limit is reached or `stop` is set, then waits for the answers still due.
  // start_ns: leat_now_ns() at which picture 0 is due.
  Status feed(std::int64_t start_ns, const std::atomic<bool>& stop);
  // Time is counted from here; feed() does it where nobody else has.
  void begin(std::int64_t now_ns) noexcept { began_ns_ = began_ns_ == 0 ? now_ns : began_ns_; }
  // run_ns or max_pictures is reached.
  [[nodiscard]] bool done() const noexcept {
    return done_ || (options_.run_ns > 0 && began_ns_ > 0 && ::leat_now_ns() >= began_ns_ + options_.run_ns);
  }
  // Between two openings of the source: takes what still comes.
  void rest(std::int64_t until_ns, const std::atomic<bool>& stop);
  // The last lines of answers, the end of the video. Once, when nothing is fed any more.
  Status finish();
  // feed() and finish(), once, on any thread.
  Status run(std::int64_t start_ns, const std::atomic<bool>& stop);
  // A copy of the figures so far, of each stream; any thread.
  [[nodiscard]] std::vector<NamedLedger> figures() const;
  [[nodiscard]] std::int64_t first_submit_ns() const noexcept {
    return first_submit_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t last_answer_ns() const noexcept { return last_answer_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] const FeederOptions& options() const noexcept { return options_; }
  // Its source has ended and begins again once it is opened anew: with --loop. next_due_ns(): from when on.
  [[nodiscard]] bool loops() const noexcept { return options_.loop && source_ != nullptr && !live(); }
  [[nodiscard]] std::int64_t next_due_ns() const noexcept { return start_ns_ + clock_.next_due(); }
  [[nodiscard]] bool live() const noexcept { return source_ != nullptr && source_->format().live; }
  // Any thread. When a frame was last submitted, or left out for another reason than its age, 0: never; how many were.
  [[nodiscard]] std::int64_t last_picture_ns() const noexcept {
    return last_picture_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t pictures() const noexcept { return pictures_.load(std::memory_order_relaxed); }
  // Any thread: pictures made ready that may show an error; how often size or pixel format changed.
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t format_changes() const noexcept {
    return format_changes_.load(std::memory_order_relaxed);
  }
  // Since when every frame that came was too old to be submitted; 0: the last one was not.
  [[nodiscard]] std::int64_t too_late_since_ns() const noexcept {
    return too_late_since_ns_.load(std::memory_order_relaxed);
  }
  // How often the source's times stepped (source_clock.h).
  [[nodiscard]] std::uint64_t time_steps() const noexcept { return time_steps_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string unserved() const;  // why leatd does not take its frames; empty: it does
  [[nodiscard]] std::string describe() const;  // "street.mp4: 1280x720 i420 at 30.0/s"

 private:
  static constexpr std::int64_t kLongestWaitNs = 50'000'000;  // so that a stop is seen
  enum class Step : std::uint8_t { fed, skipped, ended };
  Result<Step> feed_one(const std::atomic<bool>& stop);
  void count_life();                           // of the frame that feed_one() had in hand
  void tell_step();                            // of the source's times
  [[nodiscard]] FrameArrival arrival() const;  // counted from start_ns_
  struct Lane {                                // a stream and what belongs to it
    TaskPart part;
    std::shared_ptr<SharedStream> stream;
    std::unique_ptr<Follower> follower;  // coordinated
    Truth truth_of_part;
    const Truth* truth = nullptr;
    Ledger ledger;
    std::optional<FollowerFigures> followed;
    std::optional<StreamAnswers> answers;
    std::uint64_t submitted = 0;
  };
  Status prepare_lanes();  // what of them depends on the pictures' format alone
  Status prepare_lane(Lane& lane);
  [[nodiscard]] Result<StreamOptions> stream_options() const;
  Status open_lane(Lane& lane, StreamOptions options, const std::string& application);
  Status open_answers(Lane& lane, const std::string& application);
  Status open_annotator();
  // Every frame in flight has its answer, or its patience is over. Then the streams are those of the picture at hand.
  Status follow_format();
  void close_streams();
  void show_slots();
  [[nodiscard]] bool served() const noexcept { return !lanes_.empty() && lanes_.front().stream != nullptr; }
  [[nodiscard]] bool stream_lost() const noexcept;
  void lose_streams();  // leatd has gone
  // leatd may have come back: opens the streams, now and then. False: it has not.
  bool serve_again();
  Result<Step> without_daemon();
  bool leaves_out_damaged();
  [[nodiscard]] bool give_up();  // asked by the source while it waits
  // Coordinated: shows every picture, sends those that are asked for.
  Result<Step> follow_one(std::int64_t capture_ns, std::uint32_t picture);
  Result<Step> follow_lane(Lane& lane, std::int64_t capture_ns, std::uint32_t picture);
  // timed: what is hopeless by now is skipped, not sent.
  Result<Step> submit(Lane& lane, Frame& frame, std::int64_t capture_ns, std::uint32_t picture, bool timed);
  Result<std::optional<std::int64_t>> next_picture();
  // Decodes the next picture that there is still time for; waits for its turn to do so.
  Result<std::optional<std::int64_t>> decode_next();
  // How old a picture may be now and still be answered in time, as answers usually go.
  [[nodiscard]] std::int64_t room_ns(std::int64_t now_ns) const noexcept;
  // feeder_turn.cpp. Takes answers until a picture is wanted. False: not before the next one is there, or the end.
  bool await_turn(std::int64_t capture_ns, const std::atomic<bool>& stop);
  [[nodiscard]] std::int64_t jump_time(std::int64_t now_ns) const noexcept;  // the source's own, of where to
  Result<bool> jump();                                                       // false: nothing to pass over
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

  FeederOptions options_;
  std::unique_ptr<Connection> own_connection_;
  Inbox inbox_;
  std::vector<Lane> lanes_;  // no fewer than one once opened
  std::unique_ptr<Annotator> annotator_;
  std::unique_ptr<PictureSource> source_;
  PictureFormat served_format_;              // of the pictures that the lanes are for
  const std::atomic<bool>* stop_ = nullptr;  // while a source is open
  std::int64_t patience_ns_ = INT64_MAX;     // a source that waits beyond it has stalled
  bool stalled_ = false, done_ = false;
  std::atomic<bool> never_{false};
  std::int64_t began_ns_ = 0;  // the first feed()
  std::int64_t serve_again_ns_ = 0, serve_pause_ns_ = 0;
  std::string unserved_;                             // guarded by mutex_
  std::unique_ptr<OwnPicture> whole_;                // of which tasks have their parts
  std::uint64_t opened_before_ = 0;                  // pictures before the source was opened anew
  std::uint64_t rounds_before_ = 0, number_ = 0;     // those, and of earlier rounds of --loop; the newest
  std::array<std::uint64_t, 256> number_of_{};       // by the how manyth submission
  std::array<std::uint64_t, 256> lane_number_of_{};  // the how manyth of its lane's it is; by the same
  SourceClock clock_;
  shm::LogLimit step_lines_;
  enum class Hand : std::uint8_t { none, frame, too_late };
  Hand hand_ = Hand::none;     // what feed_one() has had in hand
  std::int64_t alive_ns_ = 0;  // a live source: when it was last as it should be
  std::int64_t start_ns_ = 0;  // when the source's picture 0 is due
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
  std::atomic<std::int64_t> first_submit_ns_{0}, last_answer_ns_{0},
      last_picture_ns_{0};  // relaxed: figures for display, and read after the join
  std::atomic<std::uint64_t> pictures_{0}, time_steps_{0}, damaged_{0}, format_changes_{0};
  std::atomic<std::int64_t> too_late_since_ns_{0};
  shm::LogLimit format_lines_;
};

}  // namespace leat::tools
