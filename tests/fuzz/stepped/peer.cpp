#include "tests/fuzz/stepped/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/fuzz/stepped/seams.h"
#include "tests/fuzz/stepped/stepped_leatd.h"

namespace leat::fuzz {
namespace {

constexpr auto kUp = shm::uplink_layout();
constexpr auto kDown = shm::downlink_layout();
constexpr std::uint32_t kReadsAtOnce = 8;

}  // namespace

void Peer::connect(const std::string& path, uid_t user, pid_t process) {
  hang_up();
  socket_ = connection_of(path, user, process);
}

void Peer::leave_memory() {
  uplink_ = {};
  downlink_ = {};
  up_ = {};
  frames_ = {};
  bell_ = {};
  streams_.clear();
  open_.clear();
  producer_ = {};
  consumer_ = {};
  honest_rings_ = false;
}

void Peer::hang_up() { *this = Peer(); }

void Peer::half_close(bool read) {
  if (socket_) (void)shutdown(socket_.get(), read ? SHUT_RD : SHUT_WR);
}

bool Peer::ended() const {
  pollfd p{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return !socket_ || (poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0);
}

std::size_t Peer::descriptors() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      std::array{socket_.get(), bell_.get(), up_.get(), frames_.get()}, [](int fd) { return fd >= 0; }));
}

// ---- messages ----

void Peer::transmit(std::vector<std::byte> packet, const Burden& burden, Passed& passed) {
  std::uint64_t draw = burden.seed;
  for (std::uint32_t i = 0; i < burden.changes; ++i) {
    draw = mixed(draw);
    packet[draw % packet.size()] ^= static_cast<std::byte>(1u << (draw >> 32) % 8);
  }
  last_ = std::move(packet);
  if (socket_) (void)passed.send(socket_.get(), last_, std::span(burden.kinds).first(burden.count), own());
}

void Peer::again(std::uint32_t times, const Burden& burden, Passed& passed) {
  for (std::uint32_t i = 0; i < times && socket_ && !last_.empty(); ++i)
    (void)passed.send(socket_.get(), last_, std::span(burden.kinds).first(burden.count), own());
}

void Peer::ring(std::uint32_t bytes, const Burden& burden, Passed& passed) {
  const std::vector<std::byte> rings(1 + bytes);
  if (bell_) (void)passed.send(bell_.get(), rings, std::span(burden.kinds).first(burden.count), own());
}

shm::OpenStream Peer::open(std::uint32_t what, std::uint32_t how) const {
  static constexpr std::uint32_t kSides[] = {16, 64, 640, 4096};
  static constexpr std::int64_t kObjectives[] = {0, 1'000'000, 40'000'000, 80'000'000'000};
  shm::OpenStream m;
  const std::uint32_t application = what % 4;
  shm::set_text(m.application, application < std::size(kApplications) ? kApplications[application] : "another");
  m.settings.depth = 1 + (what >> 4) % 8;
  m.pool = {LEAT_FORMAT_gray8, kSides[how % 4], kSides[(how >> 2) % 4], {}, m.settings.depth + (what >> 2) % 4,
            LEAT_SLOT_HOST};
  if (application == 2) {
    m.pool.format = LEAT_FORMAT_tensors;
    m.pool.width = m.pool.height = 0;
    m.pool.tensor_count = 1;
    m.pool.tensors[0].dtype = LEAT_F32;
    m.pool.tensors[0].rank = 1;
    m.pool.tensors[0].dims[0] = 4;
  }
  m.settings.priority = ((what >> 8) + LEAT_PRIORITY_NORMAL) % 4;
  m.settings.overload = (what >> 10) % 4;
  m.settings.slo_ns = kObjectives[(what >> 14) % 4];
  m.settings.period_ns = (how >> 4) % 4 == 0 ? 0 : 33'000'000;
  if ((what >> 12) % 2 != 0) {
    m.settings.sla_drop_ppm = 100'000;
    m.settings.period_ns = 33'000'000;
    m.settings.task_group = (what >> 13) % 2;
  }
  return m;
}

void Peer::read() {
  std::vector<std::byte> packet;
  std::string text;
  for (std::uint32_t i = 0; i < kReadsAtOnce && socket_; ++i) {
    std::vector<shm::Fd> fds;
    if (shm::receive(socket_.get(), false, &packet, &fds, &text) != shm::Got::message) return;
    take(packet, std::move(fds));
  }
}

void Peer::take(const std::vector<std::byte>& packet, std::vector<shm::Fd> fds) {
  shm::Welcome welcome;
  shm::StreamOpened opened;
  shm::Secured secured;
  shm::StreamClosed closed;
  shm::Refused refused;
  if (shm::decode(packet, &welcome) == nullptr && fds.size() == 3 && !uplink_.data()) {
    up_ = std::move(fds[0]);
    bell_ = std::move(fds[2]);
    auto up = shm::Mapping::map(up_.get(), kUp.bytes, shm::Access::read_write, false);
    auto down = shm::Mapping::map(fds[1].get(), kDown.bytes, shm::Access::read_only, false);
    if (!up.ok() || !down.ok()) return;  // it said that it had before it did
    uplink_ = std::move(*up);
    downlink_ = std::move(*down);
    producer_ = {uplink_.at<shm::SubmissionDescriptor>(kUp.cells_offset), kUp.capacity,
                 downlink_.at<shm::IndexLine>(kDown.index_offset)};
    consumer_ = {downlink_.at<shm::CompletionDescriptor>(kDown.cells_offset), kDown.capacity,
                 uplink_.at<shm::IndexLine>(kUp.index_offset)};
  } else if (shm::decode(packet, &opened) == nullptr && fds.size() == 2 && uplink_.data()) {
    frames_ = std::move(fds[0]);
    std::erase_if(streams_, [&](const Stream& s) { return s.index == opened.stream; });
    streams_.push_back(
        {.index = opened.stream,
         .slots = {uplink_.at<shm::SlotWord>(kUp.stream_words(opened.stream)), opened.pool.slots, opened.stream}});
  } else if (shm::decode(packet, &secured) == nullptr) {
    if (secured.stream == shm::kLinks) secured_ = true;
    for (Stream& s : streams_) s.secured = s.secured || s.index == secured.stream;
  } else if (shm::decode(packet, &closed) == nullptr) {
    std::erase_if(streams_, [&](const Stream& s) { return s.index == closed.stream; });
  } else if (shm::decode(packet, &refused) == nullptr) {
    ++refusals;
  }
  find_open();
}

void Peer::find_open() {
  open_.clear();
  for (std::uint32_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].secured) open_.push_back(i);
}

std::uint32_t Peer::granted(std::uint32_t nth) const {
  return streams_.empty() ? shm::kLinks : streams_[nth % streams_.size()].index;
}

// ---- rings and memory ----

void Peer::submit(std::uint32_t nth, std::int64_t now, Reader* changes) {
  if (open_.empty()) return;
  Stream& s = streams_[open_[nth % open_.size()]];
  shm::SubmissionDescriptor d;
  d.stream = static_cast<std::uint16_t>(s.index);
  d.capture_ns = now;
  d.cookie = ++cookie_;
  const auto got = s.slots.acquire();
  if (!got) {
    if (changes == nullptr) return;  // only who breaks the rules submits a slot in use
  } else {
    (void)s.slots.submit(got->slot, got->generation);
    d.slot = got->slot;
    d.generation = got->generation;
  }
  if (changes != nullptr) {
    change(&d, sizeof d, *changes);
    honest_rings_ = false;
  }
  last_submission_ = d;
  if (producer_.push(d)) unanswered_.insert(d.cookie);
}

void Peer::cancel() {
  if (!uplink_.data() || last_submission_.cookie == 0) return;
  shm::SubmissionDescriptor d = last_submission_;
  d.kind = shm::SubmissionKind::cancel;
  (void)producer_.push(d);
}

void Peer::report(std::uint32_t nth, std::uint32_t what) {
  if (open_.empty()) return;
  shm::SubmissionDescriptor d;
  d.kind = shm::SubmissionKind::observe;
  d.stream = static_cast<std::uint16_t>(streams_[open_[nth % open_.size()]].index);
  d.key = what % 8 | (what % 16 < 8 ? 0 : shm::kObserveFar);
  d.items = what << 4;
  d.deadline_ns = 33'000'000;
  (void)producer_.push(d);
}

void Peer::take_answers() {
  if (!uplink_.data()) return;
  shm::CompletionDescriptor d;
  while (consumer_.pop(d)) {
    ++answers;
    completed += d.outcome == LEAT_OUTCOME_completed;
    const bool known = unanswered_.erase(d.cookie) == 1;
    insist(known || !honest_rings_, "an answer that nobody waits for, or a second one");
    for (Stream& s : streams_)
      if (s.index == d.stream) (void)s.slots.free(d.slot, d.generation);
  }
  consumer_.publish();
}

void Peer::poke_uplink(Reader& in) {
  if (!uplink_.data()) return;
  honest_rings_ = false;
  poke(uplink_.at<std::uint8_t>(0), kUp.bytes, in);
}

void Peer::announce_sleep() {
  if (uplink_.data()) shm::announce_sleep(*uplink_.at<shm::SleepWord>(kUp.sleep_offset));
}

void Peer::tamper(std::uint32_t how) {
  const int fd = how % 2 == 0 ? up_.get() : frames_.get();
  if (fd < 0) return;
  if (fd == up_.get()) honest_rings_ = false;
  switch (how / 2 % 4) {
    case 0:
      (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
      return;
    case 1:
      (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(kUp.bytes));
      return;
    case 2:
      (void)!ftruncate(fd, 0);
      return;
    default:
      (void)fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
  }
}

}  // namespace leat::fuzz
