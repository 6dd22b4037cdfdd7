#include "zero/optimizer/optimizer_rule.h"

#include <array>
#include <string>

#include "core/error.h"

namespace zerofleet {
namespace {

// By StateId.
#define ZF_NAME(id, name) name,
constexpr std::array<const char*, kMaxStates> kStateNames{ZF_STATES(ZF_NAME)};
#undef ZF_NAME

}  // namespace

const char* name_of(StateId state) { return kStateNames[static_cast<std::size_t>(state)]; }

StateId state_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (name == kStateNames[i]) return static_cast<StateId>(i);
  }
  throw Error("invalid_argument", "no optimizer state '" + std::string(name) + "'");
}

void OptimizerRule::set_constants(const OptimizerOptions&) {
  throw Error("invalid_argument",
              "the constants of this optimizer stay the same in all steps; adam and adamw take others");
}

void OptimizerRule::prepare(const Context&, std::span<const UpdateSegment>, const OptimizerDTypes&,
                            const UpdateScalars&, std::span<double>, std::span<double>) const {
  throw Error("invalid_argument", "this optimizer updates in one pass and needs no norms");
}

}  // namespace zerofleet
