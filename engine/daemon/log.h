// leatd's log: one line a message, to stderr, through spdlog (kept out of headers). Control plane only: the scheduler
// thread never logs. Any thread.
#pragma once

#include <string>

namespace leat::daemon {

enum class LogLevel : unsigned char { debug, info, warning, error };

// `level`: "debug", "info", "warning" or "error" (config.h has checked it).
void start_log(const std::string& level);
void log(LogLevel level, const std::string& line);
inline void log_info(const std::string& line) { log(LogLevel::info, line); }
inline void log_warning(const std::string& line) { log(LogLevel::warning, line); }
inline void log_error(const std::string& line) { log(LogLevel::error, line); }

}  // namespace leat::daemon
