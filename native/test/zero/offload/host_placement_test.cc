// Windows of parameters in transit from host memory to each device.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "test/devices_here.h"
#include "zero/offload/host_placement.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("windows arrive whole and in their places, two in progress at a time") {
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

TEST_CASE("pieces of gradients come from each device to host memory") {
  for (const Device device : devices_here()) {
    DeviceMachine rank(device), comm_thread(device);
    HostPlacement placement(rank.ctx, comm_thread.ctx);
    for (const std::size_t count : {std::size_t{1000}, std::size_t{50}, std::size_t{3} << 20}) {
      std::vector<std::byte> sent(count, static_cast<std::byte>(count % 200 + 1));
      DeviceArray there(comm_thread.ctx, sent);
      const auto pieces = placement.bring_pieces(there.bytes());
      CHECK(std::vector<std::byte>(pieces.begin(), pieces.end()) == sent);
    }
    Buffer state = placement.allocate(5000, 3);
    CHECK(state.device() == Device{});
    CHECK(placement.context().device == Device{});
    CHECK(placement.comm_context().device == Device{});
  }
}
