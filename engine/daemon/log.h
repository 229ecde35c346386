// leatd's log: one line a message, to stderr, through spdlog (kept out of headers). Control plane only: the scheduler
// thread never logs. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "shm/src/protocol/limiters.h"

namespace leat::daemon {

enum class LogLevel : unsigned char { debug, info, warning, error };

// `level`: "debug", "info", "warning" or "error" (config.h has checked it).
void start_log(const std::string& level);
// What every line begins with, also those of workers that are passed on: the local time, "2026-01-31 23:59:59.123 ".
// Empty where standard error is the journal, which notes the time itself.
[[nodiscard]] std::string line_start();
// The last line on the terminal is a bar (start_progress.h): who writes next erases it first.
void bar_drawn();
void erase_bar();
void log(LogLevel level, const std::string& line);
inline void log_info(const std::string& line) { log(LogLevel::info, line); }
inline void log_warning(const std::string& line) { log(LogLevel::warning, line); }
inline void log_error(const std::string& line) { log(LogLevel::error, line); }

// A line that a client can cause, also by way of a worker: where its own limit lets it, and as long as there are not
// too many of all such lines together (shm::LineAllowance). The control thread, for these three. `shared` false: its
// own limit alone decides.
void log_caused(LogLevel level, const std::string& line, shm::LogLimit& own, std::int64_t now_ns, bool shared = true);
// Says how many were left out; when that should be, INT64_MAX: none was.
void log_left_out(std::int64_t now_ns);
std::int64_t left_out_due_ns();

}  // namespace leat::daemon
