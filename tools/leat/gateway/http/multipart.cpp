#include "tools/leat/gateway/http/multipart.h"

#include <optional>

#include "tools/leat/gateway/http/head.h"

namespace leat::gateway {
namespace {

// `key="text"` or `key=text` among what is separated by semicolons.
std::optional<std::string> parameter_of(std::string_view field, std::string_view key) {
  while (!field.empty()) {
    const std::size_t end = field.find(';');
    std::string_view one = field.substr(0, end);
    field = end == std::string_view::npos ? std::string_view() : field.substr(end + 1);
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.size() <= key.size() || !one.starts_with(key) || one[key.size()] != '=') continue;
    one.remove_prefix(key.size() + 1);
    if (one.size() >= 2 && one.front() == '"' && one.back() == '"') one = one.substr(1, one.size() - 2);
    return std::string(one);
  }
  return std::nullopt;
}

FormPart part_of(std::string_view fields, std::string_view data) {
  FormPart out{.data = data};
  while (!fields.empty()) {
    const std::size_t end = fields.find("\r\n");
    const std::string_view line = fields.substr(0, end);
    fields = end == std::string_view::npos ? std::string_view() : fields.substr(end + 2);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || lower_case(line.substr(0, colon)) != "content-disposition") continue;
    const std::string_view value = line.substr(colon + 1);
    out.name = parameter_of(value, "name").value_or("");
    out.file = parameter_of(value, "filename").has_value();
  }
  return out;
}

}  // namespace

std::string boundary_of(std::string_view content_type) {
  if (!lower_case(content_type.substr(0, 19)).starts_with("multipart/form-data")) return {};
  const std::string out = parameter_of(content_type, "boundary").value_or("");
  return out.size() > 70 ? std::string() : out;
}

std::vector<FormPart> form_parts(std::string_view body, std::string_view boundary) {
  if (boundary.empty()) return {};
  const std::string line = "--" + std::string(boundary), between = "\r\n" + line;
  if (!body.starts_with(line)) return {};
  body.remove_prefix(line.size());
  std::vector<FormPart> out;
  while (body.starts_with("\r\n") && out.size() < kMaxFormParts) {
    body.remove_prefix(2);
    const std::size_t end = body.find(between);
    if (end == std::string_view::npos) return {};
    const std::string_view part = body.substr(0, end);
    body.remove_prefix(end + between.size());
    const std::size_t fields = part.find("\r\n\r\n");
    if (fields == std::string_view::npos) return {};
    out.push_back(part_of(part.substr(0, fields), part.substr(fields + 4)));
  }
  return body.starts_with("--") ? out : std::vector<FormPart>();
}

}  // namespace leat::gateway
