#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace zerofleet {

/// An error with a stable, machine-readable code. The code travels unchanged to JavaScript and on to the HTTP API,
/// so codes are part of the public contract: lower_snake_case, never renamed.
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}

  const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

/// Throws Error{code, message} unless `condition` holds. For caller mistakes and broken input, not for logic errors.
inline void require(bool condition, const char* code, const std::string& message) {
  if (!condition) throw Error(code, message);
}

}  // namespace zerofleet
