#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/objective/sequence_score.h"

namespace zerofleet {

// Preference objectives. Here s is the sum of the log-probabilities of a sequence's targets, n their number, and s' the
// sum under the reference. The logistic function is σ. The index c marks the chosen sequence of a pair, r the rejected
// one.
//
// - DPO (Rafailov 2023; cDPO): −(1 − ε) log σ(x) − ε log σ(−x), x = β ((s_c − s'_c) − (s_r − s'_r)), ε =
//   label_smoothing
// - IPO (Azar 2023, with means over tokens instead of sums): (h − 1/(2β))², h = (s_c − s'_c)/n_c − (s_r − s'_r)/n_r
// - ORPO (Hong 2024; its λ is β here): −s_c/n_c − β log σ(o(s_c/n_c) − o(s_r/n_r)), o(l) = l − log(1 − e^l)
// - SimPO (Meng 2024): −log σ(β (s_c/n_c − s_r/n_r) − γ)
// - KTO (Ethayarajh 2024): λ (1 − σ(±(β (s − s') − β z))), + and desirable_weight for a desirable sequence, − and
//   undesirable_weight for an undesirable one; z is ObjectiveLeaf::kl
//
// The reward of a sequence is β (s − s') in DPO and KTO, β (s − s')/n in IPO, β s/n in ORPO and SimPO.
enum class ObjectiveKind : std::uint8_t { kDpo, kIpo, kOrpo, kKto, kSimpo };

struct ObjectiveOptions {
  ObjectiveKind kind = ObjectiveKind::kDpo;
  double beta = 0.1;
  double label_smoothing = 0;                           // DPO: probability that a pair's labels are swapped, in [0, ½)
  double gamma = 0;                                     // SimPO: margin of rewards
  double desirable_weight = 1, undesirable_weight = 1;  // KTO

  template <class Fields>
  void fields(Fields& field) {
    field("type", kind,
          {{"dpo", ObjectiveKind::kDpo},
           {"ipo", ObjectiveKind::kIpo},
           {"orpo", ObjectiveKind::kOrpo},
           {"kto", ObjectiveKind::kKto},
           {"simpo", ObjectiveKind::kSimpo}});
    field("beta", beta);
    field.if_present("label_smoothing", label_smoothing);
    field.if_present("gamma", gamma);
    field.if_present("desirable_weight", desirable_weight);
    field.if_present("undesirable_weight", undesirable_weight);
  }

  /// Returns true if the leaf consists of pairs: sequence 2i is chosen, 2i + 1 rejected.
  bool has_pairs() const { return kind != ObjectiveKind::kKto; }
  bool has_reference() const { return kind != ObjectiveKind::kOrpo && kind != ObjectiveKind::kSimpo; }
};

/// Throws Error{"invalid_argument"} for what cannot be, settings of other objectives included.
void validate(const ObjectiveOptions& options);

/// Reference, labels and reference point of a leaf.
struct ObjectiveLeaf {
  std::span<const double> reference = {};  // (B) log_prob under the reference, or empty for objectives without one
  std::span<const std::uint8_t> desirable = {};  // (B) 1 or 0, KTO only
  double kl = 0;                                 // KTO: kl_estimate()
};

/// Sums over units, which are pairs or, in KTO, sequences. Desirable sequences are the chosen ones of KTO.
struct ObjectiveSums {
  double loss = 0;
  std::int64_t num_units = 0, num_chosen = 0, num_rejected = 0;
  std::int64_t num_correct = 0;  // pairs whose chosen sequence has the larger reward; KTO: sequences with β (s − s') −
                                 // β z of their label's sign
  double reward_chosen = 0, reward_rejected = 0;
  double log_prob_chosen = 0, log_prob_rejected = 0;

  ObjectiveSums& operator+=(const ObjectiveSums& other);
  double accuracy() const;  // over units; 0 without any
  double margin() const;    // mean reward of the chosen less that of the rejected; 0 where either has none
  friend bool operator==(const ObjectiveSums&, const ObjectiveSums&) = default;
};

struct ObjectiveResult {
  ObjectiveSums sums;
  std::vector<double> factors;  // (B) d sums.loss / d log_prob
};

/// Units are added in their order, with the same bits on every machine. A unit without any target (padding of a leaf)
/// is none. Throws Error{"invalid_argument"} where the numbers of sequences do not fit, or one sequence alone of a pair
/// has no target.
ObjectiveResult evaluate(const ObjectiveOptions& options, std::span<const SequenceScore> policy,
                         const ObjectiveLeaf& leaf);

/// KTO's z: the mean of s − s' over the sequences that have targets, in their order, but at least 0; no gradient passes
/// it. They are those of a leaf with each prompt before the completion of another sequence (mismatched_leaf.h).
double kl_estimate(std::span<const SequenceScore> policy, std::span<const double> reference);

}  // namespace zerofleet
