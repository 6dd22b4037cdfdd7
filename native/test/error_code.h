#pragma once

#include <string>

#include "core/error.h"

namespace zerofleet::test {

/// The code of the Error that a call throws; "none" when it throws none.
template <class Call>
std::string code_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

}  // namespace zerofleet::test
