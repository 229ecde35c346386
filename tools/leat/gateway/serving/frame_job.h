// What jobs that give leatd a frame have in common: who may, how long it may take, the slot, the answer, and the count
// of it all. Every job ends with one reply, or with its client. Thread rule: the gateway's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/leat/gateway/http/job.h"
#include "tools/leat/gateway/serving/admission.h"
#include "tools/leat/gateway/serving/node.h"
#include "tools/leat/gateway/serving/outcome_reply.h"

namespace leat::gateway {

class SharedMemory;

// What jobs of every kind share.
struct Serving {
  Node& node;
  Admission& admission;
  std::map<std::string, ModelCounts>& counts;
  HeldBytes& held;
  SharedMemory* regions = nullptr;  // null: not allowed
  const bool& draining;
  std::int64_t way_ns = 0;  // of a budget, kept for the way of request and answer
  std::string load = {};    // the field endpoint-load-metrics of answers, as Envoy reads it; empty: none yet
};

// What headers and parameters say about how a request is to be served, made into a stream's key and a deadline.
struct Terms {
  StreamKey key;
  std::int64_t deadline_ns = 0;
  bool own_stream = false;
};
// Error: one line about a header. budget_ns 0: none said.
Result<Terms> terms_of(const Channel& channel, const Model& model, std::int64_t budget_ns, std::uint32_t priority);

// A whole number; nothing: it is none.
[[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view text);

class FrameJob : public Job {
 public:
  FrameJob(Serving& serving, std::shared_ptr<const Catalogue> catalogue, const Model& model);
  ~FrameJob() override;
  void start(Channel& channel) final;

 protected:
  virtual void begin() = 0;  // the node is ready; the body has not been read
  virtual void fill() = 0;   // the stream is there: take_slot(), and submit() when it is written
  virtual void complete(std::uint32_t item, Answer answer) = 0;  // by its deadline
  // Where a job sends several frames: words in front of why one of them failed.
  virtual std::string naming(std::uint32_t) const { return {}; }
  virtual Reply failure(int status, std::string_view why) const { return error_reply(status, why); }

  // False: refused. Then fill() comes, or a refusal.
  void ask_for_stream(Terms terms, std::vector<leat_tensor_shape> shapes);
  // Refuses, and says so by false, what cannot be done in time any more: so many items behind what waits already.
  bool in_time(std::uint32_t items);
  // A slot for the first of so many items. `waits`: where there is none it is not refused, for others of this job's
  // frames are in flight.
  bool take_slot(std::uint32_t items = 1, bool waits = false);
  void submit(std::uint32_t item = 0);
  void refuse(int status, std::string_view reason, std::string_view why);
  void done(Reply reply);
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  // A call of a member that does nothing once the job has gone.
  template <class JobType, class Member>
  auto guarded(JobType* job, Member member) {
    return [self = std::weak_ptr<bool>(alive_), job, member]<class... Values>(Values&&... values) {
      if (!self.expired()) (job->*member)(std::forward<Values>(values)...);
    };
  }

  Serving& serving_;
  const std::shared_ptr<const Catalogue> catalogue_;
  const Model& model_;
  ModelCounts& counts_;
  Channel* channel_ = nullptr;
  Terms terms_;
  std::shared_ptr<Link> link_;
  std::optional<Frame> frame_;

 private:
  void linked(std::shared_ptr<Link> link, const Refusal& why);
  void answered(std::uint32_t item, std::optional<Answer> answer);
  void let_go();
  [[nodiscard]] bool worth_another() const;
  [[nodiscard]] bool no_slack(std::uint32_t items) const;

  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool entered_ = false, finished_ = false;
};

}  // namespace leat::gateway
