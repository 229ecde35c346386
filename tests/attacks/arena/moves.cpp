#include "tests/attacks/arena/moves.h"

#include <array>

namespace leat::test {
namespace {

constexpr std::size_t kMaxKept = 200;
constexpr std::int64_t kShortNs = 200'000'000;  // longest wait for anything

shm::OpenStream small_stream() {
  shm::OpenStream m;
  shm::set_text(m.application, "echo");
  m.pool = {LEAT_FORMAT_gray8, 64, 16, {}, 4, LEAT_SLOT_HOST};
  m.settings.depth = 4;
  m.settings.overload = LEAT_OVERLOAD_latest;
  m.settings.priority = LEAT_PRIORITY_NORMAL;
  return m;
}

}  // namespace

RawClient& Moves::keep(RawClient c) {
  if (kept_.size() >= kMaxKept) kept_.pop_front();
  return kept_.emplace_back(std::move(c));
}

bool Moves::client(RawClient& c) { return c.connect(socket_) && c.hello() && c.open(); }

bool Moves::observer(RawClient& c) {
  shm::Hello hello;
  hello.role = shm::PeerRole::observer;
  hello.header.request = ++c.request;
  return c.connect(socket_) && shm::send(c.socket.get(), hello).ok();
}

// ---- the door ----

void Moves::silent() {
  for (int i = 0; i < 8; ++i)
    if (RawClient c; c.connect(socket_)) (void)keep(std::move(c));
}

void Moves::knock() {
  for (int i = 0; i < 50; ++i) {
    RawClient c;
    (void)c.connect(socket_);
  }
}

void Moves::half_a_hello() {
  RawClient c;
  if (!c.connect(socket_)) return;
  const auto hello = shm::encode(shm::Hello{});
  (void)::send(c.socket.get(), hello.data(), random_() % hello.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)keep(std::move(c));
}

void Moves::observers() {
  for (int i = 0; i < 8; ++i)
    if (RawClient c; observer(c)) (void)keep(std::move(c));
}

void Moves::unread_counters() {
  for (int i = 0; i < 8; ++i) {
    RawClient c;
    if (!observer(c)) continue;
    for (int k = 0; k < 4; ++k) (void)shm::send(c.socket.get(), shm::Observe{});
    (void)keep(std::move(c));
  }
}

void Moves::unread_welcome() {
  for (int i = 0; i < 4; ++i) {
    RawClient c;
    if (!c.connect(socket_)) continue;
    shm::Hello hello;
    shm::set_text(hello.name, "deaf");
    (void)shm::send(c.socket.get(), hello);
    (void)keep(std::move(c));
  }
}

void Moves::leave_unread() {
  unread_counters();
  while (!kept_.empty() && kept_.size() > 4) kept_.pop_back();
}

void Moves::status_flood() {
  RawClient c;
  if (!observer(c)) return;
  std::vector<std::byte> packet;
  std::string text;
  const std::int64_t until = leat_now_ns() + 20'000'000;
  while (leat_now_ns() < until) {
    (void)shm::send(c.socket.get(), shm::StatusRequest{});
    while (shm::receive(c.socket.get(), false, &packet, nullptr, &text) == shm::Got::message) {
    }
  }
}

void Moves::status_unread() {
  RawClient c;
  if (!observer(c)) return;
  for (int i = 0; i < 300; ++i) (void)shm::send(c.socket.get(), shm::StatusRequest{});
  (void)keep(std::move(c));
}

// ---- authority ----

bool Moves::ask_for(std::uint32_t priority, std::int64_t slo_ns, std::uint32_t overload) {
  RawClient c;
  if (!c.connect(socket_) || !c.hello()) return false;
  shm::OpenStream m = small_stream();
  m.settings.priority = priority;
  m.settings.slo_ns = slo_ns;
  m.settings.overload = overload;
  return c.ask(m).has_value();
}

bool Moves::too_urgent(std::uint32_t priority) { return !ask_for(priority, 0, LEAT_OVERLOAD_latest); }
bool Moves::too_short(std::int64_t slo_ns) { return !ask_for(LEAT_PRIORITY_NORMAL, slo_ns, LEAT_OVERLOAD_latest); }
bool Moves::never_dropped() { return !ask_for(LEAT_PRIORITY_NORMAL, 0, LEAT_OVERLOAD_never_drop); }

void Moves::too_many() {
  RawClient c;
  if (!c.connect(socket_) || !c.hello()) return;
  shm::OpenStream m = small_stream();
  m.settings.depth = m.pool.slots = 64;
  for (int i = 0; i < 80 && c.ask(m); ++i) {
  }
  m.settings.depth = m.pool.slots = 2;
  m.pool.format = LEAT_FORMAT_rgb24;
  m.pool.width = m.pool.height = 4096;
  (void)c.ask(m);
  (void)keep(std::move(c));
}

// ---- rings and slots ----

void Moves::late_cancels() {
  RawClient c;
  if (!client(c)) return;
  shm::SubmissionDescriptor d;
  d.kind = shm::SubmissionKind::cancel;
  d.stream = static_cast<std::uint16_t>(c.stream);
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    d.generation = i;
    if (!c.push(d)) c.ring();
  }
}

void Moves::torn_words() {
  RawClient c;
  if (!client(c)) return;
  (void)c.push(c.good());
  c.tear_words(random_());
  (void)c.push(c.good());
  c.ring();
}

void Moves::close_and_submit() {
  RawClient c;
  if (!client(c)) return;
  for (int i = 0; i < 8; ++i) (void)c.push(c.good());
  shm::CloseStream close;
  close.stream = c.stream;
  (void)shm::send(c.socket.get(), close);
  for (int i = 0; i < 8; ++i) (void)c.push(c.good());
  c.ring();
  if (random_() % 2 == 0) (void)keep(std::move(c));
}

void Moves::vanish() {
  RawClient c;
  if (!client(c)) return;
  for (int i = 0; i < 16; ++i) (void)c.push(c.good());
  c.ring();
}

void Moves::nonsense() {
  RawClient c;
  if (!client(c)) return;
  for (int i = 0; i < 16; ++i) {
    shm::SubmissionDescriptor d = c.good();
    auto* bytes = reinterpret_cast<unsigned char*>(&d) + sizeof d.sequence;
    bytes[random_() % (sizeof d - sizeof d.sequence)] ^= static_cast<unsigned char>(1u << random_() % 8);
    (void)c.push(d);
  }
  c.ring();
  const std::int64_t until = leat_now_ns() + kShortNs;
  while (!c.hung_up() && leat_now_ns() < until) (void)c.take_answers();
}

void Moves::any() {
  using Move = void (Moves::*)();
  static constexpr Move kMoves[] = {&Moves::silent,           &Moves::knock,           &Moves::half_a_hello,
                                    &Moves::observers,        &Moves::unread_counters, &Moves::unread_welcome,
                                    &Moves::leave_unread,     &Moves::status_flood,    &Moves::status_unread,
                                    &Moves::too_many,         &Moves::late_cancels,    &Moves::torn_words,
                                    &Moves::close_and_submit, &Moves::vanish,          &Moves::nonsense};
  const std::uint64_t draw = random_() % (std::size(kMoves) + 3);
  if (draw < std::size(kMoves)) return (this->*kMoves[draw])();
  if (draw == std::size(kMoves)) {
    (void)too_urgent(LEAT_PRIORITY_PROTECTED);
  } else if (draw == std::size(kMoves) + 1) {
    (void)too_short(1'000);
  } else {
    (void)never_dropped();
    let_go();
  }
}

}  // namespace leat::test
