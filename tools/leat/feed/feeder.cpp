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

constexpr std::uint32_t kDefaultDepth = 4;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr int kYieldingNice = 5;  // at 10, beside other programs at work, no picture was decoded in time
constexpr std::int64_t kServed = 2'000 * kMillisecond;         // how long a stream's decoding comes before newcomers'
constexpr std::int64_t kDrainPatience = 3'000 * kMillisecond;  // beyond the SLO, without any answer

// A cookie carries what the answer must find again: which picture of the source, and the how manyth submission.
std::uint64_t cookie_of(std::uint32_t sequence, std::uint32_t picture) {
  return std::uint64_t{sequence} << 32 | picture;
}

}  // namespace

Status Feeder::open() {
  auto source = open_source(options_.source, options_.source_options);
  if (!source.ok()) return Error{source.error()};
  source_ = std::move(*source);
  const PictureFormat& format = source_->format();
  if (options_.truth != nullptr && (options_.truth->width != format.width || options_.truth->height != format.height)) {
    return Error{"the ground truth is of " + std::to_string(options_.truth->width) + "x" +
                 std::to_string(options_.truth->height) + " pictures, '" + options_.source + "' of " +
                 std::to_string(format.width) + "x" + std::to_string(format.height)};
  }
  auto client = Client::connect(options_.socket, options_.name);
  if (!client.ok()) return Error{client.error()};
  client_.emplace(std::move(*client));

  depth_ = options_.depth > 0 ? options_.depth : kDefaultDepth;
  liveness_ = Liveness(std::hash<std::string>{}(options_.name));
  pace_ = Pace(format.live ? 0 : options_.rate);
  const double rate = options_.rate > 0 ? options_.rate : format.rate;
  StreamOptions options;
  options.application = options_.application.c_str();
  options.format = format.format;
  options.width = format.width;
  options.height = format.height;
  options.depth = depth_;
  const bool own_time = keeps_time();
  options.overload = options_.overload_chosen ? options_.overload
                     : own_time               ? LEAT_OVERLOAD_latest
                                              : LEAT_OVERLOAD_fifo;
  options.priority = options_.priority;
  options.slo_ns = options_.slo_ns;
  options.period_ns = own_time && rate > 0 ? std::llround(1e9 / rate) : 0;
  waits_for_grants_ = own_time && options.overload == LEAT_OVERLOAD_latest && options_.accuracy == 0;
  options.waits_for_grants = waits_for_grants_ ? 1 : 0;
  options.sla_drop_ppm = static_cast<std::uint32_t>(std::lround(options_.accuracy * 1e6));
  if (options_.accuracy > 0 && (options.period_ns == 0 || !Follower::takes(format)))
    return Error{"'" + options_.source +
                 "': --accuracy needs pictures that come in their own time; give --realtime or --rate"};
  lanes_.resize(std::max<std::size_t>(1, options_.tasks.size()));
  for (std::size_t i = 0; i < options_.tasks.size(); ++i) lanes_[i].part = options_.tasks[i];
  if (lanes_.size() > 1) whole_ = std::make_unique<OwnPicture>(format);
  for (Lane& lane : lanes_)
    if (const Status opened = open_lane(lane, options); !opened.ok()) return opened;
  slo_ns_ = ::leat_stream_slo_ns(lanes_.front().stream->raw());
  every_one_ = !own_time || (options_.overload_chosen && options_.overload == LEAT_OVERLOAD_never_drop);

  // Every slot is taken once, so that a source may register its memory with the kernel, and given back.
  std::vector<Frame> slots;
  while (auto frame = lanes_.front().stream->acquire()) slots.push_back(std::move(*frame));
  std::vector<leat_frame> raw;
  for (const Frame& frame : slots) raw.push_back(frame.raw());
  source_->use_slots(raw);

  if (!options_.annotate.empty()) {
    // What keeps its own time may come more often than anybody looks; tracking is looked at picture by picture.
    const bool every = !own_time || options_.accuracy > 0;
    auto annotator = Annotator::open(options_.annotate, draw::sheet_of({format.width, format.height}).size, rate,
                                     every ? 0 : kMaxAnnotated);
    if (!annotator.ok()) return Error{annotator.error()};
    annotator_ = std::move(*annotator);
  }
  return Done{};
}

Status Feeder::open_lane(Lane& lane, StreamOptions options) {
  const PictureFormat& whole = source_->format();
  const PictureFormat format = lane.part.of(whole);
  if (!lane.part.within(whole))
    return Error{"the task '" + lane.part.name + "' is not within the picture of '" + options_.source +
                 "', which has " + std::to_string(whole.width) + "x" + std::to_string(whole.height) + " pixels"};
  lane.truth = options_.truth;
  if (options_.truth != nullptr && lanes_.size() > 1) {
    lane.truth_of_part = truth_of(*options_.truth, lane.part);
    lane.truth = &lane.truth_of_part;
  }
  if (options_.accuracy > 0) {
    auto tracker = scene::AnyTracker::make(options_.tracker);
    if (!tracker.ok()) return Error{tracker.error()};
    lane.follower = std::make_unique<Follower>(format, lane.truth, std::move(*tracker));
  }
  options.width = format.width;
  options.height = format.height;
  if (!lane.part.application.empty()) options.application = lane.part.application.c_str();
  if (lanes_.size() > 1) {
    options.task_group = 1;
    options.task_weight = static_cast<std::uint32_t>(std::lround(1000 * lane.part.weight));
  }
  auto stream = client_->open_stream(options);
  if (!stream.ok()) return Error{stream.error()};
  lane.stream.emplace(std::move(*stream));
  return options_.answers != nullptr ? open_answers(lane, options.application) : Done{};
}

Status Feeder::open_answers(Lane& lane, const std::string& application) {
  StreamAnswersOptions options{.stream = options_.name,
                               .application = application,
                               .tracks = options_.tracks,
                               .min_score = static_cast<float>(options_.min_score),
                               .classes = {},
                               .identified = {}};
  for (const std::string& name : options_.classes) {
    const auto id = class_id_of(lane.stream->raw(), name);
    if (!id)
      return Error{"--classes: '" + name + "' is no class of application '" + application +
                   "'; name one of its labels, or its number"};
    options.classes.push_back(*id);
  }
  if (options_.judge != nullptr && lane.truth != nullptr)
    options.identified = [judge = options_.judge, truth = lane.truth, key = lane.stream->raw()](std::uint64_t picture,
                                                                                                auto found, auto ids) {
      if (picture < truth->pictures.size()) judge->add(key, truth->pictures[picture], found, ids);
    };
  if (!lane.part.name.empty()) options.stream += " " + lane.part.name;
  auto answers = StreamAnswers::make(std::move(options), *options_.answers);
  if (!answers.ok()) return Error{answers.error()};
  lane.answers.emplace(std::move(*answers));
  return Done{};
}

std::string Feeder::describe() const {
  const PictureFormat& format = source_->format();
  char text[96];
  std::snprintf(text, sizeof text, ": %ux%u %s at %.1f/s", format.width, format.height, tools::name_of(format.format),
                options_.rate > 0 ? options_.rate : format.rate);
  return options_.source + text;
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
                   .task_weight = lanes_.size() > 1 ? lane.part.weight : 0});
  return out;
}

Status Feeder::lost() const {
  return Error{std::string("the connection of '") + options_.name + "' ended: " + ::leat_last_error()};
}

bool Feeder::take_answer(std::int64_t timeout_ns) {
  auto answer = client_->next_answer(std::chrono::nanoseconds(timeout_ns));
  if (!answer) return false;
  --in_flight_;
  const leat_answer& raw = answer->raw();
  const auto picture = static_cast<std::uint32_t>(raw.cookie);
  const auto of =
      std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return l.stream->raw() == raw.stream; });
  Lane& lane = of == lanes_.end() ? lanes_.front() : *of;
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
    if (seen && seen->stride <= 255) (void)::leat_observe(lane.stream->raw(), std::max(1u, seen->stride), seen->drop);
    if (seen && seen->far_stride > 0) (void)::leat_observe_far(lane.stream->raw(), seen->far_stride, seen->far_drop);
  }
  if (lane.answers) lane.answers->add(lane_number_of_[(raw.cookie >> 32) % lane_number_of_.size()], picture, raw);
  leat_frame frame;
  Annotator* const annotator = annotates();
  if (annotator != nullptr && !lane.follower && annotator->wants(options_.grid_place, raw.capture_ns) &&
      ::leat_answer_frame(&raw, &frame) == LEAT_ERROR_ok)
    annotator->add(options_.grid_place, raw.cookie >> 32,
                   shot_of(raw, frame, options_.grid != nullptr ? options_.name : ""));
  return true;
}

void Feeder::take_answers_until(std::int64_t until_ns, const std::atomic<bool>& stop) {
  for (;;) {
    const std::int64_t left = until_ns - ::leat_now_ns();
    if (left <= 0 || !client_->connected() || stop.load(std::memory_order_relaxed)) return;
    (void)take_answer(std::min(left, kLongestWait));
  }
}

// A slot to write into. wait: until one is free and fewer than `depth` requests are out; otherwise at once or none.
std::optional<Frame> Feeder::slot(bool wait, const std::atomic<bool>& stop) {
  while (take_answer(0)) {
  }
  while (client_->connected() && !stop.load(std::memory_order_relaxed)) {
    if (!wait || in_flight_ < depth_) {
      if (auto frame = lanes_.front().stream->acquire()) return frame;
    }
    if (!wait) break;
    (void)take_answer(kLongestWait);
  }
  return std::nullopt;
}

Result<std::optional<std::int64_t>> Feeder::next_picture() {
  const std::int64_t from_ns = ::leat_now_ns();
  auto time = source_->next();
  decode_ns_ += (::leat_now_ns() - from_ns - decode_ns_) / 8;
  if (time.ok() && time->has_value()) return time;
  if (passed_ > 0) skip(Skip::passed_over, std::exchange(passed_, 0));  // the source's end came before a key frame
  if (!time.ok() || !options_.loop || next_index_ == 0) return time;
  if (const Status rewound = source_->rewind(); !rewound.ok()) return Error{rewound.error()};
  pace_.again();
  rounds_before_ += next_index_;
  next_index_ = 0;
  return source_->next();
}

std::int64_t Feeder::room_ns(std::int64_t now_ns) const noexcept {
  return std::max(slo_ns_ - answer_time_.usual_ns(now_ns), slo_ns_ / 4);
}

Result<bool> Feeder::jump(std::int64_t start_ns) {
  const std::int64_t now_ns = ::leat_now_ns();
  const auto passed = source_->jump(pace_.picture_time(now_ns - start_ns - room_ns(now_ns) / 4));
  if (!passed.ok()) return Error{passed.error()};
  if (passed->pictures == 0) return false;
  passed_ += passed->pictures;
  next_index_ += passed->pictures;
  pace_.passed(passed->last_ns, next_index_ - 1);
  return true;
}

Result<std::optional<std::int64_t>> Feeder::decode_next(std::int64_t start_ns) {
  for (bool jumped = true;;) {
    source_->await();
    if (every_one_ || (source_->format().live && fed_ == 0)) return next_picture();
    const std::int64_t due_ns = start_ns + pace_.next_due();
    const bool served = ::leat_now_ns() < served_until_ns_;
    std::optional<DecodeTurns::Turn> turn;
    if (options_.turns != nullptr) turn.emplace(*options_.turns, served, due_ns);
    const std::int64_t now_ns = ::leat_now_ns();
    const CatchUp wanted = liveness_.decide(now_ns - due_ns, room_ns(now_ns));
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
    const auto passed = jump(start_ns);
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

Result<Feeder::Step> Feeder::feed_one(std::int64_t start_ns, const std::atomic<bool>& stop) {
  auto time = decode_next(start_ns);
  if (!time.ok()) return Error{time.error()};
  if (!time->has_value()) return Step::ended;
  count_left_out();
  const auto picture = static_cast<std::uint32_t>(source_->index());
  const bool timed = keeps_time();
  if (source_->format().live) pace_.arrived(**time, ::leat_now_ns() - start_ns);
  std::int64_t capture_ns = 0;
  if (timed) {
    capture_ns = start_ns + pace_.due(**time, source_->index());
    if (options_.run_ns > 0 && capture_ns >= start_ns + options_.run_ns) return Step::ended;
    take_answers_until(capture_ns, stop);
    if (stop.load(std::memory_order_relaxed)) return Step::ended;
    if (follows()) return follow_one(capture_ns, picture);
    if (hopeless(capture_ns, ::leat_now_ns())) {
      skip(Skip::hopeless);
      return Step::skipped;
    }
    if (!await_turn(capture_ns, start_ns, stop)) {
      if (!client_->connected()) return Error{lost().error()};
      skip(Skip::not_wanted);
      return Step::skipped;
    }
  }
  auto frame = slot(!timed, stop);
  if (!client_->connected()) return Error{lost().error()};
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

Result<Feeder::Step> Feeder::follow_one(std::int64_t capture_ns, std::uint32_t picture) {
  const leat_frame& whole = whole_ ? whole_->frame : lanes_.front().follower->picture();
  auto written = source_->write(whole);
  if (!written.ok()) return Error{written.error()};
  if (!*written) return Step::ended;
  number_ = rounds_before_ + source_->index() + 1;
  while (take_answer(0)) {
  }
  if (!client_->connected()) return Error{lost().error()};
  for (Lane& lane : lanes_) {
    if (whole_) copy_part(whole, lane.part, lane.follower->picture());
    (void)lane.follower->show(number_, picture);
  }
  if (Annotator* const annotator = annotates();
      annotator != nullptr && annotator->wants(options_.grid_place, capture_ns)) {
    std::vector<draw::Tracked> tracked;
    for (const Lane& lane : lanes_) tracked.push_back(lane.follower->tracked(lane.part.x, lane.part.y));
    annotator->add(options_.grid_place, number_ - 1, shot_of(whole, std::move(tracked)));
  }
  for (Lane& lane : lanes_) {
    const auto step = follow_lane(lane, capture_ns, picture);
    if (!step.ok() || lanes_.size() == 1) return step;
  }
  return Step::fed;
}

Result<Feeder::Step> Feeder::follow_lane(Lane& lane, std::int64_t capture_ns, std::uint32_t picture) {
  const bool wanted = ::leat_should_submit(lane.stream->raw(), capture_ns) != 0;
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
  lane.follower->copy_to(frame->raw());
  return submit(lane, *frame, capture_ns, picture, false);
}

Result<Feeder::Step> Feeder::submit(Lane& lane, Frame& frame, std::int64_t capture_ns, std::uint32_t picture,
                                    bool timed) {
  const leat_submit_options submit{.capture_ns = capture_ns,
                                   .deadline_ns = 0,
                                   .cookie = cookie_of(static_cast<std::uint32_t>(fed_), picture),
                                   .key = 0,
                                   .items = 0,
                                   .flags = 0,
                                   .reserved = 0};
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
  if (late) return Step::skipped;
  const std::int64_t submitted_ns = submitted_ns_[fed_ % submitted_ns_.size()] = ::leat_now_ns();
  if (frame.submit(submit) != LEAT_ERROR_ok)
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
  while (in_flight_ > 0 && client_->connected() && ::leat_now_ns() < patience_ns) {
    if (take_answer(kLongestWait)) patience_ns = ::leat_now_ns() + kDrainPatience;
  }
}

Status Feeder::run(std::int64_t start_ns, const std::atomic<bool>& stop) {
  Status status = Done{};
  if (!options_.cores.empty()) (void)pin_thread(options_.cores);
  if (options_.yields) (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kYieldingNice);
  while (!stop.load(std::memory_order_relaxed)) {
    const std::uint64_t pictures = follows() ? lanes_.front().follower->figures().frames : fed_;
    if (options_.max_pictures > 0 && pictures >= options_.max_pictures) break;
    if (options_.run_ns > 0 && ::leat_now_ns() >= start_ns + options_.run_ns) break;
    const auto step = feed_one(start_ns, stop);
    if (!step.ok()) status = Error{step.error()};
    if (!step.ok() || *step == Step::ended) break;
  }
  drain();
  for (Lane& lane : lanes_)
    if (lane.answers) lane.answers->finish();
  if (annotator_) {
    const auto finished = annotator_->finish();
    if (status.ok() && !finished.ok()) status = Error{finished.error()};
    if (finished.ok() && *finished > 0)
      std::fprintf(stderr,
                   "leat feed: %llu pictures were left out of '%s', since drawing could not keep up; a lower --rate "
                   "shows more\n",
                   static_cast<unsigned long long>(*finished), options_.annotate.c_str());
  }
  if (status.ok() && !client_->connected() && in_flight_ > 0) status = lost();
  return status;
}

}  // namespace leat::tools
