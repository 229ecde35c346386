// What the probe found. An answer is yes, no, a number with its spread, "not applicable" (with the reason) or "failed"
// (the probe broke; the text says where), always with how it was found. The JSON form is described in
// docs/research/gpu-probe.md; kReportVersion changes when a field changes its meaning. Thread rule: values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu/statistics.h"
#include "shm/include/leat/result.hpp"

namespace leat::probe {

inline constexpr int kReportVersion = 1;

#define LEAT_PROBE_VERDICTS(X)                                              \
  X(yes, "it works, or it is so")                                           \
  X(no, "it does not work, or it is not so; the note says how that showed") \
  X(number, "measured; see value, unit and spread")                         \
  X(not_applicable, "the question has no meaning here; the note says why")  \
  X(failed, "the probe itself broke; the note says where")

enum class Verdict : unsigned char {
#define X(name, text) name,
  LEAT_PROBE_VERDICTS(X)
#undef X
};
[[nodiscard]] std::string_view name_of(Verdict verdict) noexcept;
[[nodiscard]] std::optional<Verdict> verdict_named(std::string_view name) noexcept;

using Conditions = std::map<std::string, std::string>;

struct Answer {
  std::string group;      // "handover"
  std::string id;         // "handover.vmm_fd.works": unique together with the conditions
  std::string question;   // one sentence
  std::string how;        // how the answer was found
  Conditions conditions;  // "size_bytes" -> "65536", "mps" -> "on"
  Verdict verdict = Verdict::failed;
  std::optional<Summary> number;  // verdict == number
  std::string unit;               // of the number: "us", "GB/s", "MiB", "count"
  std::string note;
  std::string device;  // UUID of the device asked, empty for questions about the host
};

struct DeviceName {
  std::string uuid, name;
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

struct Report {
  std::string started_utc;  // ISO 8601
  double duration_s = 0;
  bool quick = false;
  std::string host;         // kernel release and count of CPUs
  std::string driver;       // version; empty: none
  std::string cuda_driver;  // CUDA version the driver speaks, "13.0"
  std::string cuda_build;   // toolkit the probe was built with
  std::vector<DeviceName> devices;
  std::vector<Answer> answers;
  std::string problem;  // why nothing could be asked (no driver, no device); empty otherwise
};

// One line: "yes", "12.3 us (p99 15.0, spread 4 %, n 200)", "not applicable: no MIG device".
[[nodiscard]] std::string text_of(const Answer& answer);
// "size_bytes=65536 mps=on"; empty for none.
[[nodiscard]] std::string text_of(const Conditions& conditions);

[[nodiscard]] std::string to_json(const Answer& answer);
[[nodiscard]] std::string to_json(const Report& report);
Result<Answer> answer_from_json(std::string_view text);
// What is wrong with a report's JSON text by the documented schema, one line each; empty: nothing.
[[nodiscard]] std::vector<std::string> schema_problems(std::string_view text);

// For people: a section per group, a line per answer.
[[nodiscard]] std::string to_text(const Report& report);

[[nodiscard]] std::size_t count_of(const Report& report, Verdict verdict) noexcept;

}  // namespace leat::probe
