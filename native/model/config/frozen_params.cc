#include "model/config/frozen_params.h"

#include <cctype>
#include <map>
#include <string>
#include <utility>

namespace zerofleet {
namespace {

/// The name without the numbers of layer and expert: `model.layers..mlp.down_proj.weight`.
std::string kind_of(const ParamSpec& spec) {
  std::string kind;
  bool begins = true;  // a part of the name
  for (const char character : spec.name) {
    const bool is_number = begins && std::isdigit(static_cast<unsigned char>(character)) != 0;
    if (!is_number) kind += character;
    begins = is_number || character == '.';
  }
  return kind;
}

}  // namespace

FrozenParams::FrozenParams(std::span<const ParamSpec> specs, std::vector<bool> frozen) : frozen_(std::move(frozen)) {
  if (frozen_.empty()) return;
  std::map<std::string, bool> all;
  for (std::size_t param = 0; param < specs.size(); ++param) {
    const auto [kind, is_first] = all.try_emplace(kind_of(specs[param]), true);
    kind->second = kind->second && frozen_[param];
  }
  for (const ParamSpec& spec : specs) all_like_.push_back(all.at(kind_of(spec)));
}

}  // namespace zerofleet
