#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/param_spec.h"
#include "model/config/model_config.h"

// Matrices with their adapters merged, in float64.
namespace zerofleet::test {

using AllValues = std::vector<std::vector<float>>;  // of each parameter

inline std::map<std::string, std::size_t> numbers_of(const std::vector<ParamSpec>& specs) {
  std::map<std::string, std::size_t> numbers;
  for (std::size_t param = 0; param < specs.size(); ++param) numbers[specs[param].name] = param;
  return numbers;
}

/// One adapted matrix, all sums in float64.
struct Adapted {
  std::size_t weight, down, up;  // parameters
  std::int64_t rank, in, out;
  bool in_first;  // the weight is stored as (in, out)
  std::optional<std::size_t> magnitude;

  std::size_t at(std::int64_t o, std::int64_t i) const {
    return static_cast<std::size_t>(in_first ? i * out + o : o * in + i);
  }
};

inline std::vector<Adapted> adapted_of(const ModelConfig& config, const std::vector<ParamSpec>& specs) {
  std::vector<Adapted> found;
  const auto numbers = numbers_of(specs);
  for (const auto& [name, down] : numbers) {
    const std::size_t end = name.find(".lora_A.weight");
    if (end == std::string::npos) continue;
    const std::string module = name.substr(0, end);
    const std::size_t up = numbers.at(module + ".lora_B.weight");
    found.push_back({numbers.at(module + ".weight"), down, up, specs[down].shape[0], specs[down].shape[1],
                     specs[up].shape[0], config.naming == "gpt2", std::nullopt});
    if (const auto found_at = numbers.find(module + ".lora_magnitude_vector.weight"); found_at != numbers.end())
      found.back().magnitude = found_at->second;
  }
  return found;
}

inline double norm_of(const Adapted& one, const std::vector<float>& weight, std::int64_t o) {
  double squares = 0;
  for (std::int64_t i = 0; i < one.in; ++i) squares += std::pow(static_cast<double>(weight[one.at(o, i)]), 2);
  return std::sqrt(squares);
}

/// m / ‖W‖ of an output, or 1.
inline double factor_of(const Adapted& one, const AllValues& values, std::int64_t o) {
  if (!one.magnitude) return 1;
  return static_cast<double>(values[*one.magnitude][static_cast<std::size_t>(o)]) / norm_of(one, values[one.weight], o);
}

/// Multiplies each output's weights by its factor.
inline void apply_magnitudes(const Adapted& one, AllValues& values) {
  for (std::int64_t o = 0; o < one.out; ++o) {
    const double factor = factor_of(one, values, o);
    for (std::int64_t i = 0; i < one.in; ++i) {
      float& weight = values[one.weight][one.at(o, i)];
      weight = static_cast<float>(static_cast<double>(weight) * factor);
    }
  }
}

/// W + scale · B A.
inline void merge(const Adapted& one, double scale, AllValues& values) {
  const std::vector<float>&a = values[one.down], &b = values[one.up];
  for (std::int64_t o = 0; o < one.out; ++o) {
    for (std::int64_t i = 0; i < one.in; ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < one.rank; ++r)
        sum += static_cast<double>(b[static_cast<std::size_t>(o * one.rank + r)]) *
               static_cast<double>(a[static_cast<std::size_t>(r * one.in + i)]);
      float& weight = values[one.weight][one.at(o, i)];
      weight = static_cast<float>(static_cast<double>(weight) + scale * sum);
    }
  }
}

/// The gradients of A and B from that of the merged matrix. For `values` with W + scale · B A they are scale · Bᵀ dW
/// and scale · dW Aᵀ. With a magnitude, dW times the factor takes the place of dW, and the magnitude's gradient is Σ dW
/// · W / ‖W‖.
struct Expected {
  std::vector<double> down, up, magnitude;
};
inline Expected expected_of(const Adapted& one, double scale, const AllValues& values,
                            const std::vector<float>& dweight) {
  Expected expected{std::vector<double>(values[one.down].size()), std::vector<double>(values[one.up].size()),
                    std::vector<double>(static_cast<std::size_t>(one.out))};
  for (std::int64_t o = 0; o < one.out; ++o) {
    const double factor = factor_of(one, values, o), norm = norm_of(one, values[one.weight], o);
    for (std::int64_t i = 0; i < one.in; ++i)
      expected.magnitude[static_cast<std::size_t>(o)] +=
          static_cast<double>(dweight[one.at(o, i)]) * static_cast<double>(values[one.weight][one.at(o, i)]) / norm;
    for (std::int64_t r = 0; r < one.rank; ++r) {
      for (std::int64_t i = 0; i < one.in; ++i) {
        const auto up = static_cast<std::size_t>(o * one.rank + r), down = static_cast<std::size_t>(r * one.in + i);
        const double gradient = factor * scale * static_cast<double>(dweight[one.at(o, i)]);
        expected.down[down] += gradient * static_cast<double>(values[one.up][up]);
        expected.up[up] += gradient * static_cast<double>(values[one.down][down]);
      }
    }
  }
  return expected;
}

}  // namespace zerofleet::test
