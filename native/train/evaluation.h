#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "data/sequence_reader.h"
#include "model/transformer/transformer.h"

namespace zerofleet {

struct EvalResult {
  double loss = 0;               // mean negative log-likelihood (nats) over all targets
  std::int64_t num_targets = 0;  // that count
  std::int64_t num_sequences = 0;
};

/// Evaluating ranks: N, of which each P next to each other hold all experts together and run their leaves at the same
/// time.
struct EvalRanks {
  Communicator& world;
  int expert_parallel_size = 1;
};

/// The loss of all sequences of a file, equal on every rank. As in training, B sequences are a leaf; rank r of N computes the
/// leaves r, r + N, …, and every rank folds the losses of all leaves in their order: the bits don't depend on N. Rows of
/// the last leaf for which there is no sequence hold nothing that counts. With expert sets there are such leaves, too, where
/// their number is no multiple of P.
/// To be called on every rank at once, with the parameters of the same step. `batch` is work space for one leaf.
/// Throws what a communicator throws; Error{"no_targets"} where nothing counts.
EvalResult evaluate(const SequenceReader& sequences, std::int64_t micro_batch_size, Transformer& model,
                    const EvalRanks& ranks, LeafBatch& batch);

}  // namespace zerofleet
