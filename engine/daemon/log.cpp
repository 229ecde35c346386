#include "engine/daemon/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace leat::daemon {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

shm::LineAllowance& caused_lines() {
  static shm::LineAllowance lines;
  return lines;
}

std::atomic<bool> bar_is_last{false};

// systemd names the stream that its journal reads: "DEVICE:INODE".
bool read_by_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  unsigned long long device = 0, inode = 0;
  return stream != nullptr && ::fstat(STDERR_FILENO, &info) == 0 &&
         std::sscanf(stream, "%llu:%llu", &device, &inode) == 2 && info.st_dev == device && info.st_ino == inode;
}

}  // namespace

void start_log(const std::string& level) {
  auto logger = spdlog::get("leatd");
  if (!logger) logger = spdlog::stderr_logger_mt("leatd");
  logger->set_pattern(read_by_journal() ? "leatd: %l: %v" : "%Y-%m-%d %H:%M:%S.%e leatd: %l: %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(logger);
}

std::string line_start() {
  static const bool journal = read_by_journal();
  if (journal) return {};
  timespec now{};
  tm local{};
  char text[64];
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", ::localtime_r(&now.tv_sec, &local));
  std::snprintf(text + n, sizeof text - n, ".%03ld ", now.tv_nsec / 1'000'000);
  return text;
}

void bar_drawn() { bar_is_last.store(true, std::memory_order_relaxed); }

void erase_bar() {
  constexpr std::string_view kErase = "\r\033[K";
  if (bar_is_last.exchange(false, std::memory_order_relaxed)) (void)!write(STDERR_FILENO, kErase.data(), kErase.size());
}

void log(LogLevel level, const std::string& line) {
  if (spdlog::should_log(level_of(level))) erase_bar();
  spdlog::log(level_of(level), "{}", line);
}

void log_caused(LogLevel level, const std::string& text, shm::LogLimit& own, std::int64_t now_ns, bool shared) {
  if (shared && !caused_lines().take(now_ns)) return;
  if (const std::string line = own.line(now_ns, text); !line.empty())
    log(level, line);
  else if (shared)
    caused_lines().give_back();
}

void log_left_out(std::int64_t now_ns) {
  if (const std::string line = caused_lines().summary(now_ns); !line.empty()) log_warning(line);
}

std::int64_t left_out_due_ns() { return caused_lines().due_ns(); }

}  // namespace leat::daemon
