// Whose the cameras are: nobody's in particular; of two classes, one before the other; or of two users with the same
// share. Contenders that know neither serve all alike. Values; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace leat::bench::alternatives {

enum class Parties : std::uint8_t { alike, classes, users };

[[nodiscard]] constexpr std::string_view name_of(Parties parties) {
  return parties == Parties::classes ? "classes" : parties == Parties::users ? "users" : "alike";
}
[[nodiscard]] constexpr Parties parties_named(std::string_view name) {
  return name == "classes" ? Parties::classes : name == "users" ? Parties::users : Parties::alike;
}

inline constexpr std::uint32_t kProtectedOf = 6;  // of so many cameras one is protected
inline constexpr std::uint32_t kFewOf = 3;        // of so many one is of the user who has fewer

[[nodiscard]] constexpr std::uint32_t count_of(Parties parties) { return parties == Parties::alike ? 1 : 2; }
[[nodiscard]] constexpr std::uint32_t party_of(Parties parties, std::uint32_t camera) {
  return parties == Parties::alike ? 0 : camera % (parties == Parties::classes ? kProtectedOf : kFewOf) == 0 ? 0 : 1;
}
[[nodiscard]] constexpr std::string_view party_name(Parties parties, std::uint32_t party) {
  if (parties == Parties::classes) return party == 0 ? "protected" : "rest";
  if (parties == Parties::users) return party == 0 ? "few" : "many";
  return "all";
}
// As whom a party's clients connect: any two users that nobody is.
[[nodiscard]] constexpr uid_t user_of(std::uint32_t party) { return 40'001 + party; }

}  // namespace leat::bench::alternatives
