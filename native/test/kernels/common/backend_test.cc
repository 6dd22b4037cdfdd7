// The tables of backend_of(): an operation that a device lacks is refused by name, before anything is done.
#include "kernels/common/backend.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/moe/row_order.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("backend: an operation without a row is refused, with the operation and the device") {
  Machine machine(best_cpu_isa(), 1);
  const std::vector<std::int32_t> first{0, 2};
  std::vector<std::int32_t> counts(1);
  try {
    count_rows(machine.ctx, first, counts);
    FAIL("a CPU counts no rows");
  } catch (const Error& error) {
    CHECK(error.code() == "operation_unsupported");
    CHECK(std::string(error.what()) == "count_rows has no implementation for the device cpu");
  }
}

TEST_CASE("backend: a null row does nothing but refuse, others run") {
  Machine machine(best_cpu_isa(), 1);
  Operation<int(int)> twice("twice");
  CHECK(!twice.is_there());
  CHECK(code_of([&] { twice(machine.ctx, 4); }) == "operation_unsupported");
  twice = [](const Context&, int value) { return 2 * value; };
  CHECK(twice.is_there());
  CHECK(twice(machine.ctx, 4) == 8);
}

TEST_CASE("backend: a device that is not there has no table, or none that works") {
  CHECK(code_of([] { backend_of(absent_device()).numerics(absent_device(), CpuIsa::kGeneric); }) ==
        "device_unavailable");
}
