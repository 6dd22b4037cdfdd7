#pragma once

#include "core/gpu/nvml_library.h"

namespace zerofleet::nvml {

/// Between nvmlInit and nvmlShutdown.
class Session {
 public:
  explicit Session(const Library& library) : library_(library), result_(library.init()) {}
  ~Session() {
    if (result_ == kSuccess) library_.shutdown();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  Return result() const { return result_; }

 private:
  const Library& library_;
  Return result_;
};

}  // namespace zerofleet::nvml
