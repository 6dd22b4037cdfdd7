#include "zero/exchange/param_gather.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "test/zero/fake_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// A communicator that counts the calls and buffers of gathers.
class CallCounter final : public Communicator {
 public:
  explicit CallCounter(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    inner_.all_to_all(send, sends, recv, recvs);
  }
  void all_gathers(std::span<const Gather> gathers) override {
    ++num_calls;
    num_buffers += static_cast<int>(gathers.size());
    inner_.all_gathers(gathers);
  }
  void barrier() override { inner_.barrier(); }
  void abort() override { inner_.abort(); }

  int num_calls = 0, num_buffers = 0;

 private:
  Communicator& inner_;
};

}  // namespace

TEST_CASE("parameters are gathered by groups of buckets within a limit of bytes, and arrive the same") {
  constexpr std::int64_t kBucketBlocks = 2;
  constexpr std::size_t kBucketBytes = kBucketBlocks * kBlockNumel * 2;
  const FakeJob job;
  const ShardLayout layout(job.specs, 2, kBucketBlocks);
  const auto num_buckets = static_cast<int>(layout.num_buckets());
  REQUIRE(num_buckets >= 8);
  struct Case {
    std::size_t gather_bytes;
    int buckets_together;
  };
  for (const auto& [gather_bytes, together] : {Case{1, 1}, Case{kBucketBytes, 1}, Case{3 * kBucketBytes + 1, 3},
                                               Case{ParamGather::kGatherBytes, num_buckets}}) {
    CAPTURE(gather_bytes);
    rethrow_first(run_ranks(2, [&](Communicator& comm) {
      ThreadPool pool(1);
      const Context context{Device{}, &pool, best_cpu_isa()};
      CallCounter counter(comm);
      CommQueue queue(context);
      const auto placement = make_state_placement(context, queue.context(), Offload::kNone);
      ParamGather params(std::make_unique<ParamMemory>(Device{}, counter), layout, queue, *placement, DType::kBF16,
                         gather_bytes);
      params.write([&](const Range& buckets, const ParamWindow& window) {
        CHECK(buckets.size() == 1);
        for (std::size_t i = 0; i < window.bytes.size(); ++i) {
          const std::int64_t block = window.first_block + static_cast<std::int64_t>(i) / (kBlockNumel * 2);
          window.bytes[i] = static_cast<std::byte>(1 + block % 200);
        }
      });
      queue.drain();
      CHECK(counter.num_calls == (num_buckets + together - 1) / together);
      CHECK(counter.num_buffers == num_buckets);
      const auto flat = params.flat();
      bool all_here = true;
      for (std::size_t i = 0; i < flat.size(); ++i) {
        all_here &= flat[i] == static_cast<std::byte>(1 + static_cast<std::int64_t>(i) / (kBlockNumel * 2) % 200);
      }
      CHECK(all_here);
    }));
  }
}
