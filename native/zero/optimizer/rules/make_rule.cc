#include "core/error.h"
#include "zero/optimizer/rules/rules.h"

namespace zerofleet {

std::unique_ptr<OptimizerRule> make_optimizer_rule(const OptimizerOptions& options) {
  validate(options);
  switch (options.type) {
    case OptimizerType::kAdamW: return make_adamw_rule(options);
    case OptimizerType::kAdam: return make_adam_rule(options);
    case OptimizerType::kLamb: return make_lamb_rule(options);
    case OptimizerType::kLion: return make_lion_rule(options);
    case OptimizerType::kAdagrad: return make_adagrad_rule(options);
    case OptimizerType::kSgd: return make_sgd_rule(options);
  }
  throw Error("invalid_argument", "no such optimizer type");
}

}  // namespace zerofleet
