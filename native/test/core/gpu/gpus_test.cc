#include "core/gpu/gpus.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/gpu/gpu_events.h"
#include "core/gpu/gpu_use.h"
#include "test/built_files.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

const std::vector<std::string> kFake{fake_nvml_file()};

/// The file that describes GPUs (test/core/fake_nvml).
class Driver {
 public:
  explicit Driver(const std::string& lines) {
    say(lines);
    ::setenv("ZF_FAKE_NVML", path_.c_str(), 1);
  }
  ~Driver() { std::remove(path_.c_str()); }
  void say(const std::string& lines) const { std::ofstream(path_) << lines; }

 private:
  std::string path_ = std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp") + "/zf-gpus-" +
                      std::to_string(::getpid()) + ".txt";
};

std::vector<Gpu> gpus_of(const std::string& lines) {
  const Driver driver(lines);
  return list_gpus_through(kFake);
}

std::string problem_of(const std::string& fault) {
  const auto gpus = gpus_of("GPU-a 1024 " + fault + "\nGPU-b 2048\n");
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[1].problem.empty());  // a problem of one GPU does not affect the other
  return gpus[0].problem;
}

}  // namespace

TEST_CASE("GPUs are listed with the driver's description") {
  const auto gpus = gpus_of("GPU-1d2c 81920\nGPU-5e6f 1024 plain\n");
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].index == 0);
  CHECK(gpus[0].uuid == "GPU-1d2c");
  CHECK(gpus[0].name == "NVIDIA Fake G1");
  CHECK(gpus[0].memory_bytes == std::uint64_t{80} << 30);
  CHECK(gpus[0].free_bytes == std::uint64_t{60} << 30);
  CHECK(gpus[0].compute_major == 9);
  CHECK(gpus[0].compute_minor == 0);
  CHECK(gpus[0].driver == "580.65.06");
  CHECK(gpus[0].cuda_driver == "13.1");
  CHECK(gpus[0].problem.empty());
  CHECK(gpus[1].index == 1);
  CHECK(gpus[1].problem.empty());  // without ECC there is nothing to count
}

TEST_CASE("problems of a GPU are reported, and for the right GPU") {
  CHECK(problem_of("ecc") == "3 memory errors that ECC could not correct since its driver was loaded");
  CHECK(problem_of("pages") == "pages of its memory wait to be retired: it needs a reset");
  CHECK(problem_of("rows") == "rows of its memory wait to be remapped: it needs a reset");
  CHECK(problem_of("failed-rows") == "rows of its memory could not be remapped");
  CHECK(problem_of("recovery=0").empty());
  CHECK(problem_of("recovery=1") == "its driver asks for a reset of it");
  CHECK(problem_of("recovery=2") == "its driver asks for a reboot of the machine");
  CHECK(problem_of("recovery=4") ==
        "its driver asks that work on it ends, and for its recovery (action 4): look at nvidia-smi -q");
  CHECK(problem_of("rows recovery=1") == "rows of its memory wait to be remapped: it needs a reset");
  CHECK(problem_of("mig") == "it is in MIG mode, and ranks take whole GPUs");
  CHECK(problem_of("reset") == "it needs a reset");
  CHECK(problem_of("lost") == "it is lost: it fell off the bus, or can't be reached");
  CHECK(problem_of("gone") == "nvmlDeviceGetHandleByIndex: NVML: GPU is lost");
  CHECK(gpus_of("GPU-a 1024 lost\n")[0].uuid == "GPU-a");
  CHECK(gpus_of("GPU-a 1024 gone\n")[0].uuid.empty());
}

TEST_CASE("events of a GPU reach its listeners, each event once, and no events of other GPUs") {
  using Xids = std::vector<unsigned>;
  const Driver driver("GPU-a 1024\nGPU-b 1024\n");
  GpuEvents events("GPU-a", kFake), others("GPU-b", kFake);
  REQUIRE(events.is_listening());
  CHECK(events.take_xids().empty());
  driver.say("GPU-a 1024 xid=31 xid=45\nGPU-b 1024\n");
  CHECK(events.take_xids() == Xids{31, 45});
  CHECK(events.take_xids().empty());
  driver.say("GPU-a 1024 xid=31 xid=45 double-bit xid=79 lost\nGPU-b 1024\n");
  CHECK(events.take_xids() == Xids{48, 79});
  CHECK(others.take_xids().empty());
}

TEST_CASE("without NVML, without its events or without the GPU nothing is heard") {
  const Driver driver("GPU-a 1024 plain xid=31\nGPU-c 1024 lost xid=79\n");
  const std::vector<std::string> missing{"libzf-no-such-nvml.so.1"};
  GpuEvents no_library("GPU-a", missing), no_types("GPU-a", kFake), no_gpu("GPU-b", kFake), lost("GPU-c", kFake);
  for (GpuEvents* events : {&no_library, &no_types, &no_gpu, &lost}) {
    CHECK(!events->is_listening());
    CHECK(events->take_xids().empty());
  }
}

TEST_CASE("the driver tells how busy a GPU is") {
  const Driver driver("GPU-a 1024 busy=85\nGPU-b 1024\nGPU-c 1024 plain\nGPU-d 1024 lost busy=10\n");
  CHECK(GpuUse("GPU-a", kFake).busy() == 0.85);
  CHECK(GpuUse("GPU-b", kFake).busy() == 0.0);
  const std::vector<std::string> missing{"libzf-no-such-nvml.so.1"};
  for (const char* uuid : {"GPU-c", "GPU-d", "GPU-e"}) CHECK(!GpuUse(uuid, kFake).busy());
  CHECK(!GpuUse("GPU-a", missing).busy());
}

TEST_CASE("without NVML or without a driver there is no GPU; a driver that does not work is an error") {
  const std::vector<std::string> missing{"libzf-no-such-nvml.so.1"};
  CHECK(list_gpus_through(missing).empty());
  CHECK(gpus_of("driver-not-loaded\n").empty());
  CHECK(gpus_of("").empty());
  CHECK(code_of([] { gpus_of("mismatch\n"); }) == "device_unavailable");
  const std::vector<std::string> other{"libm.so.6"};
  CHECK(code_of([&] { list_gpus_through(other); }) == "device_unavailable");
}
