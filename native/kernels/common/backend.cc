#include "kernels/common/backend.h"

#include "core/error.h"

namespace zerofleet {

void refuse_operation(const char* name, const Device& device) {
  throw Error("operation_unsupported",
              std::string(name) + " has no implementation for the device " + to_string(device));
}

}  // namespace zerofleet
