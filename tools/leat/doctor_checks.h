// What `leat doctor` looks at: one function per subject, each answering what was found and, where something is missing,
// its cause and its cure. Checks only look: they open nothing that outlives them and change no setting.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

enum class Health {
  good,
  note,   // works; less well than it could
  fault,  // Leat cannot serve here
};

struct Finding {
  std::string_view subject;
  Health health = Health::good;
  std::string found;  // always: a fact
  std::string cause;  // when not good: what makes it so
  std::string cure;   // when not good: what to do
};

using DoctorCheck = Finding (*)();
[[nodiscard]] std::span<const DoctorCheck> doctor_checks();
[[nodiscard]] std::string_view name_of(Health health);

// A kernel release such as "6.1.0-13-amd64" is at least major.minor. A text without numbers is not.
[[nodiscard]] bool kernel_at_least(std::string_view release, int major, int minor);

}  // namespace leat::tools
