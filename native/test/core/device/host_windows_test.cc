// Large arrays of every device, read and written by the host piece by piece.
#include "core/device/host_windows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/transfer.h"
#include "test/devices_here.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::size_t kWindow = 4096;

std::byte value_at(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 4096); }

}  // namespace

DEVICE_TEST_CASE("windows carry all bytes in order, whatever their number") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    HostWindows windows(kWindow);
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, kWindow - 1, kWindow, kWindow + 1, 3 * kWindow + 7}) {
      CAPTURE(count);
      Buffer first(device, count + 1), second(device, count + 1);
      windows.write(machine.ctx, {first.data(), count}, [&](std::size_t offset, std::span<std::byte> bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value_at(offset + i);
      });
      // Queued behind the writes, without waiting for them.
      copy_bytes(machine.ctx, {second.data(), count}, {first.data(), count});
      fill_zero(machine.ctx, {first.data(), count});
      std::vector<std::byte> back;
      windows.read(machine.ctx, {second.data(), count}, [&](std::size_t offset, std::span<const std::byte> bytes) {
        CHECK(offset == back.size());
        back.insert(back.end(), bytes.begin(), bytes.end());
      });
      REQUIRE(back.size() == count);
      bool equal = true;
      for (std::size_t i = 0; i < count; ++i) equal = equal && back[i] == value_at(i);
      CHECK(equal);
    }
  }
}

DEVICE_TEST_CASE("writes in a row do not overwrite a window before its copy is done") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    constexpr std::size_t kWrites = 9;
    Buffer target(device, kWrites * kWindow);
    {
      HostWindows windows(kWindow);
      for (std::size_t write = 0; write < kWrites; ++write) {
        windows.write(machine.ctx, {target.data() + write * kWindow, kWindow},
                      [&](std::size_t, std::span<std::byte> bytes) {
                        std::ranges::fill(bytes, static_cast<std::byte>(write + 1));
                      });
      }
    }  // the windows wait for their last copies before their memory goes
    std::vector<std::byte> back(kWrites * kWindow);
    copy_bytes(machine.ctx, back, Device{}, {target.data(), back.size()}, device);
    for (std::size_t write = 0; write < kWrites; ++write) {
      CHECK(back[write * kWindow] == static_cast<std::byte>(write + 1));
      CHECK(back[(write + 1) * kWindow - 1] == static_cast<std::byte>(write + 1));
    }
  }
}
