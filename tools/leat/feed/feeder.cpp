#include "tools/leat/feed/feeder.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "tools/base/cores/cores.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr int kYieldingNice = 5;  // at 10, beside other programs at work, no picture was decoded in time
constexpr std::int64_t kServed = 2'000 * kMillisecond;         // how long a stream's decoding comes before newcomers'
constexpr std::int64_t kDrainPatience = 3'000 * kMillisecond;  // beyond the SLO, without any answer

// A cookie carries what the answer must find again: which picture of the source, and the how manyth submission.
std::uint64_t cookie_of(std::uint32_t sequence, std::uint32_t picture) {
  return std::uint64_t{sequence} << 32 | picture;
}

}  // namespace

std::string Feeder::describe() const {
  const PictureFormat& format = source_->format();
  char text[96];
  std::snprintf(text, sizeof text, ": %ux%u %s at %.1f/s", format.width, format.height, tools::name_of(format.format),
                options_.rate > 0 ? options_.rate : format.rate);
  return shown_name(options_.source) + text;
}

std::vector<NamedLedger> Feeder::figures() const {
  const std::int64_t first = first_submit_ns(), last = last_answer_ns();
  const std::lock_guard lock(mutex_);
  std::vector<NamedLedger> out;
  for (const Lane& lane : lanes_)
    out.push_back({.name = options_.name + (lane.part.name.empty() ? "" : " " + lane.part.name),
                   .ledger = lane.ledger,
                   .followed = lane.followed,
                   .seconds = first > 0 && last > first ? static_cast<double>(last - first) / 1e9 : 0,
                   .task_weight = lanes_.size() > 1 ? lane.part.weight : 0,
                   .damaged = out.empty() ? damaged() : 0,  // tasks share pictures
                   .format_changes = out.empty() ? format_changes() : 0});
  return out;
}

bool Feeder::take_answer(std::int64_t timeout_ns) {
  auto answer = inbox_.take(timeout_ns);
  if (!answer) return false;
  const leat_answer& raw = answer->raw();
  const auto picture = static_cast<std::uint32_t>(raw.cookie);
  const auto of = std::find_if(lanes_.begin(), lanes_.end(),
                               [&](const Lane& l) { return l.stream != nullptr && l.stream->raw() == raw.stream; });
  if (of == lanes_.end()) return true;
  Lane& lane = *of;
  --in_flight_;
  {
    const std::lock_guard lock(mutex_);
    lane.ledger.answered(answer->outcome(), answer->reason(), raw.answered_ns - raw.capture_ns);
  }
  last_answer_ns_.store(raw.answered_ns, std::memory_order_relaxed);
  if (answer->outcome() == Outcome::completed || answer->outcome() == Outcome::late)
    answer_time_.add(raw.answered_ns, raw.answered_ns - submitted_ns_[(raw.cookie >> 32) % submitted_ns_.size()]);
  if (options_.judge != nullptr && raw.result != nullptr && picture < lane.truth->pictures.size())
    options_.judge->add(lane.truth->pictures[picture], *raw.result);
  if (lane.follower && raw.result != nullptr) {
    const auto seen = lane.follower->answered(number_of_[(raw.cookie >> 32) % number_of_.size()], picture, raw);
    if (seen && seen->stride <= 255) lane.stream->observe(std::max(1u, seen->stride), seen->drop, seen->expected);
    if (seen && seen->far_stride > 0) lane.stream->observe_far(seen->far_stride, seen->far_drop);
  }
  if (lane.answers) lane.answers->add(lane_number_of_[(raw.cookie >> 32) % lane_number_of_.size()], picture, raw);
  leat_frame frame;
  Annotator* const annotator = annotates();
  if (annotator != nullptr && !lane.follower && annotator->wants(options_.grid_place, raw.capture_ns) &&
      ::leat_answer_frame(&raw, &frame) == LEAT_ERROR_ok) {
    Shot shot = shot_of(raw, frame, options_.grid != nullptr ? options_.name : "");
    shot.draw = [named = lane.stream, draw = std::move(shot.draw)](std::optional<draw::Size> tile) {
      return draw(tile);
    };
    annotator->add(options_.grid_place, raw.cookie >> 32, std::move(shot));
  }
  return true;
}

void Feeder::take_answers_until(std::int64_t until_ns, const std::atomic<bool>& stop) {
  for (;;) {
    const std::int64_t left = until_ns - ::leat_now_ns();
    if (left <= 0 || stop.load(std::memory_order_relaxed)) return;
    (void)take_answer(std::min(left, kLongestWaitNs));
  }
}

// A slot to write into. wait: until one is free and fewer than `depth` requests are out; otherwise at once or none.
std::optional<Frame> Feeder::slot(bool wait, const std::atomic<bool>& stop) {
  while (take_answer(0)) {
  }
  while (!stream_lost() && !stop.load(std::memory_order_relaxed)) {
    if (!wait || in_flight_ < depth_) {
      if (auto frame = lanes_.front().stream->acquire()) return frame;
    }
    if (!wait) break;
    (void)take_answer(kLongestWaitNs);
  }
  return std::nullopt;
}

Result<std::optional<std::int64_t>> Feeder::next_picture() {
  const std::int64_t from_ns = ::leat_now_ns();
  auto time = source_->next();
  decode_ns_ += (::leat_now_ns() - from_ns - decode_ns_) / 8;
  if (time.ok() && time->has_value()) return time;
  if (passed_ > 0) skip(Skip::passed_over, std::exchange(passed_, 0));  // the source's end came before a key frame
  // What a URL names cannot always be rewound, and a server says so by what it then sends: it is opened anew.
  if (!time.ok() || !options_.loop || next_index_ == 0 || may_come_back(options_.source)) return time;
  if (const Status rewound = source_->rewind(); !rewound.ok()) return Error{rewound.error()};
  clock_.again();
  rounds_before_ += next_index_;
  next_index_ = 0;
  return source_->next();
}

std::int64_t Feeder::room_ns(std::int64_t now_ns) const noexcept {
  return std::max(slo_ns_ - answer_time_.usual_ns(now_ns), slo_ns_ / 4);
}

std::int64_t Feeder::jump_time(std::int64_t now_ns) const noexcept {
  return clock_.source_time(now_ns - start_ns_ - room_ns(now_ns) / 4);
}

Result<bool> Feeder::jump() {
  const auto passed = source_->jump(jump_time(::leat_now_ns()));
  if (!passed.ok()) return Error{passed.error()};
  if (passed->pictures == 0) return false;
  passed_ += passed->pictures;
  next_index_ += passed->pictures;
  clock_.passed(passed->last_ns, next_index_ - 1, arrival());
  return true;
}

FrameArrival Feeder::arrival() const {
  const FrameArrival arrival = source_->arrival();
  return {arrival.at_ns - start_ns_, arrival.waited_ns};
}

void Feeder::tell_step() {
  const auto step = clock_.take_step();
  if (!step) return;
  time_steps_.fetch_add(1, std::memory_order_relaxed);
  const std::string line = step_lines_.line(::leat_now_ns(), options_.name + ": " + text_of(*step));
  if (!line.empty() && options_.source_options.say) options_.source_options.say(line);
}

// A source whose every frame is too old when it comes is as good as none, unless it is this process that is slow.
void Feeder::count_life() {
  const std::int64_t now_ns = ::leat_now_ns();
  const Hand hand = std::exchange(hand_, Hand::none);
  if (hand == Hand::none) return;
  if (hand == Hand::frame || !arrival().waited()) alive_ns_ = now_ns;
  if (hand == Hand::too_late) {
    std::int64_t since_ns = 0;
    (void)too_late_since_ns_.compare_exchange_strong(since_ns, now_ns, std::memory_order_relaxed);
    return;
  }
  too_late_since_ns_.store(0, std::memory_order_relaxed);
  pictures_.fetch_add(1, std::memory_order_relaxed);
  last_picture_ns_.store(now_ns, std::memory_order_relaxed);
}

Result<std::optional<std::int64_t>> Feeder::decode_next() {
  for (bool jumped = true;;) {
    source_->await();
    if (every_one_ || (source_->format().live && fed_ == 0)) return next_picture();
    // What has just come could not be decoded before.
    const FrameArrival came = source_->arrival();
    const std::int64_t due_ns = std::max(start_ns_ + clock_.next_due(), came.waited() ? came.at_ns : INT64_MIN);
    const bool served = ::leat_now_ns() < served_until_ns_;
    std::optional<DecodeTurns::Turn> turn;
    if (options_.turns != nullptr) turn.emplace(*options_.turns, served, due_ns);
    const std::int64_t now_ns = ::leat_now_ns();
    const CatchUp wanted = liveness_.decide(now_ns - due_ns, room_ns(now_ns), source_->jump_ends(jump_time(now_ns)));
    source_->thin_out(wanted == CatchUp::thin);
    if (wanted != CatchUp::jump || !jumped) {
      auto picture = next_picture();
      if (newcomer_) served_until_ns_ = now_ns + kServed;
      newcomer_ = false;
      return picture;
    }
    turn.reset();
    served_until_ns_ = 0;
    newcomer_ = true;
    const auto passed = jump();
    if (!passed.ok()) return Error{passed.error()};
    jumped = *passed;
  }
}

// What the source left out before the picture it has just made ready.
void Feeder::count_left_out() {
  const std::uint64_t index = source_->index(), expected = next_index_ - passed_;
  const std::uint64_t left_out = index > expected ? index - expected : 0;
  if (left_out > 0) skip(passed_ > 0 ? Skip::passed_over : Skip::unreferenced, left_out);
  passed_ = 0;
  next_index_ = index + 1;
}

bool Feeder::hopeless(std::int64_t capture_ns, std::int64_t now_ns) const {
  const std::int64_t min_ns = std::max(slo_ns_ / 64, answer_time_.min_ns(now_ns));  // sending takes time too
  return !every_one_ && now_ns + min_ns >= capture_ns + slo_ns_;
}

void Feeder::skip(Lane& lane, Skip why, std::uint64_t pictures) {
  const std::lock_guard lock(mutex_);
  lane.ledger.skipped(why, pictures);
}

Result<Feeder::Step> Feeder::feed_one(const std::atomic<bool>& stop) {
  const bool timed = keeps_time();
  if (options_.stays && stream_lost()) lose_streams();
  const bool ends = options_.stays && served() && lanes_.front().stream->ends();
  if (!timed && (ends || (!served() && !serve_again()))) {
    (void)take_answer(kLongestWaitNs);  // the source waits too
    return Step::skipped;
  }
  if (source_->format().live && options_.stall_ns > 0) patience_ns_ = alive_ns_ + options_.stall_ns;
  auto time = decode_next();
  if (!time.ok()) return stop.load(std::memory_order_relaxed) ? Result<Step>(Step::ended) : Error{time.error()};
  if (!time->has_value()) return Step::ended;
  count_left_out();
  hand_ = Hand::frame;
  if (source_->damaged()) damaged_.fetch_add(1, std::memory_order_relaxed);
  if (const Status followed = follow_format(); !followed.ok()) return Error{followed.error()};
  const auto picture = static_cast<std::uint32_t>(opened_before_ + source_->index());
  std::int64_t capture_ns = 0;
  if (timed) {
    capture_ns = start_ns_ + clock_.due(**time, source_->index(), arrival());
    tell_step();
    done_ = options_.run_ns > 0 && capture_ns >= began_ns_ + options_.run_ns;
    if (done_) return Step::ended;
    take_answers_until(capture_ns, stop);
    if (stop.load(std::memory_order_relaxed)) return Step::ended;
    if (ends) return without_daemon();
    if (!served() && !serve_again()) {
      skip(Skip::no_daemon);
      return Step::skipped;
    }
    if (leaves_out_damaged()) return Step::skipped;
    if (follows()) return follow_one(capture_ns, picture);
    if (hopeless(capture_ns, ::leat_now_ns())) {
      hand_ = Hand::too_late;
      skip(Skip::hopeless);
      return Step::skipped;
    }
    if (!await_turn(capture_ns, stop)) {
      if (stream_lost()) return without_daemon();
      skip(Skip::not_wanted);
      return Step::skipped;
    }
  }
  if (!timed && leaves_out_damaged()) return Step::skipped;
  auto frame = slot(!timed || source_->format().codec != LEAT_CODEC_none, stop);  // no access unit is left out
  if (stream_lost()) return without_daemon();
  if (!frame && stop.load(std::memory_order_relaxed)) return Step::ended;
  if (!frame) {
    skip(Skip::no_slot);
    return Step::skipped;
  }
  if (!timed) capture_ns = ::leat_now_ns();
  auto written = source_->write(frame->raw());
  if (!written.ok()) return Error{written.error()};
  if (!*written) return Step::ended;
  return submit(lanes_.front(), *frame, capture_ns, picture, timed);
}

// The picture at hand, where damaged ones are not wanted. Decoders of access units need every one.
bool Feeder::leaves_out_damaged() {
  if (options_.damaged != DamagedPictures::drop || !source_->damaged() || source_->format().codec != LEAT_CODEC_none)
    return false;
  skip(Skip::damaged);
  return true;
}

// The picture in hand was for a leatd that has just gone, or is about to.
Result<Feeder::Step> Feeder::without_daemon() {
  if (!options_.stays) return Error{lost().error()};
  skip(Skip::no_daemon);
  return Step::skipped;
}

Result<Feeder::Step> Feeder::follow_one(std::int64_t capture_ns, std::uint32_t picture) {
  const leat_frame& whole = whole_ ? whole_->frame : lanes_.front().follower->picture();
  auto written = source_->write(whole);
  if (!written.ok()) return Error{written.error()};
  if (!*written) return Step::ended;
  number_ = rounds_before_ + source_->index() + 1;
  while (take_answer(0)) {
  }
  if (stream_lost()) return without_daemon();
  for (Lane& lane : lanes_) {
    if (whole_) copy_part(whole, lane.part, lane.follower->picture());
    (void)lane.follower->show(number_, picture);
  }
  if (Annotator* const annotator = annotates();
      annotator != nullptr && annotator->wants(options_.grid_place, capture_ns)) {
    std::vector<draw::Tracked> tracked;
    for (const Lane& lane : lanes_) tracked.push_back(lane.follower->tracked(lane.part.x, lane.part.y));
    leat_frame seen = whole;  // colors may change from picture to picture
    seen.color_range = source_->format().color().range;
    seen.color_matrix = source_->format().color().matrix;
    annotator->add(options_.grid_place, number_ - 1, shot_of(seen, std::move(tracked)));
  }
  for (Lane& lane : lanes_) {
    const auto step = follow_lane(lane, capture_ns, picture);
    if (!step.ok() || lanes_.size() == 1) return step;
  }
  return Step::fed;
}

Result<Feeder::Step> Feeder::follow_lane(Lane& lane, std::int64_t capture_ns, std::uint32_t picture) {
  const bool wanted = ::leat_should_submit_expecting(lane.stream->raw(), capture_ns, lane.follower->expected()) != 0;
  (void)::leat_schedule_of(lane.stream->raw(), &lane.follower->figures().schedule);
  {
    const std::lock_guard lock(mutex_);
    lane.followed = lane.follower->figures();
  }
  if (!wanted) return Step::fed;
  auto frame = lane.stream->acquire();
  if (!frame) {
    skip(lane, Skip::no_slot);
    return Step::skipped;
  }
  copy_picture(lane.follower->picture(), frame->raw());
  return submit(lane, *frame, capture_ns, picture, false);
}

Result<Feeder::Step> Feeder::submit(Lane& lane, Frame& frame, std::int64_t capture_ns, std::uint32_t picture,
                                    bool timed) {
  const shm::Color color = source_->format().color();
  const leat_submit_options submit{
      .capture_ns = capture_ns,
      .deadline_ns = 0,
      .cookie = cookie_of(static_cast<std::uint32_t>(fed_), picture),
      .key = 0,
      .items = 0,
      .flags = source_->damaged() && options_.damaged == DamagedPictures::mark ? LEAT_SUBMIT_DAMAGED : 0,
      .bytes = source_->unit_bytes(),
      .color_range = color.range,
      .color_matrix = color.matrix};
  number_of_[fed_ % number_of_.size()] = number_;
  lane_number_of_[fed_ % lane_number_of_.size()] = lane.submitted;
  bool late = false;
  {
    // Counted before it can be answered. Looked at under the lock, for which this thread may have had to wait.
    const std::lock_guard lock(mutex_);
    late = timed && hopeless(capture_ns, ::leat_now_ns());  // writing took long
    if (late) {
      lane.ledger.skipped(Skip::hopeless, 1);
    } else {
      lane.ledger.submitted();
    }
  }
  if (late) {
    hand_ = Hand::too_late;
    return Step::skipped;
  }
  const std::int64_t submitted_ns = submitted_ns_[fed_ % submitted_ns_.size()] = ::leat_now_ns();
  const leat_error error = lane.stream->submit(frame, submit);
  if (error == LEAT_ERROR_disconnected && options_.stays) return Step::skipped;  // it counts as unanswered
  if (error != LEAT_ERROR_ok)
    return Error{std::string("'") + options_.name + "': a frame was not taken: " + ::leat_last_error()};
  if (submitted_ns >= capture_ns + slo_ns_) {
    const std::lock_guard lock(mutex_);
    lane.ledger.past_deadline();
  }
  ++lane.submitted;
  if (fed_++ == 0) first_submit_ns_.store(capture_ns, std::memory_order_relaxed);
  ++in_flight_;
  return Step::fed;
}

void Feeder::drain() {
  std::int64_t patience_ns = ::leat_now_ns() + slo_ns_ + kDrainPatience;
  while (in_flight_ > 0 && !stream_lost() && ::leat_now_ns() < patience_ns) {
    if (take_answer(kLongestWaitNs)) patience_ns = ::leat_now_ns() + kDrainPatience;
  }
  while (take_answer(0)) {  // what came before leatd went
  }
}

Status Feeder::feed(std::int64_t start_ns, const std::atomic<bool>& stop) {
  Status status = Done{};
  stop_ = &stop;
  start_ns_ = start_ns;
  begin(start_ns);
  alive_ns_ = ::leat_now_ns();
  too_late_since_ns_.store(0, std::memory_order_relaxed);
  if (!options_.cores.empty()) (void)pin_thread(options_.cores);
  if (options_.yields) (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kYieldingNice);
  while (!stop.load(std::memory_order_relaxed)) {
    const std::uint64_t pictures = follows() ? lanes_.front().follower->figures().frames : fed_;
    done_ = done_ || (options_.max_pictures > 0 && pictures >= options_.max_pictures);
    if (done()) break;
    const auto step = feed_one(stop);
    count_life();
    if (!step.ok())
      status = Error{stalled_ ? "'" + shown_name(options_.source) + "' gave no picture " +
                                    (too_late_since_ns() != 0 ? "in time for " : "for ") +
                                    std::to_string(options_.stall_ns / 1'000'000'000) + " s"
                              : step.error()};
    if (!step.ok() || *step == Step::ended) break;
  }
  patience_ns_ = INT64_MAX;
  drain();
  if (status.ok() && !options_.stays && in_flight_ > 0 && stream_lost()) status = lost();
  return status;
}

Status Feeder::run(std::int64_t start_ns, const std::atomic<bool>& stop) {
  const Status fed = feed(start_ns, stop);
  const Status finished = finish();
  return fed.ok() ? finished : fed;
}

}  // namespace leat::tools
