#include "model/config/param_specs.h"

#include "model/config/param_table.h"

namespace zerofleet {

std::vector<ParamSpec> param_specs(const ModelConfig& config) { return ParamTable(config).specs; }

}  // namespace zerofleet
