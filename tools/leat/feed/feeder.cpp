#include "tools/leat/feed/feeder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

namespace leat::tools {
namespace {

constexpr std::uint32_t kDefaultDepth = 4;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kLongestWait = 50 * kMillisecond;     // so that a stop is seen
constexpr std::int64_t kTooFarBehind = 500 * kMillisecond;   // a source slower than real time leaves pictures out, as a camera would
constexpr std::int64_t kDrainPatience = 3'000 * kMillisecond;  // beyond the SLO, without any answer

// A cookie carries what the answer must find again: which picture of the source, and the how manyth submission.
std::uint64_t cookie_of(std::uint32_t sequence, std::uint32_t picture) { return std::uint64_t{sequence} << 32 | picture; }

}  // namespace

std::int64_t Pace::due(std::int64_t picture_ns) noexcept {
  if (period_ns_ > 0) return std::llround(static_cast<double>(count_++) * period_ns_);
  if (picture_ns > last_ && count_ > 0) step_ = picture_ns - last_;
  ++count_;
  last_ = picture_ns;
  return base_ + picture_ns;
}

void Pace::again() noexcept {
  if (period_ns_ > 0) return;
  base_ += last_ + step_;
  last_ = 0;
  count_ = 0;
}

Status Feeder::open() {
  auto source = open_source(options_.source, options_.source_options);
  if (!source.ok()) return Error{source.error()};
  source_ = std::move(*source);
  const PictureFormat& format = source_->format();
  if (options_.truth != nullptr && (options_.truth->width != format.width || options_.truth->height != format.height)) {
    return Error{"the ground truth is of " + std::to_string(options_.truth->width) + "x" + std::to_string(options_.truth->height) + " pictures, '" + options_.source + "' of " +
                 std::to_string(format.width) + "x" + std::to_string(format.height)};
  }
  auto client = Client::connect(options_.socket, options_.name);
  if (!client.ok()) return Error{client.error()};
  client_.emplace(std::move(*client));

  depth_ = options_.depth > 0 ? options_.depth : kDefaultDepth;
  pace_ = Pace(options_.rate);
  const double rate = options_.rate > 0 ? options_.rate : format.rate;
  StreamOptions options;
  options.application = options_.application.c_str();
  options.format = format.format;
  options.width = format.width;
  options.height = format.height;
  options.depth = depth_;
  const bool own_time = options_.realtime || options_.rate > 0 || format.live;
  options.overload = options_.overload_chosen ? options_.overload : own_time ? LEAT_OVERLOAD_latest : LEAT_OVERLOAD_fifo;
  options.priority = options_.priority;
  options.slo_ns = options_.slo_ns;
  options.period_ns = own_time && rate > 0 ? std::llround(1e9 / rate) : 0;
  auto stream = client_->open_stream(options);
  if (!stream.ok()) return Error{stream.error()};
  stream_.emplace(std::move(*stream));

  // Every slot is taken once, so that a source may register its memory with the kernel, and given back.
  std::vector<Frame> slots;
  while (auto frame = stream_->acquire()) slots.push_back(std::move(*frame));
  std::vector<leat_frame> raw;
  for (const Frame& frame : slots) raw.push_back(frame.raw());
  source_->use_slots(raw);

  if (!options_.annotate.empty()) {
    auto annotator = Annotator::open(options_.annotate, format.width, format.height, rate);
    if (!annotator.ok()) return Error{annotator.error()};
    annotator_ = std::move(*annotator);
  }
  return Done{};
}

std::string Feeder::describe() const {
  const PictureFormat& format = source_->format();
  char text[96];
  std::snprintf(text, sizeof text, ": %ux%u %s at %.1f/s", format.width, format.height, tools::name_of(format.format), options_.rate > 0 ? options_.rate : format.rate);
  return options_.source + text;
}

NamedLedger Feeder::figures() const {
  const std::int64_t first = first_submit_ns(), last = last_answer_ns();
  const std::lock_guard lock(mutex_);
  return {.name = options_.name, .ledger = ledger_, .seconds = first > 0 && last > first ? static_cast<double>(last - first) / 1e9 : 0};
}

Status Feeder::lost() const { return Error{std::string("the connection of '") + options_.name + "' ended: " + ::leat_last_error()}; }

bool Feeder::take_answer(std::int64_t timeout_ns) {
  auto answer = client_->next_answer(std::chrono::nanoseconds(timeout_ns));
  if (!answer) return false;
  --in_flight_;
  const leat_answer& raw = answer->raw();
  const auto picture = static_cast<std::uint32_t>(raw.cookie);
  {
    const std::lock_guard lock(mutex_);
    ledger_.answered(answer->outcome(), answer->reason(), raw.answered_ns - raw.capture_ns);
  }
  last_answer_ns_.store(raw.answered_ns, std::memory_order_relaxed);
  if (options_.judge != nullptr && raw.result != nullptr && picture < options_.truth->pictures.size()) options_.judge->add(options_.truth->pictures[picture], *raw.result);
  leat_frame frame;
  if (annotator_ && ::leat_answer_frame(&raw, &frame) == LEAT_ERROR_ok) {
    Canvas canvas = canvas_of(frame);
    draw_answer(canvas, raw);
    annotator_->add(raw.cookie >> 32, std::move(canvas));
  }
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
      if (auto frame = stream_->acquire()) return frame;
    }
    if (!wait) break;
    (void)take_answer(kLongestWait);
  }
  return std::nullopt;
}

Result<std::optional<std::int64_t>> Feeder::next_picture() {
  auto time = source_->next();
  if (!time.ok() || time->has_value() || !options_.loop || picture_ == 0) return time;
  if (const Status rewound = source_->rewind(); !rewound.ok()) return Error{rewound.error()};
  pace_.again();
  picture_ = 0;
  return source_->next();
}

Result<Feeder::Step> Feeder::feed_one(std::int64_t start_ns, const std::atomic<bool>& stop) {
  auto time = next_picture();
  if (!time.ok()) return Error{time.error()};
  if (!time->has_value()) return Step::ended;
  const std::uint32_t picture = picture_++;
  const bool live = source_->format().live;
  const bool paced = (options_.realtime || options_.rate > 0) && !live;
  std::int64_t capture_ns = ::leat_now_ns();
  if (paced) {
    const std::int64_t due_ns = start_ns + pace_.due(**time);
    if (options_.run_ns > 0 && due_ns >= start_ns + options_.run_ns) return Step::ended;
    take_answers_until(due_ns, stop);
    if (stop.load(std::memory_order_relaxed)) return Step::ended;
    capture_ns = due_ns;
  }
  const bool behind = paced && ::leat_now_ns() - capture_ns > kTooFarBehind;
  auto frame = behind ? std::nullopt : slot(!paced && !live, stop);
  if (!client_->connected()) return Error{lost().error()};
  if (!frame && stop.load(std::memory_order_relaxed)) return Step::ended;
  if (!frame) {
    const std::lock_guard lock(mutex_);
    ledger_.skipped();
    return Step::skipped;
  }
  if (!paced) capture_ns = ::leat_now_ns();
  auto written = source_->write(frame->raw());
  if (!written.ok()) return Error{written.error()};
  if (!*written) return Step::ended;
  const leat_submit_options submit{.capture_ns = capture_ns, .deadline_ns = 0, .cookie = cookie_of(static_cast<std::uint32_t>(fed_), picture), .key = 0, .items = 0, .flags = 0, .reserved = 0};
  {
    // Counted before it can be answered.
    const std::lock_guard lock(mutex_);
    ledger_.submitted();
  }
  if (frame->submit(submit) != LEAT_ERROR_ok) return Error{std::string("'") + options_.name + "': a frame was not taken: " + ::leat_last_error()};
  if (fed_++ == 0) first_submit_ns_.store(capture_ns, std::memory_order_relaxed);
  ++in_flight_;
  return Step::fed;
}

void Feeder::drain() {
  std::int64_t patience_ns = ::leat_now_ns() + ::leat_stream_slo_ns(stream_->raw()) + kDrainPatience;
  while (in_flight_ > 0 && client_->connected() && ::leat_now_ns() < patience_ns) {
    if (take_answer(kLongestWait)) patience_ns = ::leat_now_ns() + kDrainPatience;
  }
}

Status Feeder::run(std::int64_t start_ns, const std::atomic<bool>& stop) {
  Status status = Done{};
  while (!stop.load(std::memory_order_relaxed)) {
    if (options_.pictures_most > 0 && fed_ >= options_.pictures_most) break;
    if (options_.run_ns > 0 && ::leat_now_ns() >= start_ns + options_.run_ns) break;
    const auto step = feed_one(start_ns, stop);
    if (!step.ok()) status = Error{step.error()};
    if (!step.ok() || *step == Step::ended) break;
  }
  drain();
  if (annotator_) {
    const auto finished = annotator_->finish();
    if (status.ok() && !finished.ok()) status = Error{finished.error()};
    if (finished.ok() && *finished > 0) std::fprintf(stderr, "leat feed: %llu pictures were left out of '%s', since encoding could not keep up\n", static_cast<unsigned long long>(*finished), options_.annotate.c_str());
  }
  if (status.ok() && !client_->connected() && in_flight_ > 0) status = lost();
  return status;
}

}  // namespace leat::tools
