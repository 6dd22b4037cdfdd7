#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "data/sequence_reader.h"
#include "train/loss/leaf_table.h"

namespace zerofleet {

/// Ranks that read a whole file: N, of which each P next to each other hold all experts together and run their leaves at the
/// same time.
struct FileRanks {
  Communicator& world;
  int expert_parallel_size = 1;
};

/// Calls compute(batch, records) for the leaves of a whole file, `rows` consecutive sequences each, and returns the records of all
/// leaves on every rank. Rank r of N computes the leaves r, r + N, …: the bits do not depend on N if those of a leaf do not. Rows of
/// the last leaf for which there is no sequence hold nothing that counts. With expert sets there are such leaves, too, where their
/// number is no multiple of P; their records are dropped.
/// To be called on every rank at once, with equal parameters. `batch` is work space for one leaf; each leaf has `width` records.
/// Throws what `compute` and a communicator throw.
template <class Record, class Compute>
LeafTable<Record> map_leaves(const SequenceReader& sequences, std::int64_t rows, const FileRanks& ranks, LeafBatch& batch,
                             std::int64_t width, Compute&& compute) {
  const std::int64_t num_sequences = sequences.num_sequences();
  const std::int64_t num_leaves = (num_sequences + rows - 1) / rows;
  const std::int64_t num_sets = ranks.expert_parallel_size;
  const std::int64_t num_computed = (num_leaves + num_sets - 1) / num_sets * num_sets;  // so that no rank is missed
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
    compute(batch, leaf < num_leaves ? table.of(leaf) : std::span(dropped));
  }
  table.exchange(ranks.world);
  return table;
}

}  // namespace zerofleet
