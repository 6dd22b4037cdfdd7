// Gradients on their way to their owners: the terms of a sum on any number of ranks, and the bytes between nodes.
#include "zero/exchange/grad_exchange.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/flat/fold.h"
#include "test/sanitized.h"
#include "test/zero/fake_job.h"
#include "test/zero/narrow_values.h"
#include "test/zero/random_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Counts the bytes that a rank sends to ranks of other nodes, each of which has `node_size` consecutive ranks.
class CountsByNode final : public Communicator {
 public:
  CountsByNode(Communicator& inner, int node_size) : inner_(inner), node_size_(node_size) {}

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    for (const Message& message : sends) {
      if (message.peer == rank()) continue;
      sent += message.bytes.size();
      if (message.peer / node_size_ != rank() / node_size_) to_other_nodes += message.bytes.size();
    }
    inner_.all_to_all(send, sends, recv, recvs);
  }
  void all_gathers(std::span<const Gather> gathers) override { inner_.all_gathers(gathers); }
  void barrier() override { inner_.barrier(); }
  void abort() override { inner_.abort(); }

  std::int64_t sent = 0, to_other_nodes = 0;

 private:
  Communicator& inner_;
  int node_size_;
};

/// One step's lanes of a flat array: gradients of very different sizes.
struct Lanes {
  std::vector<ParamSpec> specs;
  std::int64_t bucket_blocks = 1, num_lanes = 1, group = 1;
  DType reduce_dtype = DType::kF32;
  std::uint64_t seed = 0;

  std::int64_t numel() const { return ShardLayout(specs, 1, bucket_blocks).padded_numel(); }

  std::vector<float> lane(std::int64_t lane) const {
    Draws draws(seed * 1000 + static_cast<std::uint64_t>(lane));
    std::vector<float> values(static_cast<std::size_t>(numel()));
    // One number in eight is drawn, the others follow from it: drawing is slow.
    float drawn = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 8 == 0)
        drawn = std::ldexp(static_cast<float>(draws.below(1 << 20)) - 0x1p19F, -static_cast<int>(draws.below(24)));
      values[i] = rounded(drawn * static_cast<float>(i % 8 + 1), reduce_dtype);
    }
    return values;
  }

  /// As one would write it down.
  std::vector<float> sum() const {
    std::vector<float> sum(static_cast<std::size_t>(numel()), 0.0F), of_group(sum.size(), 0.0F);
    for (std::int64_t number = 0; number < num_lanes; ++number) {
      const std::vector<float> values = lane(number);
      for (std::size_t i = 0; i < sum.size(); ++i) of_group[i] += values[i];
      if ((number + 1) % group != 0 && number + 1 != num_lanes) continue;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rounded(of_group[i], reduce_dtype);
      std::ranges::fill(of_group, 0.0F);
    }
    return sum;
  }
};

struct Outcome {
  std::vector<float> sum;                          // of all owners
  std::vector<std::int64_t> sent, to_other_nodes;  // by rank
};

/// Exchanges a step's lanes on `world_size` ranks.
Outcome exchanged(const Lanes& lanes, int world_size, int node_size) {
  Outcome outcome{std::vector<float>(static_cast<std::size_t>(lanes.numel())), {}, {}};
  outcome.sent.resize(static_cast<std::size_t>(world_size));
  outcome.to_other_nodes.resize(outcome.sent.size());
  const std::size_t width = size_of(lanes.reduce_dtype);
  rethrow_first(run_ranks(world_size, [&](Communicator& inner) {
    CountsByNode comm(inner, node_size);
    ThreadPool pool(1);
    const Context context{Device{}, &pool, best_cpu_isa()};
    const ShardLayout layout(lanes.specs, world_size, lanes.bucket_blocks);
    const LeafSchedule schedule(lanes.num_lanes, lanes.num_lanes, world_size, lanes.group);
    CommQueue queue(context);
    const auto exchange = make_grad_exchange(queue, layout, schedule, comm, lanes.reduce_dtype);
    for (std::int64_t round = 0; round < schedule.num_rounds(); ++round) {
      const bool sends = comm.rank() < schedule.num_senders(round);
      std::vector<std::byte> values;
      if (sends) values = stored(lanes.lane(round * world_size + comm.rank()), lanes.reduce_dtype);
      for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
        const Range all = scaled(layout.bucket_blocks(bucket), kBlockNumel * static_cast<std::int64_t>(width));
        std::span<std::byte> contents;
        if (sends)
          contents =
              std::span(values).subspan(static_cast<std::size_t>(all.begin), static_cast<std::size_t>(all.size()));
        const GradTerms terms = exchange->exchange(schedule.round(round), bucket, contents);
        if (terms.count == 0) continue;
        const Range owned = scaled(layout.owned_blocks(bucket, comm.rank()), kBlockNumel);
        const auto sum = std::span(outcome.sum)
                             .subspan(static_cast<std::size_t>(owned.begin), static_cast<std::size_t>(owned.size()));
        fold_pieces(context, {.pieces = terms.bytes,
                              .piece_dtype = lanes.reduce_dtype,
                              .num_pieces = terms.count,
                              .sum = std::as_writable_bytes(sum),
                              .restart = terms.first == 0});
      }
    }
    outcome.sent[static_cast<std::size_t>(comm.rank())] = comm.sent;
    outcome.to_other_nodes[static_cast<std::size_t>(comm.rank())] = comm.to_other_nodes;
  }));
  return outcome;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// `num_blocks` blocks in buckets of `bucket_blocks`.
Lanes lanes_of(std::int64_t num_blocks, std::int64_t bucket_blocks) {
  Lanes lanes;
  lanes.specs = {{"weight", {num_blocks * kBlockNumel}}};
  lanes.bucket_blocks = bucket_blocks;
  return lanes;
}

}  // namespace

TEST_CASE("property: terms of groups of lanes add up to the same bits on any number of ranks") {
  const int num_jobs = kSanitized ? 10 : 60;
  for (int number = 0; number < num_jobs; ++number) {
    Draws draws(static_cast<std::uint64_t>(7000 + number));
    const std::int64_t num_blocks = 1 + draws.below(9);
    Lanes lanes = lanes_of(num_blocks, 1 + draws.below(num_blocks));
    lanes.seed = static_cast<std::uint64_t>(number);
    lanes.num_lanes = 1 + draws.below(33);
    lanes.group = number % 3 == 0 ? 8 : 1 + draws.below(9);
    lanes.reduce_dtype = kAllDTypes[draws.below(3)];
    const std::vector<float> expected = lanes.sum();
    const auto most = static_cast<int>(std::min<std::int64_t>(lanes.num_lanes, 25));
    // Whole groups, which are exchanged in two steps, where there can be some, and two other numbers.
    const int whole = std::max(1, most / static_cast<int>(lanes.group)) * static_cast<int>(lanes.group);
    for (const int world_size :
         {std::min(whole, most), 1 + static_cast<int>(draws.below(most)), 1 + static_cast<int>(draws.below(most))}) {
      CAPTURE(number);
      CAPTURE(num_blocks);
      CAPTURE(lanes.bucket_blocks);
      CAPTURE(lanes.num_lanes);
      CAPTURE(lanes.group);
      CAPTURE(world_size);
      REQUIRE(same_bits(exchanged(lanes, world_size, 8).sum, expected));
    }
  }
}

TEST_CASE("groups of lanes: another size gives other bits, groups of one lane are the fold of lanes") {
  Lanes lanes = lanes_of(3, 2);
  lanes.num_lanes = 9;
  lanes.reduce_dtype = DType::kBF16;
  std::vector<std::vector<float>> sums;
  for (const std::int64_t group : {1, 2, 8}) {
    lanes.group = group;
    sums.push_back(exchanged(lanes, 1, 1).sum);
  }
  CHECK(!same_bits(sums[0], sums[1]));
  CHECK(!same_bits(sums[1], sums[2]));
  std::vector<float> folded(sums[0].size(), 0.0F);
  for (std::int64_t lane = 0; lane < lanes.num_lanes; ++lane) {
    const std::vector<float> values = lanes.lane(lane);
    for (std::size_t i = 0; i < folded.size(); ++i) folded[i] += values[i];
  }
  CHECK(same_bits(sums[0], folded));
}

TEST_CASE("groups of eight lanes: an eighth of a bucket leaves a node through each of its eight ranks") {
  for (const int world_size : {8, 16, 32}) {
    CAPTURE(world_size);
    Lanes lanes = lanes_of(64, 64);
    lanes.reduce_dtype = DType::kBF16;
    lanes.num_lanes = world_size;
    const std::int64_t bucket = lanes.numel() * 2;
    const Outcome flat = exchanged(lanes, world_size, 8);
    lanes.group = 8;
    const Outcome grouped = exchanged(lanes, world_size, 8);
    for (std::size_t rank = 0; rank < flat.sent.size(); ++rank) {
      CHECK(flat.sent[rank] == bucket - bucket / world_size);
      CHECK(flat.to_other_nodes[rank] == bucket * (world_size - 8) / world_size);
      CHECK(grouped.sent[rank] == flat.sent[rank]);
      CHECK(grouped.to_other_nodes[rank] == flat.to_other_nodes[rank] / 8);
    }
  }
}

TEST_CASE("groups of lanes: on nodes with half a group's ranks fewer bytes leave them, too") {
  Lanes lanes = lanes_of(64, 64);
  lanes.num_lanes = 16;
  const Outcome flat = exchanged(lanes, 16, 4);
  lanes.group = 8;
  const Outcome grouped = exchanged(lanes, 16, 4);
  const std::int64_t bucket = lanes.numel() * 4;
  for (std::size_t rank = 0; rank < flat.sent.size(); ++rank) {
    CHECK(flat.to_other_nodes[rank] == bucket * 12 / 16);
    CHECK(grouped.to_other_nodes[rank] == bucket * 4 / 8 + bucket / 16);
    CHECK(grouped.sent[rank] == flat.sent[rank]);
  }
}
