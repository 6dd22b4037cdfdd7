#include "train/session/pass_runner.h"

#include <limits>

#include "train/loss/leaf_table.h"
#include "train/step/leaf_gradients.h"
#include "zero/exchange/stopwatch.h"
#include "zero/partition/leaf_schedule.h"

namespace zerofleet {
namespace {

double share(double sum, std::int64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }

std::vector<std::pair<std::string, double>> metrics_of(const PassLoss& loss, const PassSums& sums) {
  std::vector<std::pair<std::string, double>> metrics;
  if (loss.has_ratio()) metrics.emplace_back("ratio_mean", share(sums.ratio, sums.num_targets));
  if (loss.has_clipping())
    metrics.emplace_back("clipped_share", share(static_cast<double>(sums.num_clipped), sums.num_targets));
  if (loss.has_penalty()) metrics.emplace_back("kl", share(sums.kl, sums.num_targets));
  if (!loss.has_pairs()) return metrics;
  const ObjectiveSums& pairs = sums.pairs;
  metrics.emplace_back("accuracy", pairs.accuracy());
  metrics.emplace_back("margin", pairs.margin());
  metrics.emplace_back("reward_chosen", share(pairs.reward_chosen, pairs.num_chosen));
  metrics.emplace_back("reward_rejected", share(pairs.reward_rejected, pairs.num_rejected));
  return metrics;
}

/// Log-probabilities of the rows, of leaves whose records are in the order of their tokens.
std::vector<float> of_rows(LeafTable<float>& table) {
  std::vector<float> log_probs;
  for (std::int64_t leaf = 0; leaf < table.num_leaves(); ++leaf) {
    const std::span<const float> of_leaf = table.leaf(leaf);
    log_probs.insert(log_probs.end(), of_leaf.begin(), of_leaf.end());
  }
  return log_probs;
}

}  // namespace

PassResult PassRunner::forward(const PassLoss& loss, const PassRows& rows) { return run(loss, rows, Gradients::kNone); }

PassResult PassRunner::forward_backward(const PassLoss& loss, const PassRows& rows) {
  const Stopwatch watch;
  PassResult result = run(loss, rows, Gradients::kAdded);
  totals_.loss += result.loss;
  totals_.num_targets += result.num_targets;
  totals_.seconds.total += watch.seconds();
  return result;
}

PassResult PassRunner::run(const PassLoss& loss, const PassRows& rows, Gradients gradients) {
  check(rows, loss, limits_);
  PassLeaves leaves(rows, limits_);
  const LeafSchedule schedule(leaves.num_leaves(), leaves.num_leaves(), parts_.world.world_size());
  const auto leaves_of_ranks = schedule.leaves_of_ranks();
  LeafTable<PassSums> sums(leaves_of_ranks);
  LeafTable<float> log_probs(leaves_of_ranks, [&](std::int64_t leaf) { return leaves.num_tokens(leaf); });
  if (gradients == Gradients::kAdded) parts_.optimizer.begin_pass(leaves.num_leaves());
  for (const std::int64_t leaf : leaves_of_ranks[static_cast<std::size_t>(parts_.world.rank())]) {
    leaves.load(leaf);
    PassSums& of_leaf = sums.leaf(leaf).front();
    const std::vector<float> computed = gradients == Gradients::kAdded ? backward_leaf(leaf, loss, leaves, of_leaf)
                                                                       : forward_leaf(loss, leaves, of_leaf);
    const std::span<float> kept = log_probs.leaf(leaf);
    leaves.each_token(leaf, [&](std::int64_t row, std::int64_t i, std::size_t index) {
      kept[index - static_cast<std::size_t>(leaves.begin_of(leaf))] =
          rows.targets[index] >= 0 ? computed[static_cast<std::size_t>(row * limits_.sequence_length + i)]
                                   : std::numeric_limits<float>::quiet_NaN();
    });
  }
  if (gradients == Gradients::kAdded) {
    const Stopwatch watch;
    parts_.optimizer.end_pass();
    totals_.seconds.exchange += watch.seconds();
  }
  sums.exchange(parts_.world);
  log_probs.exchange(parts_.world);
  PassSums all;
  for (std::int64_t leaf = 0; leaf < leaves.num_leaves(); ++leaf) all += sums.leaf(leaf).front();
  return {all.loss, all.num_targets, of_rows(log_probs), metrics_of(loss, all)};
}

std::vector<float> PassRunner::base_log_probs(const PassLoss& loss, const PassLeaves& leaves) {
  if (!loss.has_penalty()) return {};
  std::vector<float> log_probs = parts_.model.log_probs(leaves.input(), Transformer::Adapters::kOff);
  totals_.seconds.forward += parts_.model.forward_seconds();
  return log_probs;
}

std::vector<float> PassRunner::forward_leaf(const PassLoss& loss, const PassLeaves& leaves, PassSums& sums) {
  const std::vector<float> base = base_log_probs(loss, leaves);
  std::vector<float> log_probs = parts_.model.log_probs(leaves.input());
  sums = evaluate(loss, log_probs, leaves.contents(base)).sums;
  return log_probs;
}

std::vector<float> PassRunner::backward_leaf(std::int64_t leaf, const PassLoss& loss, const PassLeaves& leaves,
                                             PassSums& sums) {
  const std::vector<float> base = base_log_probs(loss, leaves);
  std::vector<float> log_probs;
  const TargetObjective objective = [&](std::span<const float> computed) {
    log_probs.assign(computed.begin(), computed.end());
    PassLossResult result = evaluate(loss, computed, leaves.contents(base));
    sums = result.sums;
    return std::move(result.derivatives);
  };
  parts_.optimizer.begin_leaf(leaf);
  LeafGradients sink(parts_.optimizer);
  parts_.model.forward_backward(leaves.input(), objective, 1.0F, sink);
  parts_.optimizer.end_leaf(0, 0);  // the totals here have the loss of a step with passes
  totals_.seconds.forward += parts_.model.forward_seconds();
  totals_.seconds.backward += parts_.model.backward_seconds();
  return log_probs;
}

}  // namespace zerofleet
