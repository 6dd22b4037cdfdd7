#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

namespace zerofleet::binding {

inline Napi::Array to_array(Napi::Env env, const std::vector<double>& values) {
  Napi::Array array = Napi::Array::New(env, values.size());
  for (std::uint32_t i = 0; i < values.size(); ++i) array.Set(i, values[i]);
  return array;
}

}  // namespace zerofleet::binding
