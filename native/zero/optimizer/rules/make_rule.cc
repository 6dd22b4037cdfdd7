#include "core/error.h"
#include "zero/optimizer/rules/rules.h"

namespace zerofleet {

std::unique_ptr<OptimizerRule> make_optimizer_rule(const OptimizerOptions& options) {
  validate(options);
  switch (options.type) {
#define ZF_CASE(type, name, constants) \
  case OptimizerType::type: return make_##name##_rule(options);
    ZF_OPTIMIZERS(ZF_CASE)
#undef ZF_CASE
  }
  throw Error("invalid_argument", "no such optimizer type");
}

}  // namespace zerofleet
