// Leaves whose sequences have lengths of their own, in every family.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/transformer/callback_sink.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"
#include "test/model/family_configs.h"
#include "test/model/golden_model.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kRoom = 64;
const std::vector<std::int32_t> kLengths{17, 61, 0, 6};

struct LeafPass {
  std::vector<SequenceScore> scores;
  std::vector<std::vector<float>> gradients;
};

/// A pass whose gradients are those of the sum of the losses.
LeafPass leaf_pass_of(RandomModel& model) {
  LeafPass pass;
  pass.gradients.resize(model.specs().size());
  const GradCallback on_grad = [&](std::size_t param, std::span<const float> grad) {
    pass.gradients[param].assign(grad.begin(), grad.end());
  };
  CallbackSink sink(on_grad);
  const SequenceObjective sum_of_losses = [&](std::span<const SequenceScore> scores) {
    pass.scores.assign(scores.begin(), scores.end());
    return std::vector<double>(scores.size(), -1.0);
  };
  model.model().forward_backward(model.leaf({7, 3, 1}), sum_of_losses, {1.0F, 0.0F}, sink);
  return pass;
}

/// Makes `model` a leaf of the sequences of `leaf` at these numbers, in this order.
void take_sequences(const RandomModel& leaf, const std::vector<std::size_t>& sequences, std::int64_t room,
                    RandomModel& model) {
  model.lengths.clear();
  for (std::size_t to = 0; to < sequences.size(); ++to) {
    model.lengths.push_back(leaf.lengths[sequences[to]]);
    for (std::int64_t position = 0; position < room; ++position) {
      const auto target = static_cast<std::size_t>(static_cast<std::int64_t>(to) * room + position);
      const auto source = sequences[to] * static_cast<std::size_t>(kRoom) + static_cast<std::size_t>(position);
      model.tokens[target] = leaf.tokens[source];
      model.targets[target] = leaf.targets[source];
    }
  }
}

/// A leaf of sequences of kLengths, with targets for about half of their tokens.
void cut_sequences(RandomModel& leaf) {
  leaf.lengths = kLengths;
  for (std::size_t i = 0; i < leaf.targets.size(); ++i) {
    const auto position = static_cast<std::int32_t>(i % kRoom), length = kLengths[i / kRoom];
    const bool counts = position < length && (position + 1 == length || leaf.tokens[i] % 2 == 0);
    if (!counts) leaf.targets[i] = -100;
  }
}

template <class Check>
void for_each_leaf(const Check& check) {
  for (const CpuIsa isa : available_isas()) {
    Machine machine(isa, 2);
    for (auto [name, config] : family_configs()) {
      config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
      config.router_aux_loss_coef = 0;  // is of a whole leaf
      for (const DType dtype : kAllDTypes) {
        CAPTURE(name);
        CAPTURE(name_of(isa));
        RandomModel leaf(machine.ctx, config, dtype, {}, {std::ssize(kLengths), kRoom});
        cut_sequences(leaf);
        check(machine.ctx, config, leaf, dtype);
      }
    }
  }
}

}  // namespace

TEST_CASE("own lengths: a sequence has the same bits whatever others are in its leaf") {
  for_each_leaf([](const Context& ctx, const ModelConfig& config, RandomModel& leaf, DType dtype) {
    const std::vector<SequenceScore> together = leaf_pass_of(leaf).scores;
    for (std::size_t sequence = 0; sequence < kLengths.size(); ++sequence) {
      const std::int64_t room = std::max(kLengths[sequence], 1);
      RandomModel alone(ctx, config, dtype, {}, {1, room});
      take_sequences(leaf, {sequence}, room, alone);
      const SequenceScore score = leaf_pass_of(alone).scores.front();
      CHECK(together[sequence].log_prob == score.log_prob);
      CHECK(together[sequence].num_targets == score.num_targets);
    }
  });
}

TEST_CASE("own lengths: gradients are the sum of those of each sequence") {
  for_each_leaf([](const Context& ctx, const ModelConfig& config, RandomModel& leaf, DType dtype) {
    if (dtype != DType::kF32) return;
    const LeafPass together = leaf_pass_of(leaf);
    std::vector<std::vector<float>> sum(together.gradients.size());
    for (std::size_t sequence = 0; sequence < kLengths.size(); ++sequence) {
      RandomModel alone(ctx, config, dtype, {}, {1, kRoom});
      take_sequences(leaf, {sequence}, kRoom, alone);
      const LeafPass part = leaf_pass_of(alone);
      for (std::size_t param = 0; param < sum.size(); ++param) {
        sum[param].resize(part.gradients[param].size());
        std::ranges::transform(sum[param], part.gradients[param], sum[param].begin(), std::plus());
      }
    }
    for (std::size_t param = 0; param < sum.size(); ++param) {
      CAPTURE(leaf.specs()[param].name);
      CHECK(relative_error(together.gradients[param], sum[param]) < 1e-5);
    }
  });
}

TEST_CASE("own lengths: equal sequences have masks of their own in attention") {
  Machine machine(best_cpu_isa(), 2);
  for (const double dropout : {0.0, 0.5}) {
    ModelConfig config = config_of("gpt2");
    config.embedding_dropout = config.residual_dropout = 0;
    config.attention_dropout = dropout;
    RandomModel leaf(machine.ctx, config, DType::kF32, {}, {3, kRoom});
    const std::vector<std::int32_t> lengths{17, 17, 61};
    for (std::size_t i = 0; i < leaf.tokens.size(); ++i) {
      const std::size_t position = i % kRoom;
      if (i < 2 * kRoom) leaf.tokens[i] = leaf.tokens[position];
      leaf.targets[i] = static_cast<std::int32_t>(position) < lengths[i / kRoom] ? leaf.tokens[position] : -100;
    }
    const std::vector<SequenceScore> scores = leaf_pass_of(leaf).scores;
    CHECK((scores[0].log_prob == scores[1].log_prob) == (dropout == 0));
  }
}
