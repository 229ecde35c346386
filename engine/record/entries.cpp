#include "engine/record/entries.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/record/segments.h"

namespace leat::record {
namespace {

using core::TimeNs;

constexpr TimeNs kMaxSpanNs = std::int64_t{1} << 52;  // 52 days between two times of one entry

bool is_event(Kind kind) {
  return (kind >= Kind::open_stream && kind <= Kind::replace) || kind == Kind::give_up || kind == Kind::note ||
         kind == Kind::stage_beside;
}

bool known(std::uint8_t reason) { return reason < kReasonCount; }

// A time that lies near `from`, before or behind it.
TimeNs near(ByteReader& at, TimeNs from) {
  const std::int64_t apart = at.time();
  if (apart > kMaxSpanNs || apart < -kMaxSpanNs) at.fail();
  return at.ok() ? from - apart : 0;
}

double real_number(ByteReader& at) {
  const double x = at.real();
  if (!std::isfinite(x) || std::abs(x) > 1e12) at.fail();
  return at.ok() ? x : 0;
}

TimeNs span_of_time(ByteReader& at) {
  const std::int64_t ns = at.time();
  if (ns < 0 || ns > kMaxSpanNs) at.fail();
  return at.ok() ? ns : 0;
}

}  // namespace

std::string_view name_of(Kind kind) noexcept {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Kind::state) + 1> kNames = {
      "",        "plan",     "stream",        "begin",          "open_stream",    "close_stream",    "submit",
      "cancel",  "observe",  "stage_started", "stage_finished", "partition_lost", "partition_ready", "estimates",
      "advance", "replace",  "take_retired",  "give_up",        "units",          "picture",         "dispatch",
      "answer",  "transfer", "schedule",      "check",          "note",           "stage_beside",    "state"};
  const auto at = static_cast<std::size_t>(kind);
  return at < kNames.size() ? kNames[at] : kNames[0];
}

Result<Record> Record::read(std::vector<std::byte> bytes) {
  Record out;
  out.bytes_ = std::move(bytes);
  SegmentHeader first;
  const auto header_at = [&](std::uint64_t place, SegmentHeader& header) {
    std::memcpy(&header, out.bytes_.data() + place, sizeof header);
  };
  if (out.bytes_.size() >= sizeof first) header_at(0, first);
  const auto segment_bytes = segment_bytes_of(first, out.bytes_.size());
  if (!segment_bytes.ok()) return Error{segment_bytes.error()};
  const std::uint64_t size = out.bytes_.size();
  for (std::uint64_t place = 0; place + sizeof first <= size; place += first.segment_bytes) {
    Segment s;
    header_at(place, s.header);
    if (!usable(s.header, first.segment_bytes) || place + sizeof first + s.header.used > size) continue;
    s.entries = std::span<const std::byte>(out.bytes_).subspan(place + sizeof(SegmentHeader), s.header.used);
    out.segments_.push_back(s);
  }
  if (out.segments_.empty()) return Error{kEmpty};
  std::ranges::sort(out.segments_, {}, [](const Segment& s) { return s.header.sequence; });
  std::size_t from = out.segments_.size() - 1;
  while (from > 0 && out.segments_[from - 1].header.sequence + 1 == out.segments_[from].header.sequence) --from;
  out.segments_.erase(out.segments_.begin(), out.segments_.begin() + static_cast<std::ptrdiff_t>(from));
  out.rewind();
  return out;
}

Result<Record> Record::read_file(const std::string& path) {
  auto bytes = read_segments(path);
  if (!bytes.ok()) return Error{path + ": " + bytes.error()};
  auto record = read(std::move(*bytes));
  if (!record.ok()) return Error{path + ": " + record.error()};
  return record;
}

TimeNs Record::begin_ns() const noexcept { return segments_.front().header.begin_ns; }
std::int64_t Record::wall_ns() const noexcept { return segments_.front().header.wall_ns; }
std::uint64_t Record::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const Segment& s : segments_) sum += s.entries.size();
  return sum;
}
std::uint64_t Record::segment_bytes() const noexcept { return segments_.front().header.segment_bytes; }
std::uint64_t Record::first_sequence() const noexcept { return segments_.front().header.sequence; }
std::string Record::version() const {
  const auto& v = segments_.back().header.version;
  std::string out(v.data(), strnlen(v.data(), v.size()));
  std::erase_if(out, [](unsigned char c) { return c < 0x20 || c > 0x7e; });
  return out;
}

void Record::rewind() noexcept {
  segment_ = 0;
  at_ = ByteReader(segments_.front().entries);
  now_ = begin_ns();
  problem_.clear();
  unread_bytes_ = 0;
}

bool Record::next(Entry& out) {
  if (!problem_.empty()) return false;
  while (at_.left() == 0) {
    if (segment_ + 1 == segments_.size()) return false;
    at_ = ByteReader(segments_[++segment_].entries);
    now_ = segments_[segment_].header.begin_ns;
  }
  const std::size_t left = at_.left();
  if (decode(out)) return true;
  const Segment& s = segments_[segment_];
  unread_bytes_ = left;
  for (std::size_t i = segment_ + 1; i < segments_.size(); ++i) unread_bytes_ += segments_[i].entries.size();
  problem_ = "segment " + std::to_string(s.header.sequence) + ", byte " +
             std::to_string(sizeof(SegmentHeader) + s.entries.size() - left) + ": " +
             (problem_.empty() ? "an entry that makes no sense" : problem_);
  return false;
}

bool Record::decode(Entry& e) {
  const std::uint8_t head = at_.byte();
  e.kind = static_cast<Kind>(head & kKindMask);
  e.generation = 0;
  e.stale = false;
  if (is_event(e.kind) && (head & kSameTime) == 0) {
    const std::uint64_t later = at_.number();
    if (later > static_cast<std::uint64_t>(kMaxSpanNs) || now_ + static_cast<TimeNs>(later) > kLatestNs) return false;
    now_ += static_cast<TimeNs>(later);
  }
  e.at_ns = now_;
  switch (e.kind) {
    case Kind::plan:
      e.context = true;
      return decode_plan_entry(e);
    case Kind::stream:
      e.context = (head & kFirst) == 0;
      e.stream = at_.small();
      return e.context ? decode_stream(e.config) : at_.ok();
    case Kind::begin:
      e.flag = (head & kFirst) != 0;
      e.offers = (head & kSecond) != 0;
      return at_.ok();
    case Kind::open_stream:
      return decode_stream(e.config);
    case Kind::close_stream:
    case Kind::give_up: {
      (e.kind == Kind::give_up ? e.application : e.stream) = at_.small();
      const std::uint8_t reason = at_.byte();
      e.reason = static_cast<Reason>(reason);
      return at_.ok() && known(reason);
    }
    case Kind::submit: {
      core::Submission& s = e.submission;
      s = {};
      s.stream = at_.small();
      s.token = at_.number();
      s.capture_ns = near(at_, now_);
      if ((head & kFirst) != 0) {
        const std::uint64_t deadline = at_.number();
        const std::int64_t later = deadline == 0 ? 0 : unfolded(deadline - 1);
        if (later > kMaxSpanNs || later < -kMaxSpanNs) return false;
        s.deadline_ns = deadline == 0 ? 0 : s.capture_ns + later;
        s.items = at_.small();
        s.key = at_.small();
      }
      s.branch_draw = (head & kSecond) != 0 ? at_.raw<std::uint64_t>() : branch_draw(s.token, s.capture_ns);
      return at_.ok();
    }
    case Kind::cancel:
      e.request.index = at_.small();
      e.request.generation = at_.small();
      return at_.ok();
    case Kind::observe:
      e.stream = at_.small();
      e.seen.stride = at_.small();
      e.seen.period_ns = at_.time();
      e.seen.drop = at_.real();
      e.seen.expected = at_.real();
      e.seen.far = (head & kFirst) != 0;
      return at_.ok() && std::isfinite(e.seen.drop) && std::isfinite(e.seen.expected) &&
             std::abs(e.seen.period_ns) <= kMaxSpanNs;
    case Kind::stage_started:
    case Kind::stage_beside:
    case Kind::stage_finished: {
      e.batch = at_.small();
      e.stage = (head & kFirst) != 0 ? at_.small() : 0;
      e.stale = (head & kSecond) != 0;
      if (e.stale) e.generation = at_.small();
      if (e.kind != Kind::stage_finished) return at_.ok();
      const std::uint64_t went_on = at_.number();
      const std::int64_t ago = went_on == 0 ? 0 : unfolded(went_on - 1);
      if (ago > kMaxSpanNs || ago < -kMaxSpanNs) return false;
      e.went_on_ns = went_on == 0 ? 0 : now_ - ago;
      const std::uint64_t count = at_.number();
      if (count >> 1 > core::kMaxBatch) return false;
      e.results.assign(count >> 1, core::TaskResult{});
      if ((count & 1) != 0) return at_.ok();
      for (core::TaskResult& r : e.results) {
        const std::uint8_t reason = at_.byte();
        if (reason != 0xff && !known(reason)) return false;
        r = {.ok = reason == 0xff,
             .reason = reason == 0xff ? Reason::none : static_cast<Reason>(reason),
             .fan_out = at_.small()};
      }
      return at_.ok();
    }
    case Kind::partition_lost:
    case Kind::partition_ready:
      e.partition = at_.small();
      return at_.ok();
    case Kind::estimates:
      e.estimates.modules.resize(at_.count(3, 1 << 16));
      for (core::ModuleEstimate& m : e.estimates.modules)
        m = {.queue_ns = span_of_time(at_), .wait_after_ns = span_of_time(at_), .worst_ns = span_of_time(at_)};
      return at_.ok();
    case Kind::advance:
    case Kind::take_retired:
      return at_.ok();
    case Kind::replace:
      e.context = false;
      e.flag = (head & kFirst) != 0;
      return decode_plan_entry(e);
    case Kind::units:
      e.skipped = at_.small();
      e.units = at_.small();
      return at_.ok();
    case Kind::picture:
      e.skipped = at_.small();
      e.stream = at_.small();
      e.flag = (head & kFirst) != 0;
      e.picture_ns = e.flag ? near(at_, now_) : 0;
      return at_.ok();
    case Kind::dispatch: {
      e.flag = (head & kSecond) != 0;
      e.batch = at_.small();
      e.route = at_.small();
      const bool staged = (head & kFirst) != 0;
      e.stage = staged ? at_.small() : 0;
      const std::uint32_t stages = staged ? at_.small() : 1;
      if (stages == 0 || stages > core::kMaxStages || e.stage >= core::kMaxStages) return false;
      e.path.resize(stages);
      for (core::PartitionId& p : e.path) p = at_.small();
      return decode_tasks(e, (head & kThird) == 0);
    }
    case Kind::answer: {
      e.submission.token = at_.number();
      const std::uint8_t outcome = at_.byte(), reason = at_.byte();
      e.outcome = static_cast<Outcome>(outcome);
      e.reason = static_cast<Reason>(reason);
      e.where = (head & kFirst) != 0 ? at_.small() : core::kNone;
      return at_.ok() && outcome < kOutcomeCount && known(reason);
    }
    case Kind::transfer:
      e.submission.token = at_.number();
      return at_.ok();
    case Kind::schedule:
      e.flag = (head & kFirst) != 0;
      e.stream = at_.small();
      return at_.ok();
    case Kind::check:
      e.hash = at_.raw<std::uint64_t>();
      return at_.ok();
    case Kind::note:
      e.note.kind = at_.small();
      e.note.stream = static_cast<std::uint32_t>(at_.number() - 1);
      for (std::uint64_t* n : {&e.note.token, &e.note.a, &e.note.b, &e.note.c}) *n = at_.number();
      return at_.ok();
    case Kind::state:
      e.first = (head & kFirst) != 0;
      e.last = (head & kSecond) != 0;
      if (e.first) {
        e.hash = at_.raw<std::uint64_t>();
        const std::uint8_t asks = at_.byte();
        e.flag = (asks & 1) != 0;
        e.offers = (asks & 2) != 0;
      }
      e.piece = at_.bytes_of(at_.count(1, kMaxBytes));
      return at_.ok();
  }
  return false;
}

bool Record::decode_tasks(Entry& e, bool plain) {
  e.tasks.assign(at_.count(1, core::kMaxBatch), core::TaskRef{});
  for (core::TaskRef& t : e.tasks) {
    t.token = at_.number();
    if (plain) continue;
    t.item = at_.small();
    t.items = at_.small();
    t.units = at_.small();
  }
  return at_.ok() && !e.tasks.empty();
}

bool Record::decode_stream(core::StreamConfig& c) {
  c = {};
  c.application = at_.small();
  for (TimeNs* ns : {&c.slo_ns, &c.max_age_ns, &c.period_ns, &c.terms.period_ns}) *ns = span_of_time(at_);
  c.depth = at_.small();
  const std::uint8_t supersede = at_.byte(), priority = at_.byte();
  if (supersede > static_cast<std::uint8_t>(core::Supersede::never_drop) ||
      priority > static_cast<std::uint8_t>(core::Priority::protected_))
    return false;
  c.supersede = static_cast<core::Supersede>(supersede);
  c.priority = static_cast<core::Priority>(priority);
  for (std::uint32_t* n : {&c.user, &c.user_weight, &c.miss_window, &c.miss_allowed}) *n = at_.small();
  c.waits_for_grants = at_.flag();
  for (double* x : {&c.terms.sla_drop, &c.terms.weight, &c.terms.max_share, &c.terms.task_weight, &c.terms.local})
    *x = real_number(at_);
  c.terms.group = at_.number();
  return at_.ok();
}

bool Record::decode_plan_entry(Entry& e) {
  const std::uint32_t size = at_.count(1, UINT32_MAX);
  if (!at_.ok()) return false;
  std::string bytes = at_.text_of(size);
  if (plan_ == nullptr || bytes != plan_bytes_) {
    auto plan = decode_plan(std::as_bytes(std::span(bytes.data(), bytes.size())));
    if (!plan.ok()) {
      problem_ = plan.error();
      return false;
    }
    plan_ = std::make_shared<const RecordedPlan>(std::move(*plan));
    plan_bytes_ = std::move(bytes);
  }
  e.plan = plan_;
  return true;
}

}  // namespace leat::record
