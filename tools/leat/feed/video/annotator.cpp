#include "tools/leat/feed/video/annotator.h"

#include <map>

#include "tools/leat/feed/video/drawing_annotator.h"

namespace leat::tools {
namespace {

constexpr std::size_t kQueue = 48;                 // pictures waiting to be drawn
constexpr std::size_t kQueueBytes = 256ULL << 20;  // and what they hold
constexpr std::size_t kReorder = 16;               // an answer may overtake this many earlier ones

class Writer : public DrawingAnnotator {
 public:
  ~Writer() override { stop(); }

  Status open(const std::string& path, draw::Size sheet, double rate, double max_rate) {
    if (max_rate > 0) period_ns_ = static_cast<std::int64_t>(1e9 / max_rate);
    return begin(path, sheet, rate);
  }

  bool wants(std::uint32_t, std::int64_t capture_ns) override {
    if (capture_ns + period_ns_ / 4 < due_ns_) return false;  // what comes a little early is on time
    due_ns_ = std::max(due_ns_ + period_ns_, capture_ns + period_ns_ / 2);
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kQueue && bytes_ < kQueueBytes) return true;
    ++left_out_;
    return false;
  }

  void add(std::uint32_t, std::uint64_t index, Shot shot) override {
    const std::lock_guard lock(mutex_);
    if (index < next_) {
      ++left_out_;
      return;
    }
    bytes_ += shot.bytes;
    waiting_.emplace(index, std::move(shot));
    wake_.notify_one();
  }

  Result<std::uint64_t> finish() override {
    if (const Status ended = end_file(); !ended.ok()) return Error{ended.error()};
    return left_out_;
  }

 private:
  void draw_all() override {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] {
        return ended_ || (!waiting_.empty() &&
                          (waiting_.begin()->first == next_ || waiting_.size() > kReorder || bytes_ > kQueueBytes / 2));
      });
      if (waiting_.empty()) return;
      auto first = waiting_.extract(waiting_.begin());
      next_ = first.key() + 1;
      lock.unlock();
      write(first.key(), first.mapped().draw(std::nullopt));
      lock.lock();
      bytes_ -= first.mapped().bytes;
    }
  }

  std::int64_t period_ns_ = 0, due_ns_ = 0;  // the adding thread's
  std::map<std::uint64_t, Shot> waiting_;
  std::size_t bytes_ = 0;
  std::uint64_t next_ = 0, left_out_ = 0;
};

}  // namespace

Result<std::unique_ptr<Annotator>> Annotator::open(const std::string& path, draw::Size sheet, double rate,
                                                   double max_rate) {
  auto writer = std::make_unique<Writer>();
  if (const Status opened = writer->open(path, sheet, rate, max_rate); !opened.ok()) return Error{opened.error()};
  return std::unique_ptr<Annotator>(std::move(writer));
}

}  // namespace leat::tools
