// Ranks that exchange over NCCL in the order of a stream, while their hosts run ahead.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "test/cuda_emulator/nccl/nccl_ranks.h"
#include "test/sanitized.h"
#include "test/train/tiny_job.h"
#include "zero/exchange/comm_queue.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

/// Three leaves a step and a dozen buckets.
struct QueuedJob : TinyJob {
  QueuedJob() : TinyJob(DType::kBF16) {
    config.device = kFirstGpu;
    config.batch.global_batch_size = 6;
    config.zero.bucket_bytes = 16384;
  }
};

std::vector<std::string> digests_over_nccl(const QueuedJob& job, int world_size, int num_steps) {
  std::vector<Digest128> sums(static_cast<std::size_t>(num_steps));
  std::mutex mutex;
  const auto codes = on_nccl_ranks(job.config, world_size, [&](Trainer& trainer) {
    for (auto& sum : sums) {
      const StepResult result = trainer.step(0);
      CHECK(result.seconds.exchange_busy > 0);
      const std::lock_guard lock(mutex);
      sum += trainer.digest_part();
    }
  });
  CHECK(codes == std::vector<std::string>(static_cast<std::size_t>(world_size), "none"));
  std::vector<std::string> texts;
  for (const Digest128& sum : sums) texts.push_back(sum.to_hex());
  return texts;
}

/// A rank's device, its communicator and the queue of its exchanges.
struct QueuedRank {
  QueuedRank(Communicator& communicator)
      : machine(kFirstGpu), comm(communicator), queue(machine.ctx, {&communicator}) {}

  /// Keeps the rank's stream busy.
  void block_for(std::chrono::milliseconds time) {
    static std::atomic<std::int64_t> milliseconds;
    milliseconds = time.count();
    REQUIRE(cudaLaunchHostFunc(
                machine.stream.handle(),
                [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); },
                nullptr) == cudaSuccess);
  }
  /// Queues that the rank writes its piece, and posts the gathering.
  void gather(Buffer& buffer, std::byte value, std::atomic<int>* num_run = nullptr) {
    const auto half = static_cast<std::int64_t>(buffer.num_bytes() / 2);
    const std::vector<Range> pieces{{0, half}, {half, 2 * half}};
    const std::span<std::byte> all(buffer.data(), buffer.num_bytes());
    const std::vector<std::byte> piece(static_cast<std::size_t>(half), value);
    Buffer pinned = Buffer::on_host_for(kFirstGpu, piece.size());
    std::memcpy(pinned.data(), piece.data(), piece.size());
    queue_copy(machine.stream, all.subspan(static_cast<std::size_t>(comm.rank() * half), piece.size()),
               {pinned.data(), piece.size()});
    kept.push_back(std::move(pinned));
    queue.post([=, this](bool failed) {
      if (failed) return;
      if (num_run != nullptr) ++*num_run;
      comm.all_gather(all, pieces);
    });
  }
  std::vector<std::byte> bytes_of(const Buffer& buffer) {
    std::vector<std::byte> bytes(buffer.num_bytes());
    copy_bytes(machine.ctx, bytes, Device{}, {buffer.data(), buffer.num_bytes()}, kFirstGpu);
    return bytes;
  }

  DeviceMachine machine;
  Communicator& comm;
  std::vector<Buffer> kept;
  CommQueue queue;
};

/// One for each exchange that is queued at a time.
std::vector<Buffer> some_buffers() {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 7; ++i) buffers.emplace_back(kFirstGpu, 2000);
  return buffers;
}

std::vector<std::string> on_queued_ranks(std::chrono::milliseconds timeout,
                                         const std::function<void(QueuedRank&)>& body) {
  const NcclBackend backend = fake_nccl_on_device();
  RelayedStores stores(2);
  return run_threads(2, [&](int rank) {
    const auto comm = connect_nccl_through(backend, {rank, 2, kFirstGpu, timeout}, stores.store(rank));
    QueuedRank queued(*comm);
    body(queued);
  });
}

/// While it lives, messages are lost.
class LostMessages {
 public:
  LostMessages() { set(1); }
  ~LostMessages() { set(0); }
  LostMessages(const LostMessages&) = delete;
  LostMessages& operator=(const LostMessages&) = delete;

 private:
  static void set(int are_lost) {
    void (*lose)(int) = nullptr;
    const auto library = fake_nccl();
    library->file.find("zfFakeNcclLoseMessages", lose);
    lose(are_lost);
  }
};

}  // namespace

DEVICE_TEST_CASE("queued exchanges: digests of 1, 2 and 3 ranks over NCCL are those of other communicators") {
  QueuedJob job;
  const auto expected = job.digests_of_run(2, 1, 2);
  for (const int world_size : {1, 2, 3}) {
    if (kSanitized && world_size < 3) continue;  // the accesses of three
    CAPTURE(world_size);
    CHECK(digests_over_nccl(job, world_size, 2) == expected);
  }
  job.config.zero.offload = Offload::kCpu;
  for (const int world_size : {1, 3}) {
    if (kSanitized && world_size == 1) continue;
    CAPTURE(world_size);
    CHECK(digests_over_nccl(job, world_size, 2) == expected);
  }
}

DEVICE_TEST_CASE("queued exchanges: a rank whose device is busy for longer than the time-out is waited for") {
  const auto codes = on_queued_ranks(400ms, [](QueuedRank& rank) {
    std::vector<Buffer> buffers = some_buffers();
    for (std::size_t i = 0; i < 3; ++i) {
      if (rank.comm.rank() == 1) rank.block_for(1200ms);
      rank.gather(buffers[i], static_cast<std::byte>(10 * static_cast<std::size_t>(rank.comm.rank()) + i));
    }
    rank.queue.drain();
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<std::byte> expected(1000, static_cast<std::byte>(i));
      expected.resize(2000, static_cast<std::byte>(10 + i));
      CHECK(rank.bytes_of(buffers[i]) == expected);
    }
  });
  CHECK(codes == std::vector<std::string>(2, "none"));
}

DEVICE_TEST_CASE(
    "queued exchanges: the host runs ahead of the device by four of them, and their time is the device's") {
  const auto codes = on_queued_ranks(30s, [](QueuedRank& rank) {
    std::vector<Buffer> buffers = some_buffers();
    rank.gather(buffers[0], std::byte{1});  // ranks connect
    rank.queue.drain();
    rank.queue.take_busy_seconds();
    std::atomic<int> num_run{0};
    rank.block_for(500ms);
    for (Buffer& buffer : buffers) rank.gather(buffer, std::byte{2}, &num_run);
    std::this_thread::sleep_for(250ms);
    CHECK(num_run == 1 + static_cast<int>(QueuedExchanges::kMost));  // one waits for room
    rank.queue.drain();
    CHECK(num_run == 7);
    const double busy = rank.queue.take_busy_seconds();
    CHECK(busy > 0);
    CHECK(busy < 0.4);  // not the time for which the rank computed
    for (const Buffer& buffer : buffers) CHECK(rank.bytes_of(buffer) == std::vector<std::byte>(2000, std::byte{2}));
  });
  CHECK(codes == std::vector<std::string>(2, "none"));
}

DEVICE_TEST_CASE(
    "queued exchanges: where nothing moves, ranks time out with all that is behind it, and wait for nothing more") {
  std::atomic<int> num_timeouts{0};
  const auto codes = on_queued_ranks(500ms, [&](QueuedRank& rank) {
    std::vector<Buffer> buffers = some_buffers();
    rank.gather(buffers[0], std::byte{1});
    rank.queue.drain();
    rank.comm.barrier();
    const LostMessages lost;
    for (std::size_t i = 0; i < 3; ++i) rank.gather(buffers[i], std::byte{2});
    const std::string code = code_of([&] { rank.queue.drain(); });
    CHECK((code == "comm_timeout" || code == "comm_failed"));  // the other rank may be the first to time out
    num_timeouts += code == "comm_timeout";
    CHECK(code_of([&] { rank.gather(buffers[3], std::byte{3}); }) == code);
    rank.machine.stream.synchronize();
    rank.queue.close();
    CHECK(code_of([&] { rank.comm.barrier(); }) != "none");
  });
  CHECK(num_timeouts > 0);
  CHECK(codes == std::vector<std::string>(2, "none"));
}

DEVICE_TEST_CASE("queued exchanges: a rank that gives up ends its own and fails those of the other") {
  const auto codes = on_queued_ranks(30s, [](QueuedRank& rank) {
    std::vector<Buffer> buffers = some_buffers();
    rank.gather(buffers[0], std::byte{1});
    rank.queue.drain();
    if (rank.comm.rank() == 1) {
      rank.block_for(200ms);
      rank.gather(buffers[0], std::byte{2});
      rank.comm.abort();
      CHECK(code_of([&] { rank.queue.drain(); }) == "comm_failed");
      throw Error("test", "the rank gives up");
    }
    for (std::size_t i = 0; i < 3; ++i) rank.gather(buffers[i], std::byte{2});
    rank.queue.drain();
  });
  CHECK(codes == std::vector<std::string>{"comm_failed", "test"});
}

DEVICE_TEST_CASE("queued exchanges: trainings whose rank dies, or whose messages are lost, end with typed errors") {
  const QueuedJob job;
  const auto dies = on_nccl_ranks(job.config, 3, [](Trainer& trainer) {
    trainer.step(0);
    if (trainer.config().rank == 1) throw Error("test", "the rank dies");
    trainer.step(0);
  });
  CHECK(dies == std::vector<std::string>{"comm_failed", "test", "comm_failed"});
  const auto lost = on_nccl_ranks(
      job.config, 2,
      [](Trainer& trainer) {
        trainer.step(0);
        const LostMessages messages;
        trainer.step(0);
      },
      1s);
  for (const auto& code : lost) CHECK((code == "comm_timeout" || code == "comm_failed"));
}
