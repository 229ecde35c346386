#include "tools/leat/metrics/metric_text.h"

#include <cmath>
#include <cstdio>

namespace leat::tools {
namespace {

std::string number(double value) {
  char text[40];
  if (std::floor(value) == value && std::fabs(value) < 1e15) {
    (void)std::snprintf(text, sizeof text, "%.0f", value);
  } else {
    (void)std::snprintf(text, sizeof text, "%.9g", value);
  }
  return text;
}

void add_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
}

}  // namespace

void MetricText::begin(std::string_view name, std::string_view help, Kind kind) {
  static constexpr const char* kKinds[] = {"counter", "gauge", "histogram"};
  name_ = name;
  kind_ = kind;
  std::string family(name);
  if (kind == Kind::counter && format_ == MetricFormat::text) family += "_total";
  head_ = "# HELP " + family + " ";
  for (const char c : help)
    head_ += c == '\n' ? std::string("\\n") : c == '\\' ? std::string("\\\\") : std::string(1, c);
  head_ += "\n# TYPE " + family + " " + kKinds[static_cast<std::size_t>(kind)] + "\n";
}

void MetricText::line(std::string_view suffix, const Labels& labels, std::string_view more, double value) {
  out_ += std::exchange(head_, std::string());
  out_ += name_;
  out_ += suffix;
  if (!labels.empty() || !more.empty()) {
    char separator = '{';
    for (const auto& [key, text] : labels) {
      out_ += separator;
      separator = ',';
      out_ += key;
      out_ += "=\"";
      add_escaped(out_, text);
      out_ += '"';
    }
    if (!more.empty()) (out_ += separator) += more;
    out_ += '}';
  }
  out_ += ' ' + number(value) + '\n';
}

void MetricText::add(const Labels& labels, double value) {
  line(kind_ == Kind::counter ? "_total" : "", labels, {}, value);
}

void MetricText::add_buckets(const Labels& labels, std::span<const double> bounds,
                             std::span<const std::uint64_t> counts) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += static_cast<double>(counts[i]);
    const std::string bound = i + 1 == counts.size() ? "+Inf" : number(bounds[i]);
    line("_bucket", labels, "le=\"" + bound + "\"", sum);
  }
  line("_count", labels, {}, sum);
}

std::string MetricText::finish() && {
  if (format_ == MetricFormat::open_metrics) out_ += "# EOF\n";
  return std::move(out_);
}

std::string_view MetricText::content_type() const noexcept {
  return format_ == MetricFormat::open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
}

MetricFormat metric_format_of(std::string_view accept) noexcept {
  return accept.find("application/openmetrics-text") != std::string_view::npos ? MetricFormat::open_metrics
                                                                               : MetricFormat::text;
}

}  // namespace leat::tools
