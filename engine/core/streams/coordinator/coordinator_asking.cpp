// Streams that may ask (asking.h): what they are told, what they are charged, and what they ask for.
#include <algorithm>
#include <cmath>

#include "engine/core/streams/coordinator/coordinator.h"

namespace leat::core::streams {
namespace {

constexpr double kLeastAbove = 0.3;  // of what may be lost: left where much is lost until an answer comes

}  // namespace

TimeNs Coordinator::latest_ns(const Stream& s) const noexcept {
  return static_cast<TimeNs>(settings_.asking.latest * s.asking.scale() * static_cast<double>(interval_ns(s)));
}

// What it may expect is less by what is lost on the way until the answer serves.
Asks Coordinator::asks_of(const Stream& s) const noexcept {
  const AskingSettings& a = settings_.asking;
  const double frames =
      a.wait * static_cast<double>(runs(s)[s.setting.batch - 1]) / static_cast<double>(s.spec.pace.period_ns);
  const auto last = static_cast<std::uint32_t>(s.setting.interval);
  const double on_the_way = slope_of(s) * (curve_.at(last + 2) - curve_.at(last)) / 2 * frames;
  const double may = a.above * s.sla_drop * std::pow((1 - margin_of(s)) / (1 - a.usual_margin), a.by_margin);
  return {.above = std::max(may - on_the_way, kLeastAbove * may) * s.asking.scale() / s.asking.factor(),
          .earliest_ns = 2 * s.spec.pace.period_ns,
          .latest_ns = latest_ns(s),
          .refill_ns = static_cast<TimeNs>(a.refill * static_cast<double>(interval_ns(s))),
          .bucket = a.bucket};
}

// What its frames have taken lately, instead of what they would by the clock.
void Coordinator::charge(TimeNs now, Stream& s) noexcept {
  const auto interval = static_cast<double>(interval_ns(s));
  SharedAsking& shared = user_of(s).asking;
  s.asking.settle(shared, settings_.asking);
  const double sent = s.asking.rate(now, shared.thrift / interval, settings_.asking) * interval;
  if (s.asking.rate_known(now, settings_.asking)) shared.thrift += (sent - shared.thrift) * 0.01;
  s.setting.load *= sent * settings_.asking.charge;
}

// What may be asked for is in a bucket, which fills with time.
bool Coordinator::asked(TimeNs now, std::uint32_t id) noexcept {
  if (!admitted(id) || !asks(streams_[id])) return false;
  Stream& s = streams_[id];
  const Asks may = asks_of(s);
  if (now - may.earliest_ns / 2 < s.sent_ns) return false;
  s.bucket_ns =
      std::max(s.bucket_ns, now - static_cast<TimeNs>(settings_.asking.bucket * static_cast<double>(may.refill_ns)));
  if (s.bucket_ns + may.refill_ns > now) return false;
  s.bucket_ns += may.refill_ns;
  s.sent_ns = now;
  s.serves_ns = std::max(s.serves_ns, now + runs(s)[s.setting.batch - 1] + s.spec.pace.path_ns);
  return true;
}

}  // namespace leat::core::streams
