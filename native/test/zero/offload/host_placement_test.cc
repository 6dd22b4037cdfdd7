// Windows of parameters in transit from host memory to each device.
#include "zero/offload/host_placement.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "kernels/flat/cast.h"
#include "kernels/flat/fold.h"
#include "test/devices_here.h"
#include "zero/partition/shard_layout.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("windows arrive whole and at their offsets, two in progress at a time") {
  for (const Device device : devices_here()) {
    DeviceMachine rank(device), comm_thread(device);
    HostPlacement placement(rank.ctx, comm_thread.ctx);
    CHECK_FALSE(placement.in_place());
    constexpr std::size_t kSizes[] = {1 << 20, 100, 3 << 20, 7, 1 << 20};
    Buffer params(device, 8 << 20);
    std::vector<std::byte> expected(params.num_bytes());
    std::size_t begin = 0;
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      const auto window = placement.open_window({params.data() + begin, kSizes[i]});
      REQUIRE(window.size() == kSizes[i]);
      std::memset(window.data(), static_cast<int>(i + 1), window.size());
      std::memset(expected.data() + begin, static_cast<int>(i + 1), kSizes[i]);
      placement.close_window();
      begin += kSizes[i] + 3;
    }
    placement.wait_for_windows();
    std::vector<std::byte> arrived(params.num_bytes());
    copy_bytes(rank.ctx, arrived, Device{}, {params.data(), params.num_bytes()}, device);
    CHECK(arrived == expected);
    CHECK(placement.staging_bytes() == (std::size_t{3} << 20) + 100);  // the largest that each has held
  }
}

DEVICE_TEST_CASE("pieces of gradients come to host memory in parts, while those before are folded") {
  for (const Device device : devices_here()) {
    DeviceMachine rank(device), comm_thread(device), cpu(Device{});
    constexpr std::size_t kWindowsBytes = std::size_t{16} << 20;
    for (const std::int64_t num_pieces : {1, 2}) {
      CAPTURE(num_pieces);
      const std::size_t numel =
          (kWindowsBytes / static_cast<std::size_t>(num_pieces) + 4098) / 2;  // of more than two windows
      HostPlacement placement(rank.ctx, comm_thread.ctx);
      std::vector<std::byte> pieces(numel * 2 * static_cast<std::size_t>(num_pieces));
      for (std::size_t i = 0; i < pieces.size(); ++i)
        pieces[i] = static_cast<std::byte>(i % 251 % 64);  // finite, of both bytes
      DeviceArray there(comm_thread.ctx, pieces);
      std::vector<std::byte> sum(numel * sizeof(float)), expected = sum;
      for (const bool restart : {true, false}) {
        Fold fold{.pieces = there.bytes(),
                  .piece_dtype = DType::kBF16,
                  .num_pieces = num_pieces,
                  .sum = sum,
                  .restart = restart};
        placement.fold(fold);
        fold.pieces = pieces;
        fold.sum = expected;
        fold_pieces(cpu.ctx, fold);
        CHECK(sum == expected);
      }
      CHECK(placement.staging_bytes() == kWindowsBytes);
    }
  }
}

DEVICE_TEST_CASE("sums of gradients in host memory have the bits of sums beside their pieces") {
  for (const Device device : devices_here()) {
    DeviceMachine rank(device), comm_thread(device), cpu(Device{});
    constexpr std::size_t kNumel = 5 * kBlockNumel;
    // Few pieces are copied to host memory, many are added up on the device.
    for (const std::int64_t num_pieces : {1, 2, 3, 8}) {
      CAPTURE(num_pieces);
      HostPlacement placement(rank.ctx, comm_thread.ctx);
      std::vector<float> values(kNumel * static_cast<std::size_t>(num_pieces));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1013) / 7 - 60;
      std::vector<std::byte> pieces(values.size() * 2);
      cast_from_f32(cpu.ctx, values, DType::kBF16, pieces);
      DeviceArray there(comm_thread.ctx, pieces);
      Buffer state = placement.allocate(kNumel * sizeof(float), 3);
      CHECK(state.device() == Device{});
      std::vector<std::byte> expected(state.num_bytes());
      for (const bool restart : {true, false, false}) {
        Fold fold{.pieces = there.bytes(),
                  .piece_dtype = DType::kBF16,
                  .num_pieces = num_pieces,
                  .sum = {state.data(), state.num_bytes()},
                  .restart = restart};
        placement.fold(fold);
        synchronize(comm_thread.ctx);
        fold.pieces = pieces;
        fold.sum = expected;
        fold_pieces(cpu.ctx, fold);
        CHECK(std::memcmp(state.data(), expected.data(), expected.size()) == 0);
      }
      // Sums of fp32 go one way in the first round and both ways later, pieces of bf16 one way.
      const bool is_ever_on_host = num_pieces <= 4, is_ever_on_device = num_pieces > 2;
      CHECK(placement.staging_bytes() ==
            (is_ever_on_host ? pieces.size() : 0) + (is_ever_on_device ? expected.size() : 0));
    }
    CHECK(HostPlacement(rank.ctx, comm_thread.ctx).context().device == Device{});
  }
}
