#include "test/zero/plain_training.h"

#define XXH_INLINE_ALL
#include <xxhash/xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "zero/partition/param_init.h"

namespace zerofleet::test {
namespace {

constexpr std::size_t kBlock = 4096;

std::vector<float> padded(const std::vector<float>& values) {
  std::vector<float> all = values;
  all.resize((values.size() + kBlock - 1) / kBlock * kBlock, 0.0F);
  return all;
}

void round_all(std::vector<float>& values, DType dtype) {
  if (dtype == DType::kF32) return;
  if (dtype == DType::kBF16) {
    for (float& value : values) value = to_float(to_bf16(value));
  } else {
    for (float& value : values) value = to_float(to_f16(value));
  }
}

/// A 128-bit sum of hashes.
struct DigestSum {
  unsigned __int128 total = 0;

  void add(std::uint8_t state, std::size_t first_block, const std::vector<float>& values) {
    const auto blocks = padded(values);
    for (std::size_t block = 0; block * kBlock < blocks.size(); ++block) {
      const auto seed = (std::uint64_t{state} << 56) + first_block + block;
      const auto hash = XXH3_128bits_withSeed(&blocks[block * kBlock], kBlock * sizeof(float), seed);
      total += (static_cast<unsigned __int128>(hash.high64) << 64) + hash.low64;
    }
  }
};

}  // namespace

PlainTraining::PlainTraining(std::vector<PlainParam> params, const PlainOptions& options, PlainData data,
                             std::uint64_t seed)
    : params_(std::move(params)), options_(options), data_(std::move(data)), scaler_(options.loss_scale) {
  const std::size_t num_states = state_ids(options.optimizer).size();
  const bool adagrad = options.optimizer.type == OptimizerType::kAdagrad;
  const auto initial = static_cast<float>(adagrad ? options.optimizer.initial_accumulator_value : 0);
  for (std::size_t param = 0; param < params_.size(); ++param) {
    PlainTensor& tensor = tensors_.emplace_back();
    tensor.master.resize(static_cast<std::size_t>(params_[param].spec.numel()));
    init_param(params_[param].spec, seed, param, 0, tensor.master);
    round_all(tensor.master, params_[param].frozen ? options.param_dtype : options.master_dtype);
    if (params_[param].frozen) continue;
    tensor.grad.resize(tensor.master.size());
    if (num_states >= 1) tensor.first.assign(tensor.master.size(), initial);
    if (num_states >= 2) tensor.second.assign(tensor.master.size(), initial);
    if (options.optimizer.ema.decay > 0) tensor.ema.assign(tensor.master.size(), 0.0F);
  }
}

PlainSummary PlainTraining::step(std::int64_t number) {
  PlainSummary summary;
  summary.loss_scale = scaler_.scale();
  sum_grads(number, static_cast<float>(summary.loss_scale));
  double loss_sum = 0;
  for (std::int64_t leaf = 0; leaf < options_.num_leaves; ++leaf) loss_sum += data_.loss_sum(number, leaf);
  summary.num_targets = options_.num_leaves * data_.targets_per_leaf;
  summary.loss = loss_sum / static_cast<double>(summary.num_targets);

  const double average = 1.0 / options_.grad_unit / static_cast<double>(summary.num_targets);
  const double unscaled = average / summary.loss_scale * options_.predivide;
  summary.grad_norm = grad_norm() * unscaled;
  summary.finite = std::isfinite(summary.grad_norm) && std::isfinite(summary.loss);
  if (!scaler_.update(summary.finite) || !summary.finite) return summary;

  const double clip = options_.clipping > 0 ? std::min(1.0, options_.clipping / (summary.grad_norm + 1e-6)) : 1.0;
  ++optimizer_steps_;
  for (std::size_t param = 0; param < params_.size(); ++param) {
    if (params_[param].frozen) continue;
    PlainUpdate update{options_.lr * params_[param].lr_scale, params_[param].weight_decay, 1, optimizer_steps_};
    update.grad_factor = static_cast<float>(unscaled * clip);
    plain_update(options_.optimizer, update, tensors_[param]);
    round_all(tensors_[param].master, options_.master_dtype);
    plain_average(options_.optimizer, optimizer_steps_, tensors_[param]);
  }
  return summary;
}

void PlainTraining::sum_grads(std::int64_t number, float loss_scale) {
  const auto predivide = static_cast<float>(1.0 / options_.predivide);
  for (std::size_t param = 0; param < params_.size(); ++param) {
    if (params_[param].frozen) continue;
    const std::int64_t run = params_[param].expert_set >= 0 ? options_.num_expert_sets : 1;
    const std::int64_t num_leaves = options_.num_leaves / run, num_lanes = options_.num_lanes / run;
    std::vector<float>& sum = tensors_[param].grad;
    std::ranges::fill(sum, 0.0F);
    std::vector<float> group_sum(sum.size(), 0.0F);
    for (std::int64_t lane = 0; lane < num_lanes; ++lane) {
      std::vector<float> lane_sum(sum.size(), 0.0F);
      for (std::int64_t leaf = lane; leaf < num_leaves; leaf += num_lanes) {
        const auto grad = data_.grad(number, leaf, param);
        for (std::size_t i = 0; i < grad.size(); ++i) lane_sum[i] += grad[i] * loss_scale;
        // A lane of one leaf is not accumulated, so nothing is rounded.
        if (num_lanes < num_leaves) round_all(lane_sum, options_.grad_accum_dtype);
      }
      for (float& value : lane_sum) value *= predivide;
      round_all(lane_sum, options_.reduce_dtype);
      for (std::size_t i = 0; i < sum.size(); ++i) group_sum[i] += lane_sum[i];
      if ((lane + 1) % options_.lane_group != 0 && lane + 1 < num_lanes) continue;
      round_all(group_sum, options_.reduce_dtype);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += group_sum[i];
      round_all(sum, options_.grad_accum_dtype);
      std::ranges::fill(group_sum, 0.0F);
    }
  }
}

double PlainTraining::grad_norm() const {
  double sum = 0, largest = 0;
  bool finite = true;
  // Parameters that all ranks share come first, then those of each set.
  for (int set = -1; set < options_.num_expert_sets; ++set) {
    for (std::size_t param = 0; param < params_.size(); ++param) {
      if (params_[param].expert_set != set) continue;
      for (const double squares : block_sums(tensors_[param].grad)) sum += squares;
      for (const float value : tensors_[param].grad) {
        finite = finite && std::isfinite(value);
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
    }
  }
  if (!finite) return NAN;
  return options_.clip_by_max ? largest : std::sqrt(sum);
}

std::string PlainTraining::digest() const {
  const auto ids = state_ids(options_.optimizer);
  DigestSum sum;
  std::size_t first_block = 0;
  for (const PlainTensor& tensor : tensors_) {
    sum.add(0, first_block, tensor.master);
    if (!tensor.first.empty()) sum.add(ids[0], first_block, tensor.first);
    if (!tensor.second.empty()) sum.add(ids[1], first_block, tensor.second);
    if (!tensor.ema.empty()) sum.add(5, first_block, tensor.ema);
    first_block += (tensor.master.size() + kBlock - 1) / kBlock;
  }
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(sum.total >> 64),
                static_cast<unsigned long long>(sum.total));
  return text;
}

std::vector<std::byte> PlainTraining::param_bytes() const {
  std::vector<std::byte> bytes;
  for (const PlainTensor& tensor : tensors_) {
    for (const float value : tensor.master) {
      std::byte raw[4];
      const std::uint16_t half = options_.param_dtype == DType::kF16 ? to_f16(value).bits : to_bf16(value).bits;
      const bool wide = options_.param_dtype == DType::kF32;
      std::memcpy(raw, wide ? static_cast<const void*>(&value) : &half, size_of(options_.param_dtype));
      bytes.insert(bytes.end(), raw, raw + size_of(options_.param_dtype));
    }
  }
  return bytes;
}

}  // namespace zerofleet::test
