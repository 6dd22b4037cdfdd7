#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "binding/convert/convert.h"
#include "core/error.h"

namespace zerofleet::binding {

/// The value of a field with few names. Throws Error{"invalid_argument"} with the field for another.
template <class Value>
Value choice(const Napi::Object& object, const char* field,
             std::initializer_list<std::pair<const char*, Value>> choices) {
  const std::string name = string_field(object, field);
  for (const auto& [known, value] : choices) {
    if (name == known) return value;
  }
  throw Error("invalid_argument", std::string(field) + " cannot be '" + name + "'");
}

}  // namespace zerofleet::binding
