#include "tools/leat/answers/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <utility>

namespace leat::tools {
namespace {

std::string why(int error) {
  return error == EPIPE ? "its reader is gone" : std::string(std::strerror(error));  // one thread writes at a time
}

constexpr const char* kSlow = "its reader was slow, and nobody waits for him at the end";

}  // namespace

Result<std::unique_ptr<LineWriter>> LineWriter::open(const std::string& path, LineWriterOptions options) {
  Fd file(path == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                      : ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  const std::string where = path == "-" ? "standard output" : "'" + path + "'";
  if (!file) return Error{"answers cannot be written to " + where + ": " + why(errno)};
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Error{"answers cannot be written to " + where + ": " + why(errno)};
  struct stat facts {};
  const bool paced = fstat(file.get(), &facts) == 0 && !S_ISREG(facts.st_mode);
  return std::unique_ptr<LineWriter>(new LineWriter(std::move(file), std::move(wake), paced, std::move(options)));
}

LineWriter::LineWriter(Fd file, Fd wake, bool paced, LineWriterOptions options)
    : file_(std::move(file)), give_up_(std::move(wake)), paced_(paced), options_(std::move(options)) {
  sigset_t pipe, before;  // a reader who is gone is an error of the write, not the end of the program
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineWriter::~LineWriter() { finish(0); }

void LineWriter::push(std::string line) {
  const std::lock_guard lock(mutex_);
  std::string gap = unsaid_ > 0 ? options_.notice(unsaid_) : std::string();
  const std::size_t room = unsaid_ > 0 ? options_.max_bytes / 2 : options_.max_bytes;  // few long gaps, not many short
  if (ending_ || waiting_bytes_ + gap.size() + line.size() > room) {
    ++unsaid_;
    ++figures_.lost;
    return;
  }
  waiting_bytes_ += gap.size() + line.size();
  if (!gap.empty()) lines_.push_back({std::move(gap), std::exchange(unsaid_, 0)});
  lines_.push_back({std::move(line), 0});
  more_.notify_one();
}

void LineWriter::finish(std::int64_t patience_ns, const std::function<bool()>& longer) {
  std::unique_lock lock(mutex_);
  ending_ = true;
  more_.notify_one();
  for (std::uint64_t before = taken(), now = 0;
       !done_.wait_for(lock, std::chrono::nanoseconds(patience_ns), [&] { return ended_; }) && longer && longer() &&
       (now = taken()) != before;
       before = now) {
  }
  lock.unlock();
  (void)eventfd_write(give_up_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

LineWriter::Figures LineWriter::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void LineWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    more_.wait(lock, [&] { return ending_ || !lines_.empty(); });
    if (lines_.empty()) break;
    Line line = std::move(lines_.front());
    lines_.pop_front();
    const std::size_t bytes = line.text.size();
    line.text += '\n';
    lock.unlock();
    std::string trouble = gave_up_ ? kSlow : write_out(line.text);
    lock.lock();
    waiting_bytes_ -= bytes;
    if (line.tells_of == 0) ++(trouble.empty() ? figures_.written : figures_.lost);
    if (!trouble.empty()) unsaid_ += std::max<std::uint64_t>(1, line.tells_of);  // a lost notice is told again
    figures_.trouble = std::move(trouble);
  }
  if (unsaid_ > 0) {
    const std::string gap = options_.notice(unsaid_) + '\n';
    lock.unlock();
    (void)write_out(gap, true);
    lock.lock();
  }
  ended_ = true;
  done_.notify_all();
}

// urgent: it is given the time that a line has which has begun.
std::string LineWriter::write_out(const std::string& text, bool urgent) {
  const bool torn = std::exchange(torn_, false);
  const std::string whole = torn ? "\n" + text : text;
  const std::size_t begins = torn ? 1 : 0;
  for (std::size_t at = 0; at < whole.size();) {
    if (paced_ && !may_write(urgent || at > begins)) {
      torn_ = torn || at > 0;
      gave_up_ = true;
      return kSlow;
    }
    const std::size_t piece = paced_ ? std::min<std::size_t>(whole.size() - at, PIPE_BUF) : whole.size() - at;
    const ssize_t wrote = ::write(file_.get(), whole.data() + at, piece);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      if (errno == EPIPE) reader_gone_.store(true, std::memory_order_relaxed);
      return torn_ = torn || at > 0, why(errno);
    }
    at += static_cast<std::size_t>(wrote);
    written_bytes_.fetch_add(static_cast<std::uint64_t>(wrote), std::memory_order_relaxed);
  }
  return {};
}

std::uint64_t LineWriter::taken() const {
  int unread = 0;  // in a pipe; who cannot tell has taken what was written
  if (::ioctl(file_.get(), FIONREAD, &unread) != 0) unread = 0;
  return written_bytes_.load(std::memory_order_relaxed) - static_cast<std::uint64_t>(unread);
}

// A pipe that is ready takes PIPE_BUF bytes at once. What has begun is ended also at the end, for a reader who still
// reads: half a line is no JSON.
bool LineWriter::may_write(bool begun) const {
  constexpr int kPatienceMs = 2000;  // for each piece of that line
  pollfd ends[] = {{file_.get(), POLLOUT, 0}, {give_up_.get(), POLLIN, 0}};
  while (::poll(ends, std::size(ends), -1) < 0 && errno == EINTR) {
  }
  if (begun && ends[0].revents == 0)
    while (::poll(ends, 1, kPatienceMs) < 0 && errno == EINTR) {
    }
  return ends[0].revents != 0 || (ends[1].revents & POLLIN) == 0;
}

}  // namespace leat::tools
