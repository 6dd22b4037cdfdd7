#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "data/sequence_reader.h"
#include "train/loss/leaf_table.h"

namespace zerofleet {

/// The ranks that evaluate a whole file. Each P = expert_parallel_size neighbouring ranks together hold all experts,
/// and compute their leaves at the same time.
struct FileRanks {
  Communicator& world;
  int expert_parallel_size = 1;
};

/// Computes records for a whole file, in leaves of `rows` consecutive sequences, and returns the records of all leaves
/// on every rank.
///
/// Calls compute(batch, records) for the leaves r, r + N, … of rank r of N. The bits do not depend on N if those of a
/// leaf do not. Rows of the last leaf beyond the file's end are cleared, so that nothing in them counts. With expert
/// sets, ranks also compute empty leaves up to a multiple of P; their records are dropped.
///
/// Must be called on every rank at once, with equal parameters. `batch`: scratch memory for one leaf. `width`: records
/// per leaf. Throws errors of `compute` and of the communicator.
template <class Record, class Compute>
LeafTable<Record> map_leaves(const SequenceReader& sequences, std::int64_t rows, const FileRanks& ranks,
                             LeafBatch& batch, std::int64_t width, Compute&& compute) {
  const std::int64_t num_sequences = sequences.num_sequences();
  const std::int64_t num_leaves = (num_sequences + rows - 1) / rows;
  const std::int64_t num_sets = ranks.expert_parallel_size;
  // A multiple of P: all ranks of a group compute the last leaves together.
  const std::int64_t num_computed = (num_leaves + num_sets - 1) / num_sets * num_sets;
  const std::int64_t world_size = ranks.world.world_size();
  std::vector<std::vector<std::int64_t>> leaves_of_ranks(static_cast<std::size_t>(world_size));
  for (std::int64_t leaf = 0; leaf < num_leaves; ++leaf) {
    leaves_of_ranks[static_cast<std::size_t>(leaf % world_size)].push_back(leaf);
  }
  LeafTable<Record> table(leaves_of_ranks, width);
  std::vector<Record> dropped(static_cast<std::size_t>(width));
  sequences.resize(batch, rows);
  for (std::int64_t leaf = ranks.world.rank(); leaf < num_computed; leaf += world_size) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t sequence = leaf * rows + row;
      if (sequence < num_sequences) {
        sequences.read(sequence, row, batch);
      } else {
        sequences.clear(row, batch);
      }
    }
    compute(batch, leaf < num_leaves ? table.leaf(leaf) : std::span(dropped));
  }
  table.exchange(ranks.world);
  return table;
}

}  // namespace zerofleet
