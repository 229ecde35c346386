// What a feeder opens, loses and opens anew: its source, and the streams on the shared connection.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "leat/certainty_file.hpp"
#include "tools/leat/feed/feeder.h"

namespace leat::tools {
namespace {

constexpr std::uint32_t kDefaultDepth = 4;
constexpr std::int64_t kOpeningNs = 10'000'000'000;  // a live source that has not opened by then does not
constexpr std::int64_t kShortestWaitNs = 100'000'000, kLongestAbsenceNs = 1'000'000'000;  // leatd is asked again
constexpr std::size_t kNameBytes = 31;                                                    // that leatd keeps

std::string size_text(const PictureFormat& format) {
  return std::to_string(format.width) + "x" + std::to_string(format.height) + " " + name_of(format.format);
}

}  // namespace

Feeder::Feeder(FeederOptions options) : options_(std::move(options)) {
  lanes_.resize(std::max<std::size_t>(1, options_.tasks.size()));
  for (std::size_t i = 0; i < options_.tasks.size(); ++i) lanes_[i].part = options_.tasks[i];
  if (options_.connection != nullptr) return;
  own_connection_ = std::make_unique<Connection>(options_.socket, options_.name);
  options_.connection = own_connection_.get();
}

Feeder::~Feeder() {
  close_streams();
  annotator_.reset();  // what it still draws has names of a stream
}

Status Feeder::open() {
  if (const Status opened = open_source(never_); !opened.ok()) return opened;
  return open_streams();
}

// ---- the source ----

bool Feeder::give_up() {
  while (take_answer(0)) {
  }
  if (stop_->load(std::memory_order_relaxed)) return true;
  if (::leat_now_ns() < patience_ns_) return false;
  return stalled_ = true;
}

Status Feeder::open_source(const std::atomic<bool>& stop) {
  stop_ = &stop;
  stalled_ = false;
  patience_ns_ = options_.stall_ns > 0 ? ::leat_now_ns() + kOpeningNs : INT64_MAX;
  if (source_ != nullptr) opened_before_ += next_index_, rounds_before_ += next_index_;
  next_index_ = passed_ = 0;
  source_.reset();
  SourceOptions how = options_.source_options;
  how.give_up = [this] { return give_up(); };
  auto source = tools::open_source(options_.source, how);
  patience_ns_ = INT64_MAX;
  if (!source.ok())
    return Error{stalled_ ? "'" + shown_name(options_.source) + "' did not open within 10 s" : source.error()};
  source_ = std::move(*source);
  const PictureFormat& format = source_->format();
  liveness_ = Liveness(std::hash<std::string>{}(options_.name));
  clock_ = SourceClock({.live = format.live, .rate = options_.rate, .own_rate = format.rate});
  newcomer_ = true;
  served_until_ns_ = 0;
  every_one_ = !keeps_time() || format.codec != LEAT_CODEC_none ||
               (options_.overload_chosen && options_.overload == LEAT_OVERLOAD_never_drop);
  if (format.same_slots(served_format_)) {
    show_slots();
    return Done{};
  }
  close_streams();
  if (fed_ > 0) format_changes_.fetch_add(1, std::memory_order_relaxed);
  served_format_ = format;
  return prepare_lanes();
}

// Every slot is taken once, so that a source may register its memory with the kernel, and given back.
void Feeder::show_slots() {
  if (!served()) return;
  std::vector<Frame> slots;
  while (auto frame = lanes_.front().stream->acquire()) slots.push_back(std::move(*frame));
  std::vector<leat_frame> raw;
  for (const Frame& frame : slots) raw.push_back(frame.raw());
  source_->use_slots(raw);
}

// ---- the streams ----

Status Feeder::prepare_lanes() {
  if (lanes_.size() > 1) whole_ = std::make_unique<OwnPicture>(served_format_);
  for (Lane& lane : lanes_) {
    const Status prepared = prepare_lane(lane);
    if (prepared.ok()) continue;
    served_format_ = {};  // nothing is prepared: the next picture tries again
    return prepared;
  }
  return Done{};
}

Status Feeder::prepare_lane(Lane& lane) {
  const PictureFormat& whole = served_format_;
  if (options_.truth != nullptr && (options_.truth->width != whole.width || options_.truth->height != whole.height))
    return Error{"the ground truth is of " + std::to_string(options_.truth->width) + "x" +
                 std::to_string(options_.truth->height) + " pictures, '" + options_.source + "' of " +
                 std::to_string(whole.width) + "x" + std::to_string(whole.height)};
  if (!lane.part.within(whole))
    return Error{"the task '" + lane.part.name + "' is not within the picture of '" + shown_name(options_.source) +
                 "', which has " + std::to_string(whole.width) + "x" + std::to_string(whole.height) + " pixels"};
  lane.truth = options_.truth;
  if (options_.truth != nullptr && lanes_.size() > 1) {
    lane.truth_of_part = truth_of(*options_.truth, lane.part);
    lane.truth = &lane.truth_of_part;
  }
  if (options_.accuracy <= 0) return Done{};
  if (!Follower::takes(whole) || !keeps_time())
    return Error{"'" + shown_name(options_.source) +
                 "': --accuracy needs pictures that come in their own time; give --realtime or --rate"};
  auto tracker = scene::AnyTracker::make(options_.tracker);
  if (!tracker.ok()) return Error{tracker.error()};
  if (!options_.certainty.empty()) {
    const auto rule = read_certainty(options_.certainty, options_.tracker);
    if (!rule.ok()) return Error{rule.error()};
    tracker->set_rule(*rule);
  }
  auto follower = std::make_unique<Follower>(lane.part.of(whole), lane.truth, std::move(*tracker));
  if (lane.follower) follower->figures() = lane.follower->figures();
  lane.follower = std::move(follower);
  return Done{};
}

Status Feeder::follow_format() {
  const PictureFormat format = source_->format();
  if (format.same_slots(served_format_)) return Done{};
  drain();
  close_streams();
  serve_again_ns_ = serve_pause_ns_ = 0;
  const PictureFormat before = std::exchange(served_format_, format);
  if (fed_ > 0) {
    format_changes_.fetch_add(1, std::memory_order_relaxed);
    const std::string line = format_lines_.line(
        ::leat_now_ns(), "stream " + options_.name + ": its pictures changed from " + size_text(before) + " to " +
                             size_text(format) + "; it goes on with these");
    if (!line.empty() && options_.source_options.say) options_.source_options.say(line);
  }
  if (const Status prepared = prepare_lanes(); !prepared.ok()) return prepared;
  if (!options_.stays) return open_streams();
  if (!keeps_time())  // as its source waits, the picture at hand waits for leatd
    while (!serve_again() && !stop_->load(std::memory_order_relaxed)) (void)take_answer(kShortestWaitNs);
  return Done{};
}

Result<StreamOptions> Feeder::stream_options() const {
  const PictureFormat& format = source_->format();
  const double rate = options_.rate > 0 ? options_.rate : format.rate;
  const bool own_time = keeps_time();
  StreamOptions options;
  options.format = format.format;
  options.color_range = format.color().range;
  options.color_matrix = format.color().matrix;
  options.depth = options_.depth > 0 ? options_.depth : kDefaultDepth;
  options.overload = options_.overload_chosen ? options_.overload
                     : own_time               ? LEAT_OVERLOAD_latest
                                              : LEAT_OVERLOAD_fifo;
  options.priority = options_.priority;
  options.slo_ns = options_.slo_ns;
  options.period_ns = own_time && rate > 0 ? std::llround(1e9 / rate) : 0;
  if (format.codec != LEAT_CODEC_none) {
    options.memory = LEAT_SLOT_BITSTREAM;
    options.codec = format.codec;
  }
  options.waits_for_grants =
      own_time && format.codec == LEAT_CODEC_none && options.overload == LEAT_OVERLOAD_latest && options_.accuracy == 0
          ? 1
          : 0;
  options.sla_drop_ppm = static_cast<std::uint32_t>(std::lround(options_.accuracy * 1e6));
  if (options_.accuracy > 0 && options.period_ns == 0)
    return Error{"'" + shown_name(options_.source) +
                 "' does not say how many pictures a second it has; --accuracy needs --rate then"};
  return options;
}

Status Feeder::open_streams() {
  if (served()) return Done{};
  std::string application = options_.application;
  if (application.empty()) {
    auto only = options_.connection->only_application();
    if (!only.ok()) return Error{only.error()};
    application = std::move(*only);
  }
  auto options = stream_options();
  if (!options.ok()) return Error{options.error()};
  depth_ = options->depth;
  waits_for_grants_ = options->waits_for_grants != 0;
  for (Lane& lane : lanes_) {
    const Status opened =
        open_lane(lane, *options, lane.part.application.empty() ? application : lane.part.application);
    if (opened.ok()) continue;
    close_streams();
    return opened;
  }
  slo_ns_ = ::leat_stream_slo_ns(lanes_.front().stream->raw());
  show_slots();
  return open_annotator();
}

Status Feeder::open_lane(Lane& lane, StreamOptions options, const std::string& application) {
  const PictureFormat format = lane.part.of(served_format_);
  const std::string name = (options_.name + (lane.part.name.empty() ? "" : " " + lane.part.name)).substr(0, kNameBytes);
  options.name = name.c_str();
  options.application = application.c_str();
  options.width = format.width;
  options.height = format.height;
  if (lanes_.size() > 1) {
    options.task_group = options_.number + 1;
    options.task_weight = static_cast<std::uint32_t>(std::lround(1000 * lane.part.weight));
  }
  auto stream = options_.connection->open(options, inbox_);
  if (!stream.ok()) return Error{stream.error()};
  lane.stream = std::move(*stream);
  return options_.answers != nullptr ? open_answers(lane, application) : Done{};
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
  // Identities outlive a stream that is opened anew, unless its classes have other numbers now.
  if (lane.answers && lane.answers->classes() == options.classes) return Done{};
  if (options_.judge != nullptr && lane.truth != nullptr)
    options.identified = [judge = options_.judge, truth = lane.truth, key = &lane](std::uint64_t picture, auto found,
                                                                                   auto ids) {
      if (picture < truth->pictures.size()) judge->add(key, truth->pictures[picture], found, ids);
    };
  if (!lane.part.name.empty()) options.stream += " " + lane.part.name;
  auto answers = StreamAnswers::make(std::move(options), *options_.answers);
  if (!answers.ok()) return Error{answers.error()};
  answers->finish(lane.submitted);
  lane.answers.emplace(std::move(*answers));
  return Done{};
}

Status Feeder::open_annotator() {
  if (options_.annotate.empty() || annotator_ != nullptr) return Done{};
  // What keeps its own time may come more often than anybody looks; tracking is looked at picture by picture.
  const bool every = !keeps_time() || options_.accuracy > 0;
  const PictureFormat& format = source_->format();
  auto annotator = Annotator::open(options_.annotate, draw::sheet_of({format.width, format.height}).size,
                                   options_.rate > 0 ? options_.rate : format.rate, every ? 0 : kMaxAnnotated);
  if (!annotator.ok()) return Error{annotator.error()};
  annotator_ = std::move(*annotator);
  return Done{};
}

bool Feeder::stream_lost() const noexcept {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& l) { return l.stream != nullptr && l.stream->lost(); });
}

void Feeder::close_streams() {
  for (Lane& lane : lanes_) {
    if (lane.stream == nullptr) continue;
    lane.stream->detach();  // it may outlive us, in what is still to be drawn
    lane.stream.reset();
    if (lane.answers) lane.answers->finish(lane.submitted);
    const std::lock_guard lock(mutex_);
    lane.ledger.lose_in_flight();
  }
  in_flight_ = 0;
}

void Feeder::lose_streams() {
  while (take_answer(0)) {
  }
  close_streams();
  serve_again_ns_ = serve_pause_ns_ = 0;
}

bool Feeder::serve_again() {
  if (::leat_now_ns() < serve_again_ns_) return false;
  const Status opened = open_streams();
  serve_pause_ns_ = opened.ok() ? 0 : std::clamp(2 * serve_pause_ns_, kShortestWaitNs, kLongestAbsenceNs);
  serve_again_ns_ = ::leat_now_ns() + serve_pause_ns_;
  const std::lock_guard lock(mutex_);
  unserved_ = opened.ok() ? "" : opened.error();
  return opened.ok();
}

std::string Feeder::unserved() const {
  const std::lock_guard lock(mutex_);
  return unserved_;
}

Status Feeder::lost() const {
  return Error{"the connection of '" + options_.name + "' ended: leatd closed it, or ended; start leatd again"};
}

// ---- the end ----

void Feeder::rest(std::int64_t until_ns, const std::atomic<bool>& stop) {
  for (std::int64_t left; (left = until_ns - ::leat_now_ns()) > 0 && !stop.load(std::memory_order_relaxed);) {
    (void)take_answer(std::min<std::int64_t>(left, kLongestWaitNs));
    if (stream_lost()) lose_streams();
  }
}

Status Feeder::finish() {
  for (Lane& lane : lanes_)
    if (lane.answers) lane.answers->finish(lane.submitted);
  if (annotator_ == nullptr) return Done{};
  const auto finished = annotator_->finish();
  if (!finished.ok()) return Error{finished.error()};
  if (*finished > 0)
    std::fprintf(stderr,
                 "leat feed: %llu pictures were left out of '%s', since drawing could not keep up; a lower --rate "
                 "shows more\n",
                 static_cast<unsigned long long>(*finished), options_.annotate.c_str());
  return Done{};
}

}  // namespace leat::tools
