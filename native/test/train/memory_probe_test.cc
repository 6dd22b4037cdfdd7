#include "train/memory_probe.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "zero/partition/shard_layout.h"

using namespace zerofleet;

TEST_CASE("a rank of the memory probe keeps the bytes that ZeRO promises: 2 of every parameter, 16 of its share") {
  MemoryProbe probe;
  probe.num_params = 24 * kBlockNumel;  // whole blocks, the same number for each rank
  probe.param_numel = 3 * kBlockNumel;
  for (const int world_size : {1, 2, 4, 8}) {
    probe.world_size = world_size;
    const ZeroMemory memory = run_memory_probe(probe);
    const auto numel = static_cast<std::size_t>(probe.num_params), share = numel / static_cast<std::size_t>(world_size);
    CHECK(memory.params == 2 * numel);
    CHECK(memory.grad_shard + memory.master + memory.moments == 16 * share);
    CHECK(memory.lane_accumulator == 0);
  }
  probe.world_size = 0;
  CHECK_THROWS_AS(run_memory_probe(probe), Error);
}
