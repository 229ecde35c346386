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

}  // namespace leat::daemon
