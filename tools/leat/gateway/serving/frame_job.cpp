#include "tools/leat/gateway/serving/frame_job.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace leat::gateway {
namespace {

constexpr std::int64_t kGraceNs = 1'000'000'000;  // leatd answers at the deadline; only a frozen one does not
constexpr double kSlower = 1.05;                  // than measured alone: what waits takes so much longer
constexpr int kMostDoublings = 6;                 // of an application's objective

std::optional<std::uint32_t> class_of(std::string_view word) {
  constexpr std::string_view kWords[] = {"background", "normal", "high", "protected"};
  for (std::uint32_t i = 0; i < std::size(kWords); ++i)
    if (word == kWords[i]) return i;
  return std::nullopt;
}

bool is_stream_name(std::string_view name) {
  return name.size() <= 31 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                  c == '.';
         });
}

}  // namespace

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// A stream's objective bounds its frames' deadlines, so a longer budget needs a stream of a longer one: the objective
// doubled until it suffices, so that there are few of them.
Result<Terms> terms_of(const Channel& channel, const Model& model, std::int64_t budget_ns, std::uint32_t priority) {
  Terms out;
  out.key.application = model.name;
  const Head& head = channel.head();
  if (const std::string_view text = head.field("x-leat-budget-us"); !text.empty()) {
    const auto us = number_of(text);
    if (!us || *us == 0 || *us > 3'600'000'000) return Error{"X-Leat-Budget-Us is no time in microseconds"};
    budget_ns = static_cast<std::int64_t>(*us) * 1000;
  }
  if (const std::string_view text = head.field("x-leat-class"); !text.empty()) {
    const auto word = class_of(text);
    if (!word) return Error{"X-Leat-Class is one of background, normal, high and protected"};
    priority = *word;
  }
  const std::string_view name = head.field("x-leat-stream");
  if (!is_stream_name(name)) return Error{"X-Leat-Stream has at most 31 letters, digits, '-', '_' and '.'"};
  out.key.name = name;
  out.own_stream = !name.empty();
  out.key.priority = priority;
  std::int64_t slo_ns = model.slo_ns;
  for (int i = 0; budget_ns > slo_ns && i < kMostDoublings && slo_ns > 0; ++i) slo_ns *= 2;
  if (slo_ns != model.slo_ns) out.key.slo_ns = slo_ns;
  out.deadline_ns = channel.began_ns() + (budget_ns > 0 ? std::min(budget_ns, slo_ns) : model.slo_ns);
  return out;
}

FrameJob::FrameJob(Serving& serving, std::shared_ptr<const Catalogue> catalogue, const Model& model)
    : serving_(serving), catalogue_(std::move(catalogue)), model_(model), counts_(serving.counts[model.name]) {
  ++counts_.requests;
  ++counts_.in_flight;
}

FrameJob::~FrameJob() {
  let_go();
  if (finished_) return;
  --counts_.in_flight;
  ++counts_.by_status[499];  // the client has gone
}

void FrameJob::let_go() {
  if (entered_) serving_.admission.leave(channel_->peer().who);
  entered_ = false;
}

void FrameJob::refuse(int status, std::string_view reason, std::string_view why) {
  if (finished_) return;
  ++counts_.by_reason[std::string(reason)];
  Reply out = failure(status, why);
  add_fields(out, serving_.node.options().name, reason, {});
  if (status == 415) out.fields.emplace_back("Accept-Encoding", "identity");  // RFC 9110, 12.5.3
  done(std::move(out));
}

void FrameJob::done(Reply reply) {
  if (finished_) return;
  finished_ = true;
  let_go();
  --counts_.in_flight;
  ++counts_.by_status[reply.status];
  counts_.last_unix_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  if (!serving_.load.empty()) reply.fields.emplace_back("endpoint-load-metrics", serving_.load);
  channel_->reply(std::move(reply));
}

void FrameJob::start(Channel& channel) {
  channel_ = &channel;
  channel.give_up_at(channel.began_ns() + model_.slo_ns + kGraceNs);
  if (!serving_.node.ready()) return refuse(503, "not_ready", "not ready: " + serving_.node.why_not());
  if (!channel.head().plain_body())
    return refuse(415, "bad_request",
                  "the body's Content-Encoding is not taken: bodies are not unpacked; send it as it is");
  begin();
}

void FrameJob::ask_for_stream(Terms terms, std::vector<leat_tensor_shape> shapes) {
  terms_ = std::move(terms);
  // The client's clock began before this node's, and stops after it.
  terms_.deadline_ns -= std::min(serving_.way_ns, (terms_.deadline_ns - channel_->began_ns()) / 10);
  channel_->give_up_at(terms_.deadline_ns + kGraceNs);
  switch (serving_.admission.enter(channel_->peer().who)) {
    case Admission::Answer::yes:
      break;
    case Admission::Answer::node_full:
      return refuse(503, "node_full", "this node has as many requests in flight as it takes");
    case Admission::Answer::client_full:
      return refuse(429, "client_full", "you have as many requests in flight as one client may have");
  }
  entered_ = true;
  serving_.node.with_link(terms_.key, std::move(shapes), guarded(this, &FrameJob::linked));
}

void FrameJob::linked(std::shared_ptr<Link> link, const Refusal& why) {
  if (!link) return refuse(why.status, why.status == 403 ? "not_permitted" : "no_stream", why.why);
  link_ = std::move(link);
  if (!finished_) fill();
}

// A balancer sends the same bytes again, and the next node begins its budget anew: there must be nearly all of it left,
// but for what every node keeps for the way.
bool FrameJob::worth_another() const {
  const std::int64_t left = terms_.deadline_ns - ::leat_now_ns();
  return left >= (terms_.deadline_ns - channel_->began_ns()) * 19 / 20;
}

// What this gateway has waiting at leatd already takes longer than there is time: said now rather than at the deadline.
bool FrameJob::no_slack(std::uint32_t items) const {
  if (model_.items_per_second <= 0) return false;
  std::uint64_t ended = counts_.lost;
  for (const auto& [outcome, count] : counts_.by_outcome) ended += count;
  const double waits_ms = 1000 * static_cast<double>(counts_.submitted - ended + items - 1) / model_.items_per_second;
  return waits_ms * kSlower + model_.batch_of_one_ms > static_cast<double>(terms_.deadline_ns - ::leat_now_ns()) / 1e6;
}

bool FrameJob::in_time(std::uint32_t items) {
  if (::leat_now_ns() >= terms_.deadline_ns) return refuse(504, "expired", "late: no time is left"), false;
  if (no_slack(items))
    return refuse(worth_another() ? 503 : 504, "no_slack", "what waits here takes longer than there is time"), false;
  return true;
}

bool FrameJob::take_slot(std::uint32_t items, bool waits) {
  if (!in_time(items)) return false;
  frame_ = link_->acquire();
  if (frame_) return true;
  if (waits) return false;
  if (link_->gone()) return refuse(503, "leatd_gone", "the node's leatd has ended; try again"), false;
  if (terms_.own_stream) return refuse(429, "queue_full", "every place of your stream is in use"), false;
  return refuse(503, "queue_full", "every place of this node's stream is in use"), false;
}

void FrameJob::submit(std::uint32_t item) {
  counts_.input_ns += static_cast<std::uint64_t>(::leat_now_ns() - channel_->began_ns());
  leat_submit_options options{};
  options.capture_ns = channel_->began_ns();
  options.deadline_ns = terms_.deadline_ns;
  Frame frame = std::move(*frame_);
  frame_.reset();
  // The counts outlive the job, which may be gone when the answer comes.
  auto then = [alive = std::weak_ptr<bool>(alive_), this, item, counts = &counts_](std::optional<Answer> answer) {
    if (answer) {
      ++counts->by_outcome[answer->raw().outcome];
    } else {
      ++counts->lost;
    }
    if (!alive.expired()) answered(item, std::move(answer));
  };
  const leat_error error = link_->submit(std::move(frame), options, std::move(then));
  if (error == LEAT_ERROR_ok) {
    ++counts_.submitted;
    return;
  }
  refuse(503, error == LEAT_ERROR_disconnected ? "leatd_gone" : "queue_full", leat_error_text(error));
}

void FrameJob::answered(std::uint32_t item, std::optional<Answer> answer) {
  if (finished_) return;
  if (!answer) return refuse(503, "leatd_gone", "the node's leatd ended before it answered; try again");
  const auto outcome = static_cast<leat_outcome>(answer->raw().outcome);
  const auto reason = static_cast<leat_reason>(answer->raw().reason);
  const Spent spent = spent_of(answer->raw());
  counts_.queue_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(0, spent.queue_ns));
  counts_.compute_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(0, spent.compute_ns));
  const int status = status_of(outcome, reason, terms_.own_stream, worth_another());
  if (status == 200) return complete(item, std::move(*answer));
  const char* const word = outcome == LEAT_OUTCOME_late ? "late" : leat_reason_name(answer->raw().reason);
  ++counts_.by_reason[word];
  const std::string why = outcome == LEAT_OUTCOME_late ? "late: it was finished after its deadline"
                                                       : std::string(leat_outcome_name(answer->raw().outcome)) + ": " +
                                                             leat_reason_text(answer->raw().reason);
  Reply out = failure(status, naming(item) + why);
  add_fields(out, serving_.node.options().name, word, spent);
  done(std::move(out));
}

}  // namespace leat::gateway
