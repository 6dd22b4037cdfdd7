#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/dtype.h"

namespace zerofleet::binding {

/// Readers of plain JavaScript objects. A missing or mistyped field throws a TypeError that names the field. The typed
/// facade in native/js is the only caller, so this guards against drift between the two, not against users.
double number_field(const Napi::Object& object, const char* name);
std::int64_t int_field(const Napi::Object& object, const char* name);
std::string string_field(const Napi::Object& object, const char* name);
bool bool_field(const Napi::Object& object, const char* name);
Napi::Object object_field(const Napi::Object& object, const char* name);

Napi::Array array_field(const Napi::Object& object, const char* name);
/// Null is nullopt; a missing field is an error as ever.
std::optional<double> optional_number_field(const Napi::Object& object, const char* name);

/// "fp32", "bf16" or "fp16". Throws Error{"invalid_argument"} for anything else.
DType dtype_from_name(const std::string& name);

std::span<const std::byte> bytes_from(const Napi::Value& value);

/// The bytes of a Uint8Array as floats. Throws Error{"invalid_argument"} unless it holds whole, aligned floats.
std::span<const float> floats_from(const Napi::Value& value);

}  // namespace zerofleet::binding
