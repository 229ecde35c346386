#include "tools/leat/top/once.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tools/leat/top/page.h"
#include "tools/leat/top/picture.h"

namespace leat::tools {
namespace {

constexpr int kTextColumns = 200;  // of --once where no terminal tells

// Which devices the partitions have does not change while a daemon lives; what they hold does.
void ask_devices(Watch& watch, Window& window) {
  const auto status = watch.status_json();
  if (!status.ok()) return;
  window.devices = devices_in(*status);
  window.ways = ways_in(*status);
}

}  // namespace

int top_once(Watch& watch, double delay, const cli::JsonOutput& json, bool picture) {
  Window window{.before = watch.sample(), .now = {}};
  std::this_thread::sleep_for(std::chrono::duration<double>(delay));
  window.now = watch.sample();
  ask_devices(watch, window);
  if (json.alone()) return json.write(top_json(window));
  TopCounts counts{.reasons = static_cast<int>(reasons(window.now).size())};
  int rows = kHeadLines + 1 + 2 * static_cast<int>(std::size(kTables) + 1) + counts.reasons;
  for (const Pane pane : kTables) rows += static_cast<int>(records_of(pane, window.now).size());
  winsize size{};
  const int columns = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kTextColumns;
  auto lines = top_page(window, rows, columns);
  lines.pop_back();  // the keys
  while (!lines.empty() && lines.back().text.find_first_not_of(' ') == std::string::npos) lines.pop_back();
  if (picture) {
    std::fputs(top_picture(lines).c_str(), stdout);
    return json.write(top_json(window));
  }
  for (const Line& line : lines) {
    const std::size_t end = line.text.find_last_not_of(' ');
    std::printf("%.*s\n", end == std::string::npos ? 0 : static_cast<int>(end + 1), line.text.c_str());
  }
  return json.write(top_json(window));
}

}  // namespace leat::tools
