// Figures as text for Prometheus and whatever reads its formats: OpenMetrics 1.0, or the older text format, which names
// counters otherwise. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {

enum class MetricFormat : std::uint8_t { open_metrics, text };

class MetricText {
 public:
  explicit MetricText(MetricFormat format) : format_(format) {}
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // Begins a family; its samples follow. Names without "_total". A family without samples is not written.
  void counter(std::string_view name, std::string_view help) { begin(name, help, Kind::counter); }
  void gauge(std::string_view name, std::string_view help) { begin(name, help, Kind::gauge); }
  void histogram(std::string_view name, std::string_view help) { begin(name, help, Kind::histogram); }
  void add(const Labels& labels, double value);
  // bounds[i]: the upper bound of what counts[i] counts, the last one's infinite; counts are not cumulated.
  void add_buckets(const Labels& labels, std::span<const double> bounds, std::span<const std::uint64_t> counts);

  [[nodiscard]] std::string finish() &&;
  [[nodiscard]] std::string_view content_type() const noexcept;

 private:
  enum class Kind : std::uint8_t { counter, gauge, histogram };
  void begin(std::string_view name, std::string_view help, Kind kind);
  void line(std::string_view suffix, const Labels& labels, std::string_view more, double value);
  const MetricFormat format_;
  std::string name_, head_, out_;
  Kind kind_ = Kind::gauge;
};

// What a request's Accept asks for.
[[nodiscard]] MetricFormat metric_format_of(std::string_view accept) noexcept;

}  // namespace leat::tools
