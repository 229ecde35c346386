// A body of multipart/form-data, as forms and DeepStack's clients send it. Pure; the parts are views of the body.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leat::gateway {

struct FormPart {
  std::string name;
  bool file = false;  // it bears a file's name
  std::string_view data;
};
inline constexpr std::size_t kMaxFormParts = 32;

// Of a Content-Type; empty: it is no form's.
[[nodiscard]] std::string boundary_of(std::string_view content_type);
// Empty where the body is not what it should be.
[[nodiscard]] std::vector<FormPart> form_parts(std::string_view body, std::string_view boundary);

}  // namespace leat::gateway
