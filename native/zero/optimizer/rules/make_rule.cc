#include <utility>

#include "core/error.h"
#include "zero/optimizer/rules/rules.h"

namespace zerofleet {
namespace {

std::unique_ptr<OptimizerRule> make_rule_of_type(const OptimizerOptions& options) {
  switch (options.type) {
#define ZF_CASE(type, name, constants) \
  case OptimizerType::type:            \
    return make_##name##_rule(options);
    ZF_OPTIMIZERS(ZF_CASE)
#undef ZF_CASE
  }
  throw Error("invalid_argument", "no such optimizer type");
}

}  // namespace

std::unique_ptr<OptimizerRule> make_optimizer_rule(const OptimizerOptions& options) {
  validate(options);
  auto rule = make_rule_of_type(options);
  return options.ema_decay > 0 ? make_ema_rule(std::move(rule), options.ema_decay) : std::move(rule);
}

}  // namespace zerofleet
