#include "tools/base/text/units.h"

#include "tools/base/text/formatted.h"

namespace leat::text {

std::string time_text(std::int64_t ns) {
  const double ms = static_cast<double>(ns) / 1e6;
  if (ms >= 10'000) return formatted(ms >= 100'000 ? "%.0f s" : "%.3g s", ms / 1000);
  return formatted(ms >= 100 ? "%.0f ms" : "%.3g ms", ms);
}

std::string exact_time_text(std::int64_t ns) {
  std::string text = formatted("%.3f", static_cast<double>(ns) / 1e6);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " ms";
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1024) return formatted("%d byte%s", static_cast<int>(bytes), bytes == 1 ? "" : "s");
  double amount = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* const larger : {"MiB", "GiB", "TiB"}) {
    if (amount < 1023.5) break;
    amount /= 1024, unit = larger;
  }
  return formatted(amount >= 100 ? "%.0f %s" : "%.3g %s", amount, unit);
}

}  // namespace leat::text
