// An answer to one HTTP request. Its body may lie in memory of others (a result slot): `pieces` are sent behind `body`,
// and `keeps` keeps that memory until they are sent or copied. Values; one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::gateway {

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> fields = {};
  std::string body = {};
  std::vector<std::span<const std::byte>> pieces = {};
  std::shared_ptr<void> keeps = {};
  bool close = false;  // the connection cannot go on behind it

  [[nodiscard]] std::size_t body_bytes() const noexcept;
};

// The line and the fields, with Content-Length and the empty line.
[[nodiscard]] std::string head_of(const Reply& reply, bool keep_alive);
// {"error": why}, as the clients of KServe's protocol read it.
[[nodiscard]] Reply error_reply(int status, std::string_view why);

}  // namespace leat::gateway
