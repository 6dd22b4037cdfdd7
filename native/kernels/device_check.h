#pragma once

#include <string>

#include "core/context.h"
#include "core/error.h"

namespace zerofleet {

/// Throws Error{"device_unavailable"} unless the operation has a backend for the context's device in this build.
inline void require_backend(const Context& context, const char* operation) {
  require(context.device.kind == DeviceKind::kCpu, "device_unavailable",
          std::string(operation) + " has no backend for " + to_string(context.device) + " in this build");
}

}  // namespace zerofleet
