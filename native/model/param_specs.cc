#include "model/param_table.h"
#include "model/transformer.h"

namespace zerofleet {

std::vector<ParamSpec> param_specs(const ModelConfig& config) { return ParamTable(config).specs; }

}  // namespace zerofleet
