#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/dtype.h"
#include "core/param_spec.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet {

/// Initial values of parameters that are norms of other parameters (ParamInit::kRowNorms, kColumnNorms).
///
/// The owner of such a parameter's block may not own the matrix, and the matrix may come from a load. The values are
/// therefore set after every rank has all matrices in the compute dtype. They are computed from these matrices, so
/// their bits do not depend on ranks or threads.
class NormInit {
 public:
  explicit NormInit(const std::vector<ParamSpec>& specs) : specs_(specs), is_pending_(specs.size(), false) {}

  /// Marks the parameters from `first` on that are norms: set() will set them unless they are loaded.
  void mark(std::size_t first);
  /// Marks a parameter as loaded.
  void loaded(std::size_t param) { is_pending_[param] = false; }
  /// Sets the master of all marked parameters that were not loaded. Returns true, on every rank alike, if the
  /// optimizer's parameters must be rebuilt from the master.
  bool set(const Context& ctx, DType dtype, ZeroOptimizer& optimizer);

 private:
  const std::vector<ParamSpec>& specs_;
  std::vector<bool> is_pending_;
  bool any_ = false;  // marked since the last set(), loaded or not
};

}  // namespace zerofleet
