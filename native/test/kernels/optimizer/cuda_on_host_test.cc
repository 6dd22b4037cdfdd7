#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "kernels/flat/cuda/block_lanes.h"
#include "kernels/optimizer/cuda/lamb_lane.h"
#include "kernels/optimizer/cuda/segment_batch.h"
#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/optimizer_update.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/on_host.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Arrays of one optimizer and their cut into segments.
struct OptimizerArrays {
  OptimizerDTypes dtypes;
  Bytes master, grad, params, average;
  std::vector<float> states[2];

  OptimizerArrays(std::size_t numel, const OptimizerDTypes& types)
      : dtypes(types),
        master(random_array(numel, types.master, 6)),
        grad(random_array(numel, types.grad, 7)),
        params(numel * size_of(types.params)),
        average(random_array(numel, DType::kF32, 10)),
        states{random_floats(numel, 8), random_floats(numel, 9)} {
    for (float& v : states[1]) v = v * v;
    for (std::size_t i = 0; i < numel; i += 3) states[0][i] = 0;
  }

  std::vector<OptimizerSegment> segments(std::span<const std::size_t> cuts) {
    std::vector<OptimizerSegment> result;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const std::size_t begin = cuts[i];
      OptimizerSegment segment;
      segment.master = master.data() + begin * size_of(dtypes.master);
      segment.states[0] = states[0].data() + begin;
      segment.states[1] = states[1].data() + begin;
      segment.grad = grad.data() + begin * size_of(dtypes.grad);
      segment.params = i % 3 == 2 ? nullptr : params.data() + begin * size_of(dtypes.params);
      segment.numel = static_cast<std::int64_t>(cuts[i + 1] - begin);
      segment.group = i % 2;
      if (i % 4 < 2) segment.average = {reinterpret_cast<float*>(average.data()) + begin, 0.25F};
      result.push_back(segment);
    }
    return result;
  }

  bool operator==(const OptimizerArrays& other) const {
    return master == other.master && params == other.params && states[0] == other.states[0] &&
           states[1] == other.states[1] && average == other.average;
  }
};

/// More segments than a batch has, odd lengths and addresses, and whole blocks.
std::vector<std::size_t> cuts_of_segments() {
  std::vector<std::size_t> cuts{0, 4096, 4096, 4099, 9000};
  while (cuts.size() < 90) cuts.push_back(cuts.back() + 1 + cuts.size() % 7 * 300);
  return cuts;
}

/// Under a sanitizer on a fifth of the combinations, in which each array has each of its types.
void on_all_dtypes(const std::function<void(const OptimizerDTypes&)>& body) {
  std::size_t number = 0;
  for (const DType master : {DType::kF32, DType::kF16}) {
    for (const DType grad : kAllDTypes) {
      for (const DType params : kAllDTypes) {
        if (!kSanitized || number % 5 == 0) body({master, grad, params});
        ++number;
      }
    }
  }
}

using Segments = std::span<const OptimizerSegment>;

/// All tiles and threads of an update, one after another.
template <class Update>
void update_on_host(Segments segments, const OptimizerDTypes& dtypes,
                    std::span<const typename Update::Scalars> groups) {
  using Scalars = typename Update::Scalars;
  cuda::for_each_batch<Scalars>(segments, dtypes, cuda::kUpdateTile, groups,
                                [](const cuda::SegmentBatch<Scalars>& batch) {
                                  for (std::int64_t tile = 0; tile < batch.num_tiles(); ++tile) {
                                    for (int thread = 0; thread < cuda::kUpdateThreads; ++thread)
                                      cuda::update_tile<Update>(batch, tile, thread);
                                  }
                                });
}

/// `expected` runs the CPU kernel, `actual` the device's code.
void check_equal_updates(const std::function<void(Segments, const OptimizerDTypes&)>& expected,
                         const std::function<void(Segments, const OptimizerDTypes&)>& actual) {
  const auto cuts = cuts_of_segments();
  on_all_dtypes([&](const OptimizerDTypes& dtypes) {
    OptimizerArrays a(cuts.back(), dtypes), b(cuts.back(), dtypes);
    const OptimizerArrays before = a;
    expected(a.segments(cuts), dtypes);
    actual(b.segments(cuts), dtypes);
    CHECK(a == b);
    CHECK(!(a == before));
  });
}

template <class Update>
void check_update(const std::vector<typename Update::Scalars>& groups) {
  check_equal_updates(
      [&](Segments segments, const OptimizerDTypes& dtypes) {
        optimizer_update<Update>(cpu_context(), segments, dtypes, groups);
      },
      [&](Segments segments, const OptimizerDTypes& dtypes) { update_on_host<Update>(segments, dtypes, groups); });
}

const std::vector<LambScalars> kLambGroups{{0.37F, 0.1F, 0.95F, 0.05F, 1e-6F, 0.01F, 1.7F, 1.3F, 0.02F},
                                           {0.37F, 0.1F, 0.95F, 0.05F, 1e-6F, 0, 1.7F, 1.3F, 0.01F}};

}  // namespace

TEST_CASE("a device thread's optimizer updates give the CPU kernels' bits") {
  check_update<AdamWUpdate>({{0.37F, 0.1F, 0.95F, 0.05F, 1e-8F, 0.9997F, 2e-3F, 1.7F},
                             {0.37F, 0.1F, 0.95F, 0.05F, 1e-8F, 1.0F, 1e-3F, 1.7F}});
  check_update<AdamUpdate>(
      {{0.37F, 0.1F, 0.1F, 0.95F, 0.05F, 1e-8F, 2e-3F, 1.7F}, {0.37F, 0.0F, 0.1F, 0.95F, 0.05F, 1e-8F, 1e-3F, 1.7F}});
  check_update<LionUpdate>({{0.37F, 0.1F, 0.01F, 0.9997F, 2e-3F}, {0.0F, 0.1F, 0.01F, 1.0F, 1e-3F}});
  check_update<AdagradUpdate>({{0.37F, 0.1F, 1e-10F, 2e-3F}, {0.37F, 0.0F, 1e-10F, 1e-3F}});
  const std::vector<SgdScalars> sgd{{0.37F, 0.1F, 0.02F, 0.9F, 0.5F}, {0.37F, 0.0F, 0.01F, 0.8F, 1}};
  check_update<SgdUpdate>(sgd);
  check_update<SgdMomentumUpdate>(sgd);
  check_update<SgdNesterovUpdate>(sgd);
}

TEST_CASE("a device thread's second LAMB pass gives the CPU kernel's bits") {
  const auto ratio_of = [](std::size_t i) { return 0.5F + 0.01F * static_cast<float>(i); };
  check_equal_updates(
      [&](Segments segments, const OptimizerDTypes& dtypes) {
        std::vector<float> ratios;
        for (std::size_t i = 0; i < segments.size(); ++i) ratios.push_back(ratio_of(i));
        lamb_update(cpu_context(), segments, dtypes, kLambGroups, ratios);
      },
      [&](Segments segments, const OptimizerDTypes& dtypes) {
        std::vector<OptimizerSegment> own(segments.begin(), segments.end());
        std::vector<LambScalars> scalars;
        for (std::size_t i = 0; i < own.size(); ++i) {
          scalars.push_back(kLambGroups[own[i].group]);
          scalars.back().lr = scalars.back().lr * ratio_of(i);
          own[i].group = i;
        }
        update_on_host<LambUpdate>(own, dtypes, scalars);
      });
}

TEST_CASE("a warp's first LAMB pass moves the moments and sums the squares as the CPU kernel does") {
  constexpr std::int64_t kBlock = 256;
  std::vector<std::size_t> cuts{0};
  while (cuts.size() < 40) cuts.push_back(cuts.back() + cuts.size() % 5 * kBlock);
  const std::size_t num_blocks = cuts.back() / kBlock;
  std::vector<std::int64_t> first_stats;
  for (const std::size_t cut : std::span(cuts).first(cuts.size() - 1)) {
    first_stats.push_back(static_cast<std::int64_t>(cut) / kBlock);
  }
  on_all_dtypes([&](const OptimizerDTypes& dtypes) {
    OptimizerArrays a(cuts.back(), dtypes), b(cuts.back(), dtypes);
    std::vector<double> weights(num_blocks), updates(num_blocks);
    lamb_prepare(cpu_context(), a.segments(cuts), dtypes, kLambGroups, {kBlock, first_stats, weights, updates});
    const auto segments = b.segments(cuts);
    std::size_t next = 0, num_wrong = 0;
    const auto run = [&](const cuda::SegmentBatch<LambScalars>& batch) {
      for (std::int64_t tile = 0; tile < batch.num_tiles(); ++tile, ++next) {
        std::vector<double> weight_lanes, update_lanes;
        for (int lane = 0; lane < cuda::kLanes; ++lane) {
          const cuda::LambLane part = cuda::lamb_lane(batch, tile, kBlock, lane);
          weight_lanes.push_back(part.weights);
          update_lanes.push_back(part.updates);
        }
        num_wrong += folded_by_halves(weight_lanes) != weights[next] || folded_by_halves(update_lanes) != updates[next];
      }
    };
    cuda::for_each_batch<LambScalars>(segments, dtypes, kBlock, kLambGroups, run);
    CHECK(next == num_blocks);
    CHECK(num_wrong == 0);
    CHECK(a == b);
  });
}
