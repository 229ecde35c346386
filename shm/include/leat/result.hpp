// Result<T>: a value, or one line of text that says what went wrong and what to do about it.
// For the control plane only (start-up, configuration, connections); hot paths use one-byte enums. Not thread-safe.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace leat {

struct Error {
  std::string text;  // one line: where, what, and what to do
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const noexcept { return std::holds_alternative<T>(state_); }
  explicit operator bool() const noexcept { return ok(); }
  // Precondition: ok(). Asking a failed result for its value is a bug of the caller and ends the process.
  T& value() & { return ok() ? std::get<T>(state_) : (std::abort(), std::get<T>(state_)); }
  const T& value() const& { return ok() ? std::get<T>(state_) : (std::abort(), std::get<T>(state_)); }
  T&& value() && { return std::move(value()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  // Precondition: !ok().
  const std::string& error() const { return std::get<Error>(state_).text; }

 private:
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace leat
