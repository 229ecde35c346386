#include "engine/daemon/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

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

}  // namespace

void start_log(const std::string& level) {
  auto logger = spdlog::get("leatd");
  if (!logger) logger = spdlog::stderr_logger_mt("leatd");
  logger->set_pattern("leatd: %l: %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(logger);
}

void log(LogLevel level, const std::string& line) { spdlog::log(level_of(level), "{}", line); }

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
