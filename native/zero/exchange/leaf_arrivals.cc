#include "zero/exchange/leaf_arrivals.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {

LeafArrivals::LeafArrivals(std::span<const ParamSpec> specs, std::vector<GradRole> roles)
    : specs_(specs), roles_(std::move(roles)), arrived_(specs.size(), false) {}

void LeafArrivals::begin() { arrived_.assign(specs_.size(), false); }

void LeafArrivals::add(std::size_t param, std::size_t numel) {
  require(param < specs_.size(), "invalid_argument", "there is no parameter " + std::to_string(param));
  const ParamSpec& spec = specs_[param];
  const std::string gradient = "the gradient of parameter '" + spec.name + "'";
  require(roles_[param] != GradRole::kElsewhere, "invalid_argument",
          gradient + " belongs to ranks of another expert set");
  require(roles_[param] != GradRole::kFrozen, "gradient_of_frozen", gradient + " came, but the parameter is frozen");
  require(static_cast<std::int64_t>(numel) == spec.numel(), "invalid_argument",
          gradient + " has " + std::to_string(numel) + " elements instead of " + std::to_string(spec.numel()));
  require(!arrived_[param], "gradient_repeated", gradient + " came twice in one leaf");
  arrived_[param] = true;
}

void LeafArrivals::require_all() const {
  for (std::size_t param = 0; param < arrived_.size(); ++param) {
    if (roles_[param] != GradRole::kTrained || arrived_[param]) continue;
    throw Error("gradient_missing", "no gradient came for parameter '" + specs_[param].name + "'");
  }
}

}  // namespace zerofleet
