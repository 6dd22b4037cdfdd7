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

/// First values of the parameters that begin as norms of other ones (ParamInit::kRowNorms, kColumnNorms): an owner of a block of them does
/// not own the matrix, and the matrix may be loaded. So they are set when every rank has the matrices in the compute dtype; the norms
/// are computed from these, and their bits depend on neither ranks nor threads.
class NormInit {
 public:
  explicit NormInit(const std::vector<ParamSpec>& specs) : specs_(specs), is_wanted_(specs.size(), false) {}

  /// The parameters from `first` on are to be set, where they begin as norms.
  void want(std::size_t first);
  /// The parameter has a value.
  void loaded(std::size_t param) { is_wanted_[param] = false; }
  /// Sets the master of what is wanted and still without a value. Returns true, on every rank alike, where the optimizer's parameters must be
  /// rebuilt from it.
  bool set(const Context& ctx, DType dtype, ZeroOptimizer& optimizer);

 private:
  const std::vector<ParamSpec>& specs_;
  std::vector<bool> is_wanted_;
  bool any_ = false;  // wanted since the last set(), loaded or not
};

}  // namespace zerofleet
