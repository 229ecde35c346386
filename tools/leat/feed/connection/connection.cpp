#include "tools/leat/feed/connection/connection.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <thread>
#include <utility>

#include "shm/src/protocol/control_protocol.h"
#include "shm/src/segments/segment_layout.h"
#include "tools/base/json/json.h"

namespace leat::tools {
namespace {

constexpr std::int64_t kTimeoutNs = 5'000'000'000;         // of each exchange with leatd
constexpr std::int64_t kAgainNs = 200'000'000;             // connecting failed: for all streams, this long
constexpr std::int64_t kLookNs = 20'000'000;               // for streams to open and to close, and the end
constexpr std::uint32_t kUsualDepth = 4, kSpareSlots = 3;  // the library's, where none are asked for

std::uint32_t slots_of(const leat_stream_options& options) {
  return options.slots > 0 ? options.slots : (options.depth > 0 ? options.depth : kUsualDepth) + kSpareSlots;
}

std::string which_of(const std::vector<std::string>& applications) {
  std::string all;
  for (const std::string& name : applications) all += (all.empty() ? "" : ", ") + name;
  return "leatd serves several applications (" + all + "); say which with --application";
}

}  // namespace

class Link {
 public:
  static Result<std::shared_ptr<Link>> connect(const std::string& socket, const std::string& name) {
    leat_connect_options options{};
    options.socket = socket.empty() ? nullptr : socket.c_str();
    options.name = name.c_str();
    options.timeout_ns = kTimeoutNs;
    leat_client* raw = nullptr;
    if (::leat_connect(&options, &raw) != LEAT_ERROR_ok) return Error{::leat_last_error()};
    auto link = std::make_shared<Link>(raw);
    link->thread_ = std::thread([&link = *link] { link.run(); });
    return link;
  }
  explicit Link(leat_client* client) : client_(client) {}
  ~Link() {
    ending_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
    ::leat_disconnect(client_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }  // partner: run()
  [[nodiscard]] bool ends() const noexcept { return ends_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool room_for(std::uint32_t slots) {
    const std::lock_guard lock(answers_);
    return !lost() && streams_ < shm::kMaxStreamsPerClient && slots_ + slots <= shm::kMaxSlotsPerClient;
  }
  void reserve(std::uint32_t slots) {
    const std::lock_guard lock(answers_);
    ++streams_, slots_ += slots;
  }
  void give_back(std::uint32_t slots) {
    const std::lock_guard lock(answers_);
    --streams_, slots_ -= slots;
  }

  Result<leat_stream*> open(const leat_stream_options& options, Inbox& inbox) {
    Opening asked{&options, &inbox};
    std::unique_lock lock(answers_);
    if (lost()) return Error{"leatd has closed the connection; it is tried again"};
    opening_.push_back(&asked);
    opened_.wait(lock, [&] { return asked.done; });
    if (asked.raw == nullptr) return Error{asked.error};
    return asked.raw;
  }
  void detach(leat_stream* stream) {
    const std::lock_guard lock(answers_);
    inboxes_.erase(stream);
  }
  void close(leat_stream* stream, std::uint32_t slots) {
    const std::lock_guard lock(answers_);
    closing_.push_back({stream, slots});
  }
  template <class Call>
  auto submitting(const Call& call) {
    const std::lock_guard lock(submissions_);
    return call();
  }

 private:
  struct Opening {
    const leat_stream_options* options;
    Inbox* inbox;
    leat_stream* raw = nullptr;  // null, once it is done: an error
    std::string error = {};
    bool done = false;
  };
  struct Closing {
    leat_stream* stream;
    std::uint32_t slots;
  };
  void run() {
    while (!ending_.load(std::memory_order_relaxed)) {
      close_streams();
      open_streams();
      leat_answer raw;
      const leat_error error = ::leat_next_answer(client_, kLookNs, &raw);
      if (error == LEAT_ERROR_disconnected) break;
      if (error != LEAT_ERROR_ok) continue;
      if (raw.reason == LEAT_REASON_not_ready) ends_.store(true, std::memory_order_relaxed);
      Answer answer(raw);
      const std::lock_guard lock(answers_);
      const auto to = inboxes_.find(raw.stream);
      if (to != inboxes_.end()) to->second->put(std::move(answer));
    }
    const std::lock_guard lock(answers_);
    lost_.store(true, std::memory_order_release);  // partner: lost()
    for (const auto& [stream, inbox] : inboxes_) inbox->poke();
    for (Opening* const o : std::exchange(opening_, {})) {
      o->error = "leatd has closed the connection; it is tried again";
      o->done = true;
    }
    opened_.notify_all();
  }
  // The library's answering side is this thread's alone, so that it needs no lock; opening and closing exclude it.
  void open_streams() {
    std::vector<Opening*> opening;
    {
      const std::lock_guard lock(answers_);
      opening = std::exchange(opening_, {});
    }
    for (Opening* const o : opening) {
      leat_stream* raw = nullptr;
      {
        const std::lock_guard lock(submissions_);
        if (::leat_open_stream(client_, o->options, &raw) != LEAT_ERROR_ok) o->error = ::leat_last_error();
      }
      const std::lock_guard lock(answers_);
      if (raw != nullptr) inboxes_[raw] = o->inbox;
      o->raw = raw;
      o->done = true;
      opened_.notify_all();
    }
  }
  void close_streams() {
    std::vector<Closing> closing;
    {
      const std::lock_guard lock(answers_);
      closing = std::exchange(closing_, {});
    }
    for (const Closing& c : closing) {
      {
        const std::lock_guard lock(submissions_);
        (void)::leat_close_stream(c.stream);
      }
      give_back(c.slots);
    }
  }

  leat_client* client_;
  std::mutex submissions_;  // guards the library's submitting side
  std::mutex answers_;      // guards what follows
  std::map<leat_stream*, Inbox*> inboxes_;
  std::vector<Opening*> opening_;
  std::condition_variable opened_;
  std::vector<Closing> closing_;
  std::uint32_t streams_ = 0, slots_ = 0;
  std::atomic<bool> lost_{false};
  std::atomic<bool> ends_{false};    // relaxed: nothing is published with it
  std::atomic<bool> ending_{false};  // relaxed: nothing is published with it
  std::thread thread_;
};

// ---- a stream ----

SharedStream::~SharedStream() {
  detach();
  link_->close(raw_, slots_);
}

void SharedStream::detach() {
  if (inbox_ == nullptr) return;
  link_->detach(raw_);
  std::exchange(inbox_, nullptr)->forget(raw_);
}

bool SharedStream::lost() const noexcept { return link_->lost(); }
bool SharedStream::ends() const noexcept { return link_->ends(); }

std::optional<Frame> SharedStream::acquire() noexcept {
  leat_frame frame;
  if (::leat_acquire(raw_, &frame) != LEAT_ERROR_ok) return std::nullopt;
  return Frame(frame);
}

leat_error SharedStream::submit(Frame& frame, const leat_submit_options& options) noexcept {
  return link_->submitting([&] { return frame.submit(options); });
}

bool SharedStream::wanted(std::int64_t capture_ns) noexcept {
  return link_->submitting([&] { return ::leat_wanted(raw_, capture_ns) != 0; });
}

void SharedStream::observe(std::uint32_t stride, double drop, double expected) noexcept {
  (void)link_->submitting([&] { return ::leat_observe_expecting(raw_, stride, drop, expected); });
}

void SharedStream::observe_far(std::uint32_t stride, double drop) noexcept {
  (void)link_->submitting([&] { return ::leat_observe_far(raw_, stride, drop); });
}

// ---- the connection ----

Result<std::shared_ptr<Link>> Connection::link_for(std::uint32_t slots) {
  const std::lock_guard lock(mutex_);
  std::erase_if(links_, [](const auto& link) { return link->lost(); });
  for (const auto& link : links_)
    if (link->room_for(slots)) return link->reserve(slots), link;
  if (!why_.empty() && ::leat_now_ns() < tried_ns_ + kAgainNs) return Error{why_};
  auto made = Link::connect(socket_, name_);
  tried_ns_ = ::leat_now_ns();
  why_ = made.ok() ? "" : made.error();
  if (!made.ok()) return Error{why_};
  links_.push_back(*made);
  (*made)->reserve(slots);
  return *made;
}

Result<std::shared_ptr<SharedStream>> Connection::open(const leat_stream_options& options, Inbox& inbox) {
  const std::uint32_t slots = slots_of(options);
  auto link = link_for(slots);
  if (!link.ok()) return Error{link.error()};
  auto stream = (*link)->open(options, inbox);
  if (!stream.ok()) {
    (*link)->give_back(slots);
    return Error{stream.error()};
  }
  return std::shared_ptr<SharedStream>(new SharedStream(std::move(*link), *stream, slots, inbox));
}

Result<std::vector<std::string>> Connection::applications() const {
  leat_error error{};
  auto observer = shm::Observer::connect(socket_.empty() ? ::leat_default_socket() : socket_, &error);
  if (!observer.ok()) return Error{observer.error()};
  const auto text = observer->status(&error);
  if (!text.ok()) return Error{text.error()};
  const auto status = Json::try_parse(*text);
  std::vector<std::string> names;
  if (status && status->is_object())
    for (const Json& application : status->value("applications", Json::array()))
      names.push_back(application.value("name", ""));
  return names;
}

Result<std::string> Connection::only_application() const {
  auto names = applications();
  if (!names.ok()) return Error{names.error()};
  if (names->empty()) return Error{"leatd serves no application yet; try again"};
  if (names->size() > 1) return Error{which_of(*names)};
  return std::move(names->front());
}

std::string Connection::several_applications() const {
  const auto names = applications();
  return names.ok() && names->size() > 1 ? which_of(*names) : "";
}

std::size_t Connection::links() {
  const std::lock_guard lock(mutex_);
  std::erase_if(links_, [](const auto& link) { return link->lost(); });
  return links_.size();
}

}  // namespace leat::tools
