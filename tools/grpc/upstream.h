// The gateway that requests are passed on to: HTTP/1.1 over connections that are kept, each for one request at a time.
// Thread rule: any thread, each with exchanges of its own. Errors: one line.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/result.hpp"
#include "tools/base/text/fd.h"

namespace leat::grpc_door {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET", path;
  Fields fields;
  std::vector<std::string_view> body;  // its pieces; they must stay until the exchange is over
};

struct HttpAnswer {
  int status = 0;
  Fields fields;  // names in lower case
  std::string body;
  [[nodiscard]] std::string_view field(std::string_view name) const;
};

class Upstream {
 public:
  using Clock = std::chrono::steady_clock;

  // `address` as the gateway listens at: 127.0.0.1:8000 or [::1]:8000. The longest answer that is read.
  static Result<Upstream> at(const std::string& address, std::uint64_t max_answer_bytes);
  Upstream(Upstream&&) noexcept;
  ~Upstream();

  // Asks `given_up` several times a second; a request that nobody waits for any more ends its connection, by which the
  // gateway knows. A connection that was kept and that the gateway has closed meanwhile is replaced once.
  Result<HttpAnswer> exchange(const HttpRequest& request, Clock::time_point until,
                              const std::function<bool()>& given_up);

 private:
  struct State;
  explicit Upstream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leat::grpc_door
