#include "bench/gpu/report.h"

#include <algorithm>
#include <cstdio>

namespace leat::probe {
namespace {

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

std::string_view name_of(Verdict verdict) noexcept {
  switch (verdict) {
#define X(name, text) \
  case Verdict::name: \
    return #name;
    LEAT_PROBE_VERDICTS(X)
#undef X
  }
  return "unknown";
}

std::optional<Verdict> verdict_named(std::string_view name) noexcept {
#define X(member, text) \
  if (name == #member) return Verdict::member;
  LEAT_PROBE_VERDICTS(X)
#undef X
  return std::nullopt;
}

std::string text_of(const Conditions& conditions) {
  std::string text;
  for (const auto& [name, value] : conditions) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

std::string text_of(const Answer& answer) {
  std::string text(name_of(answer.verdict));
  std::replace(text.begin(), text.end(), '_', ' ');
  if (answer.verdict == Verdict::number && answer.number) {
    const Summary& s = *answer.number;
    text = three_digits(s.median) + " " + answer.unit;
    if (s.count > 1) {
      text += " (p99 " + three_digits(s.p99) + ", spread " + three_digits(100 * s.relative_spread()) + " %, n " +
              std::to_string(s.count) + ")";
    }
  }
  if (!answer.note.empty()) text += ": " + answer.note;
  return text;
}

std::string to_text(const Report& report) {
  std::string text;
  if (!report.problem.empty()) return report.problem + "\n";
  text += "driver " + report.driver + ", CUDA " + report.cuda_driver + " (built with " + report.cuda_build + ")\n";
  for (const DeviceName& device : report.devices) text += "device " + device.name + " " + device.uuid + "\n";
  std::string group;
  for (const Answer& answer : report.answers) {
    if (answer.group != group) text += "\n" + (group = answer.group) + "\n";
    const std::string conditions = text_of(answer.conditions);
    text += "  " + answer.id + (conditions.empty() ? "" : " [" + conditions + "]") + "  " + text_of(answer) + "\n";
  }
  text += "\n";
  for (Verdict verdict : {Verdict::yes, Verdict::no, Verdict::number, Verdict::not_applicable, Verdict::failed}) {
    std::string name(name_of(verdict));
    std::replace(name.begin(), name.end(), '_', ' ');
    text += name + " " + std::to_string(count_of(report, verdict)) + (verdict == Verdict::failed ? "\n" : ", ");
  }
  return text;
}

std::size_t count_of(const Report& report, Verdict verdict) noexcept {
  return static_cast<std::size_t>(std::count_if(report.answers.begin(), report.answers.end(),
                                                [&](const Answer& answer) { return answer.verdict == verdict; }));
}

}  // namespace leat::probe
