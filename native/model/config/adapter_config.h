#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zerofleet {

inline constexpr std::int64_t kMaxAdapterRank = 512;

enum class AdapterType : std::uint8_t {
  kLora,  // Hu et al. 2021
  kDora,  // Liu et al. 2024
};

/// First values of an adapter's A; those of B are zeros.
enum class AdapterInit : std::uint8_t {
  kKaimingUniform,  // uniform in ±1/√in
  kGaussian,        // normal with the standard deviation 1/rank
};

/// Low-rank adapters of a model's matrices: y = x Wᵀ + scale · dropout(x) Aᵀ Bᵀ, with A (rank, in) and B (out, rank).
/// The variant kDora multiplies each output by its magnitude m (out) over the norm of its weights in V = W + scale · B
/// A. So y = m / ‖V‖ · x Vᵀ, and the norm of each output's weights is m, which begins as ‖W‖. Modules are named by the
/// end of their name, as `q_proj` or `mlp.c_proj`.
struct AdapterConfig {
  std::int64_t rank = 0;
  double scale = 1;
  double dropout = 0;  // not with kDora
  AdapterInit init = AdapterInit::kKaimingUniform;
  std::vector<std::string> target_modules;   // whose matrices have adapters
  std::vector<std::string> modules_to_save;  // whose own parameters are trained as well
  AdapterType type = AdapterType::kLora;

  template <class Fields>
  void fields(Fields& field) {
    field("type", type, {{"lora", AdapterType::kLora}, {"dora", AdapterType::kDora}});
    field("rank", rank);
    field("scale", scale);
    field("dropout", dropout);
    field("init", init, {{"kaiming_uniform", AdapterInit::kKaimingUniform}, {"gaussian", AdapterInit::kGaussian}});
    field("target_modules", target_modules);
    field("modules_to_save", modules_to_save);
  }

  bool targets(std::string_view module) const { return names(target_modules, module); }
  bool saves(std::string_view module) const { return names(modules_to_save, module); }

 private:
  static bool names(const std::vector<std::string>& all, std::string_view module) {
    return std::ranges::any_of(all,
                               [&](const std::string& name) { return module == name || module.ends_with("." + name); });
  }
};

}  // namespace zerofleet
