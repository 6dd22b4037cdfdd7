// Memory, streams and copies: on the CPU, and on every CUDA device that is found.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/stream.h"
#include "core/device/transfer.h"
#include "core/error.h"
#include "test/devices_here.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::string code_of_buffer(Device device, std::size_t num_bytes) {
  try {
    Buffer buffer(device, num_bytes);
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

std::vector<std::byte> counted_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

}  // namespace

TEST_CASE("bytes go to every device and come back, and fresh memory of it is zero") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    for (const std::size_t count : {std::size_t{1}, std::size_t{4099}, std::size_t{5} << 20}) {
      const auto sent = counted_bytes(count);
      Buffer first(device, count), second(device, count);
      std::vector<std::byte> back(count, std::byte{9});
      copy_bytes(machine.ctx, back, Device{}, {second.data(), count}, device);
      CHECK(back == std::vector<std::byte>(count));
      copy_bytes(machine.ctx, {first.data(), count}, device, sent, Device{});
      copy_bytes(machine.ctx, {second.data(), count}, {first.data(), count});
      fill_zero(machine.ctx, {first.data(), count});
      copy_bytes(machine.ctx, back, Device{}, {second.data(), count}, device);
      CHECK(back == sent);
      copy_bytes(machine.ctx, back, Device{}, {first.data(), count}, device);
      CHECK(back == std::vector<std::byte>(count));
    }
  }
}

TEST_CASE("host memory for a device is zeroed, and the device reads and writes it") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    constexpr std::size_t kCount = (std::size_t{3} << 20) + 5;
    Buffer host = Buffer::on_host_for(device, kCount, 2);
    CHECK(host.device() == Device{});
    for (const std::byte byte : host.as<std::byte>()) REQUIRE(byte == std::byte{0});
    const auto sent = counted_bytes(kCount);
    std::memcpy(host.data(), sent.data(), kCount);
    Buffer there(device, kCount);
    copy_bytes(machine.ctx, {there.data(), kCount}, device, {host.data(), kCount}, Device{});
    std::memset(host.data(), 0, kCount);
    copy_bytes(machine.ctx, {host.data(), kCount}, Device{}, {there.data(), kCount}, device);
    CHECK(std::memcmp(host.data(), sent.data(), kCount) == 0);
  }
}

TEST_CASE("a stream waits for the event of another one") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device), other(device);
    constexpr std::size_t kCount = std::size_t{32} << 20;
    const auto sent = counted_bytes(kCount);
    Buffer source(device, kCount), middle(device, kCount), target(device, kCount);
    copy_bytes(machine.ctx, {source.data(), kCount}, device, sent, Device{});
    Event copied(device);
    for (int repeat = 0; repeat < 20; ++repeat) fill_zero(machine.ctx, {middle.data(), kCount});
    copy_bytes(machine.ctx, {middle.data(), kCount}, {source.data(), kCount});
    copied.record(*machine.ctx.stream);
    other.ctx.stream->wait(copied);
    copy_bytes(other.ctx, {target.data(), kCount}, {middle.data(), kCount});
    synchronize(other.ctx);
    CHECK(other.ctx.stream->is_done());
    CHECK(machine.ctx.stream->is_done());  // it had to end first
    std::vector<std::byte> back(kCount);
    copy_bytes(other.ctx, back, Device{}, {target.data(), kCount}, device);
    CHECK(back == sent);
  }
}

TEST_CASE("devices that are not here and copies of unequal size are refused") {
  const Device absent = absent_device();
  CHECK(code_of_buffer(absent, 16) == "device_unavailable");
  CHECK(code_of_buffer(absent, 0) == "device_unavailable");
  const auto code_of = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return std::string("none");
  };
  CHECK(code_of([&] { Stream stream(absent); }) == "device_unavailable");
  CHECK(code_of([&] { Event event(absent); }) == "device_unavailable");
  CHECK(code_of([&] { Buffer::on_host_for(absent, 16); }) == "device_unavailable");
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    Buffer eight(device, 8);
    std::vector<std::byte> nine(9);
    CHECK(code_of([&] { copy_bytes(machine.ctx, nine, Device{}, {eight.data(), 8}, device); }) == "invalid_argument");
    if (device.kind == DeviceKind::kCpu) continue;
    CHECK(code_of_buffer(device, std::size_t{1} << 50) == "out_of_memory");
    CHECK(code_of([&] { fill_zero({device}, {eight.data(), 8}); }) == "invalid_argument");  // no stream
  }
}
