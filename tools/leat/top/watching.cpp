#include "tools/leat/top/watching.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tools/leat/top/pages/picture.h"
#include "tools/leat/top/session.h"
#include "tools/leat/top/source/recording.h"
#include "tools/leat/top/source/source.h"
#include "tools/leat/top/terminal.h"

namespace leat::tools::top {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::nanoseconds seconds_of(double s) { return std::chrono::nanoseconds(static_cast<std::int64_t>(s * 1e9)); }

// Nanoseconds since the epoch that a recording is to be shown at. Error: it is no time.
Result<std::int64_t> time_in_recording(const std::string& text, const Recording& recording) {
  int hours = 0, minutes = 0, seconds = 0;
  char rest = 0;
  if (text.starts_with('+')) {
    char* end = nullptr;
    const double s = std::strtod(text.c_str() + 1, &end);
    if (end != text.c_str() + 1 && *end == 0) return recording.first_wall_ns() + static_cast<std::int64_t>(s * 1e9);
  }
  const int read = std::sscanf(text.c_str(), "%d:%d:%d%c", &hours, &minutes, &seconds, &rest);
  const bool sound = (read == 3 || (read == 2 && std::count(text.begin(), text.end(), ':') == 1)) && hours >= 0 &&
                     hours < 24 && minutes >= 0 && minutes < 60 && seconds >= 0 && seconds < 60;
  if (!sound) return Error{"--at is a time of day, as 14:02:31, or seconds from the recording's start, as +90"};
  constexpr std::int64_t kDay = 86400;
  const std::int64_t first = recording.first_wall_ns() / kSecondNs + recording.utc_offset_s();
  std::int64_t wanted = first / kDay * kDay + hours * 3600 + minutes * 60 + seconds;
  if (wanted < first) wanted += kDay;  // after midnight
  return (wanted - recording.utc_offset_s()) * kSecondNs + kSecondNs / 2;
}

// A recording that plays: each observation when its time has come.
class Player {
 public:
  static Result<Player> open(const Watching& wanted, Session* session) {
    auto recording = Recording::open(wanted.replay);
    if (!recording.ok()) return Error{recording.error()};
    std::int64_t from = recording->first_wall_ns();
    if (!wanted.at.empty()) {
      auto at = time_in_recording(wanted.at, *recording);
      if (!at.ok()) return Error{at.error()};
      from = *at;
    }
    Player player(std::move(*recording), wanted.speed);
    // Ten minutes before it are history.
    player.recording_.seek(from - 660 * kSecondNs);
    player.read_on();
    do {
      if (player.next_) player.give(session);
    } while (player.next_ && player.next_->wall_ns <= from);
    if (session->facts().seconds().empty()) return Error{wanted.replay + ": nothing can be read from it"};
    return player;
  }

  [[nodiscard]] bool ended() const noexcept { return !next_; }
  void give(Session* session) {
    shown_wall_ns_ = next_->wall_ns;
    session->take(std::move(*next_));
    read_on();
  }
  // Until the next one is due.
  [[nodiscard]] std::chrono::nanoseconds wait() const {
    if (!next_) return std::chrono::hours(1);
    return std::chrono::nanoseconds(std::max<std::int64_t>(
        0, static_cast<std::int64_t>(static_cast<double>(next_->wall_ns - shown_wall_ns_) / speed_)));
  }

 private:
  Player(Recording recording, double speed) : recording_(std::move(recording)), speed_(speed) {}
  void read_on() { next_ = recording_.next(); }
  Recording recording_;
  std::optional<Observation> next_;
  std::int64_t shown_wall_ns_ = 0;
  double speed_ = 1;
};

class Screening {
 public:
  Screening(const Watching& wanted, Terminal terminal)
      : wanted_(wanted), terminal_(std::move(terminal)), session_(!wanted.replay.empty()) {
    session_.view() = wanted.view;
    ascii_ = wanted.ascii.value_or(!terminal_.full_signs());
  }
  [[nodiscard]] Session& session() noexcept { return session_; }

  Status run_live(Source& source) {
    if (!wanted_.record.empty()) {
      auto recorder = Recorder::create(wanted_.record);
      if (!recorder.ok()) return Error{recorder.error()};
      recorder_ = std::move(*recorder);
    }
    const auto end = wanted_.seconds ? Clock::now() + seconds_of(*wanted_.seconds) : Clock::time_point::max();
    auto next = Clock::now();
    while (!Terminal::ended_by_signal() && !quit_ && Clock::now() < end) {
      if (Clock::now() >= next) {
        auto seen = source.look();
        if (seen && recorder_) {
          if (Status written = recorder_->write(*seen); !written)
            session_.view().notice = written.error(), recorder_.reset();
        }
        if (seen) session_.take(std::move(*seen));
        next = std::max(next + seconds_of(wanted_.delay), Clock::now());
        redraw_ = true;
      }
      step(next);
    }
    return Done{};
  }

  Status run_replay(Player& player) {
    auto next = Clock::now() + player.wait();
    bool plays = wanted_.at.empty();
    while (!Terminal::ended_by_signal() && !quit_) {
      if (plays && Clock::now() >= next && !player.ended()) {
        player.give(&session_);
        next += player.wait();
        redraw_ = true;
      }
      if (player.ended() && session_.view().notice.empty())
        session_.view().notice = "the recording ends here; [ goes back, q quits";
      const Told told = step(plays ? next : Clock::now() + std::chrono::hours(1));
      if (told.pause) {
        plays = !plays;
        if (plays) session_.go_on();
        next = Clock::now() + player.wait();
      }
      if (told.step_seconds > 0 && !session_.stopped()) {  // beyond what is known yet: the next of it
        for (int i = 0; i < told.step_seconds && !player.ended(); ++i) player.give(&session_);
        redraw_ = true;
      }
      if (told.step_seconds < 0) plays = false;
    }
    return Done{};
  }

 private:
  // Draws what is new, waits for a key until then, and does what it asks.
  Told step(Clock::time_point until) {
    redraw_ = redraw_ || rows_ != terminal_.rows() || columns_ != terminal_.columns();
    if (redraw_) {
      rows_ = terminal_.rows();
      columns_ = terminal_.columns();
      Screen screen = session_.screen(rows_, columns_);
      if (ascii_) screen.canvas.to_ascii();
      terminal_.draw(screen.canvas);
      redraw_ = false;
    }
    constexpr std::int64_t kLongest = 500;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    const Typed typed = terminal_.wait(static_cast<int>(std::clamp<std::int64_t>(left + 1, 1, kLongest)));
    Told told;
    if (typed.clicked)
      told = session_.click_on(typed.row, typed.column);
    else if (typed.letter != 0)
      told = session_.letter(typed.letter);
    else if (typed.action != Action::none)
      told = session_.key(typed.action);
    else
      return told;
    redraw_ = true;
    quit_ = told.quit;
    if (told.save) save();
    if (told.record) toggle_recording();
    return told;
  }

  std::string free_name(const char* ending) const {
    std::string clock = session_.facts().clock_at(session_.shown().at_ns);
    std::erase(clock, ':');
    return "leat-top-" + clock + ending;
  }

  void save() {
    const std::string path = free_name(".txt");
    Screen screen = session_.screen(rows_, columns_);
    if (ascii_) screen.canvas.to_ascii();
    std::FILE* const file = std::fopen(path.c_str(), "wx");
    const std::string text = screen.canvas.text();
    const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file != nullptr) std::fclose(file);
    session_.view().notice = written ? "saved as " + path : path + ": cannot be written: " + std::strerror(errno);
  }

  void toggle_recording() {
    if (recorder_) {
      session_.view().notice = "recorded in " + recorder_->path();
      recorder_.reset();
      return;
    }
    if (!wanted_.replay.empty()) return;
    auto recorder = Recorder::create(free_name(".top"));
    session_.view().notice = recorder.ok() ? "recording into " + recorder->path() + "; W ends it" : recorder.error();
    if (recorder.ok()) recorder_ = std::move(*recorder);
  }

  const Watching& wanted_;
  Terminal terminal_;
  Session session_;
  std::optional<Recorder> recorder_;
  bool ascii_ = false, redraw_ = true, quit_ = false;
  int rows_ = 0, columns_ = 0;
};

}  // namespace

Status watch(const Watching& wanted) {
  std::unique_ptr<Source> source;
  if (wanted.replay.empty()) {
    auto opened = open_daemon(wanted.socket);
    if (!opened.ok()) return Error{opened.error()};
    source = std::move(*opened);
  } else if (auto recording = Recording::open(wanted.replay); !recording.ok()) {
    return Error{recording.error()};
  }
  auto terminal = Terminal::open({.colours = wanted.colours, .mouse = wanted.mouse});
  if (!terminal.ok()) return Error{terminal.error()};
  Screening screening(wanted, std::move(*terminal));
  if (source) return screening.run_live(*source);
  auto player = Player::open(wanted, &screening.session());
  if (!player.ok()) return Error{player.error()};
  return screening.run_replay(*player);
}

Status record(const Watching& wanted) {
  auto source = open_daemon(wanted.socket);
  if (!source.ok()) return Error{source.error()};
  auto recorder = Recorder::create(wanted.record);
  if (!recorder.ok()) return Error{recorder.error()};
  const auto end = wanted.seconds ? Clock::now() + seconds_of(*wanted.seconds) : Clock::time_point::max();
  for (auto next = Clock::now();;) {
    if (const auto seen = (*source)->look())
      if (Status written = recorder->write(*seen); !written) return Error{written.error()};
    next = std::max(next + seconds_of(wanted.delay), Clock::now());
    if (next >= end) return Done{};
    std::this_thread::sleep_until(next);
  }
}

Status shot(const Watching& wanted) {
  Session session(!wanted.replay.empty());
  session.view() = wanted.view;
  if (!wanted.replay.empty()) {
    auto player = Player::open(wanted, &session);
    if (!player.ok()) return Error{player.error()};
    while (wanted.at.empty() && !player->ended()) player->give(&session);
  } else {
    constexpr double kEnough = 6;  // for figures of five seconds
    auto source = open_daemon(wanted.socket);
    if (!source.ok()) return Error{source.error()};
    const auto begin = Clock::now(), end = begin + seconds_of(wanted.seconds.value_or(kEnough));
    for (auto next = begin; next <= end; next += seconds_of(wanted.delay)) {
      std::this_thread::sleep_until(next);
      if (auto seen = (*source)->look()) session.take(std::move(*seen));
    }
  }
  Screen screen = session.screen(wanted.rows, wanted.columns);
  if (wanted.ascii.value_or(false)) screen.canvas.to_ascii();
  const std::string text = wanted.svg ? picture_of(screen.canvas) : screen.canvas.text();
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Done{};
}

}  // namespace leat::tools::top
