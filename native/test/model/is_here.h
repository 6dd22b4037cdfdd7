#pragma once

#include "core/param_spec.h"
#include "model/transformer/transformer.h"

namespace zerofleet::test {

/// Returns true if a model with these options is given the parameter: experts of other sets are not.
inline bool is_here(const ParamSpec& spec, const ModelConfig& config, const TransformerOptions& options) {
  if (options.experts == nullptr || spec.expert < 0) return true;
  return spec.expert / (config.num_experts / options.experts->num_sets()) == options.experts->set();
}

}  // namespace zerofleet::test
