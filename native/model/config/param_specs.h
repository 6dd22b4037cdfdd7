#pragma once

#include <vector>

#include "core/param_spec.h"
#include "model/config/model_config.h"

namespace zerofleet {

/// The parameters of a model in canonical order, which is about the order of the forward pass (see param_table.h), with
/// Hugging Face names and shapes.
std::vector<ParamSpec> param_specs(const ModelConfig& config);

}  // namespace zerofleet
