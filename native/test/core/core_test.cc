#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include "core/device/buffer.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/system/cpu_isa.h"
#include "core/system/touch_pages.h"
#include "core/threads/thread_pool.h"

using namespace zerofleet;

TEST_CASE("bf16 rounds to nearest, ties to even, and keeps infinities and NaN") {
  CHECK(to_bf16(1.0F).bits == 0x3f80);
  CHECK(to_bf16(1.00390625F).bits == 0x3f80);  // half-way, to even below
  CHECK(to_bf16(1.01171875F).bits == 0x3f82);  // half-way, to even above
  CHECK(to_bf16(-1.0039064F).bits == 0xbf81);
  CHECK(to_bf16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(to_bf16(-std::numeric_limits<float>::infinity()).bits == 0xff80);
  CHECK(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  // A NaN whose payload sits in the lower half only must not become an infinity.
  CHECK(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001U)))));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 value{static_cast<std::uint16_t>(bits)};
    if (!std::isnan(to_float(value))) REQUIRE(to_bf16(to_float(value)).bits == value.bits);
  }
}

TEST_CASE("Philox4x32-10 gives the known answers of its authors") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox(0, {0, 0, 0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  CHECK(uniform_open(0) > 0.0);
  CHECK(uniform_open(0xffffffff) < 1.0);
}

TEST_CASE("every task runs exactly once, whatever the number of threads") {
  for (const int num_threads : {1, 2, 5}) {
    ThreadPool pool(num_threads);
    CHECK(pool.num_threads() == num_threads);
    for (int repeat = 0; repeat < 200; ++repeat) {
      std::vector<int> runs(97, 0);
      pool.parallel_for(97, [&](std::int64_t task, int worker) {
        runs[static_cast<std::size_t>(task)] += 1;
        if (worker < 0 || worker >= num_threads) throw std::logic_error("worker out of range");
      });
      REQUIRE(runs == std::vector<int>(97, 1));
    }
    pool.parallel_for(0, [](std::int64_t, int) { FAIL("no task to run"); });
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory takes all address space
TEST_CASE("threads that the system does not start are a typed error, and those that it did start end") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = std::size_t{4} << 30;  // a hundred stacks take 800 MiB and more; a thousand do not fit
    ::setrlimit(RLIMIT_AS, &limit);
    int status = 1;
    try {
      ThreadPool pool(10'000);
    } catch (const Error& error) {
      status = error.code() == "threads_unavailable" ? 0 : 2;
    }
    ::_exit(status);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

TEST_CASE("no more threads run than there are tasks") {
  ThreadPool pool(8);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::atomic<int> most{0};
    pool.parallel_for(3, [&](std::int64_t, int worker) {
      int seen = most;
      while (worker > seen && !most.compare_exchange_weak(seen, worker)) {
      }
    });
    REQUIRE(most < 3);
  }
}

TEST_CASE("an exception in a task reaches the caller after all tasks, and the pool lives on") {
  ThreadPool pool(3);
  std::atomic<int> ran{0};
  const auto failing = [&](std::int64_t task, int) {
    ++ran;
    if (task == 11) throw Error("broken", "task 11");
  };
  CHECK_THROWS_WITH_AS(pool.parallel_for(50, failing), "task 11", Error);
  CHECK(ran == 50);
  ran = 0;
  pool.parallel_for(10, [&](std::int64_t, int) { ++ran; });
  CHECK(ran == 10);
  CHECK_THROWS_AS(ThreadPool(0), Error);
}

TEST_CASE("skewed buffers differ in their offsets within a huge page and stay inside their mapping") {
  for (const int skew : {0, 1, 28}) {
    Buffer buffer(Device{}, std::size_t{5} << 20, skew);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % (std::size_t{2} << 20) ==
          static_cast<std::size_t>(skew) * 17 * 4096);
    CHECK(buffer.data()[0] == std::byte{0});
    buffer.data()[buffer.num_bytes() - 1] = std::byte{7};
  }
  CHECK_THROWS_AS(Buffer(Device{}, 64, 29), Error);
}

TEST_CASE("buffers are zeroed, aligned and movable; missing devices and absurd sizes are typed errors") {
  for (const std::size_t num_bytes : {std::size_t{1}, std::size_t{5000}, (std::size_t{2} << 20) + 3}) {
    Buffer buffer(Device{}, num_bytes);
    CHECK(buffer.num_bytes() == num_bytes);
    const std::size_t alignment = num_bytes >= (std::size_t{2} << 20) ? std::size_t{2} << 20 : 64;
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment == 0);
    for (const std::byte byte : buffer.as<std::byte>()) REQUIRE(byte == std::byte{0});
    buffer.data()[num_bytes - 1] = std::byte{7};
    const Buffer moved = std::move(buffer);
    CHECK(moved.data()[num_bytes - 1] == std::byte{7});
  }
  CHECK(Buffer(Device{}, 0).empty());
  const auto code = [](Device device, std::size_t num_bytes) {
    try {
      Buffer buffer(device, num_bytes);
    } catch (const Error& error) {
      return error.code();
    }
    return std::string("none");
  };
  CHECK(code(Device{}, std::size_t{1} << 60) == "out_of_memory");
}

TEST_CASE("instruction-set paths are known by name") {
  CHECK(cpu_isa_from_name("auto") == best_cpu_isa());
  CHECK(cpu_isa_from_name("generic") == CpuIsa::kGeneric);
  const auto refusal = [](std::string_view name) -> std::string {
    try {
      cpu_isa_from_name(name);
    } catch (const Error& error) {
      CHECK(error.code() == "isa_unavailable");
      return error.what();
    }
    return "";
  };
  CHECK(refusal("avx9000").starts_with("instruction-set path 'avx9000' is unknown; available: auto, generic"));
#if defined(__x86_64__) && !defined(ZF_HAS_AVX512)
  const bool on_machine = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  CHECK(refusal("avx512").starts_with(
      on_machine ? "instruction-set path 'avx512' is not in this build: build with ZF_ALL_ISAS=1; "
                 : "instruction-set path 'avx512' is not on this machine; "));
#endif
  // Two paths are two scopes of exactness, so no two of them may share a fingerprint.
  CHECK(numerics_fingerprint(CpuIsa::kGeneric) != numerics_fingerprint(CpuIsa::kAvx2));
  CHECK(numerics_fingerprint(CpuIsa::kAvx512) != numerics_fingerprint(CpuIsa::kAvx512Bf16));
}

TEST_CASE("touch_pages changes no byte and ends when stop is requested") {
  const std::size_t kPage = page_bytes();
  const auto resident = [&](Buffer& buffer) {
    std::vector<unsigned char> pages(buffer.num_bytes() / kPage);
    REQUIRE(::mincore(buffer.data(), buffer.num_bytes(), pages.data()) == 0);
    return std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; });
  };
  Buffer buffer(Device{}, 200 * kPage);  // too small for huge pages
  std::stop_source stop;
  stop.request_stop();
  touch_pages({buffer.data(), buffer.num_bytes()}, stop.get_token());
  CHECK(resident(buffer) == 0);
  touch_pages({buffer.data(), buffer.num_bytes()}, {});
  CHECK(resident(buffer) == 200);
  CHECK(std::ranges::all_of(buffer.as<float>(), [](float value) { return value == 0; }));
}
