// The head of an HTTP/1.1 request, as it came over the wire: what Boost.Beast makes of it, and the few rules of our own
// that leave no two readings of where a request ends. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::gateway {

inline constexpr std::size_t kMaxHeadBytes = 16 * 1024;

struct Head {
  std::string method;  // "GET"
  std::string path;    // of the target, without its query, scheme and host, as it came
  std::string query;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case
  std::uint64_t content_bytes = 0;
  bool keep_alive = true;
  bool expects_continue = false;

  // The first field of that name (in lower case); empty: there is none.
  [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
  // Whether the body is as it is: Content-Encoding is not there, or identity.
  [[nodiscard]] bool plain_body() const;
};

// What became of the bytes that came so far: more are needed (bytes 0, status 0), or a head of `bytes` bytes, or a
// request that is refused: the connection is answered with `status` and `why`, and closed.
struct HeadRead {
  Head head;
  std::size_t bytes = 0;
  int status = 0;
  std::string why;
};
// ASCII letters alone.
[[nodiscard]] std::string lower_case(std::string_view text);
[[nodiscard]] HeadRead read_head(std::string_view bytes);

}  // namespace leat::gateway
