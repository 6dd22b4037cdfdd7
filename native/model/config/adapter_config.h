#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zerofleet {

inline constexpr std::int64_t kMaxAdapterRank = 512;

/// First values of an adapter's A; those of B are zeros.
enum class AdapterInit : std::uint8_t {
  kKaimingUniform,  // uniform in ±1/√in
  kGaussian,        // normal with the standard deviation 1/rank
};

/// Low-rank adapters (LoRA, Hu et al. 2021) of a model's matrices: y = x Wᵀ + scale · dropout(x) Aᵀ Bᵀ, with A (rank, in) and
/// B (out, rank). Modules are named by the end of their name, as `q_proj` or `mlp.c_proj`.
struct AdapterConfig {
  std::int64_t rank = 0;
  double scale = 1;
  double dropout = 0;
  AdapterInit init = AdapterInit::kKaimingUniform;
  std::vector<std::string> target_modules;   // whose matrices have adapters
  std::vector<std::string> modules_to_save;  // whose own parameters are trained as well

  bool targets(std::string_view module) const { return names(target_modules, module); }
  bool saves(std::string_view module) const { return names(modules_to_save, module); }

 private:
  static bool names(const std::vector<std::string>& all, std::string_view module) {
    return std::ranges::any_of(all, [&](const std::string& name) { return module == name || module.ends_with("." + name); });
  }
};

}  // namespace zerofleet
