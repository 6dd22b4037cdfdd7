// The host's side of cuDNN: which calls of attention it computes, by which engine, and the names of those that it does
// not.
#include "kernels/attention/cuda/cudnn_attention.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/built_files.h"
#include "test/cuda_emulator/cudnn/attention_calls.h"
#include "test/cuda_emulator/cudnn/fake_cudnn.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/kernels/host_matrix.h"
#include "test/shared_bytes.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Fault = FakeCudnn::Fault;
using Offer = FakeCudnn::Offer;

}  // namespace

DEVICE_TEST_CASE(
    "attention by cuDNN: an engine is chosen once for a shape, its rows, window and type, after one trial") {
  Machine9 m;
  cudnn::Attention attention = attention_of(m.ctx);
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  Calls first(kShape), again(kShape), windowed(kShape, DType::kBF16, {20}), fp16(kShape, DType::kF16);
  const int heuristics = fake.num_heuristics(), forwards = fake.num_forwards(), backwards = fake.num_backwards();
  for (Calls* calls : {&first, &again, &windowed, &fp16, &first}) {
    REQUIRE(attention.run(calls->forward()));
    REQUIRE(attention.run(calls->backward()));
  }
  synchronize(m.ctx);
  CHECK(attention.num_plans() == 6);
  CHECK(fake.num_heuristics() - heuristics == 6);
  CHECK(fake.num_forwards() - forwards == 5 + 3);
  CHECK(fake.num_backwards() - backwards == 5 + 3);
  CHECK(first.out == again.out);
  CHECK(first.dqkv == again.dqkv);
  const emulator::Counts before = emulator::counts();
  attention.run(first.forward());
  attention.run(first.backward());
  CHECK(emulator::counts().waits == before.waits);
  synchronize(m.ctx);
}

// Against float64 the cases of attention_test.cc, which run once more with this library (CMakeLists.txt).
DEVICE_TEST_CASE(
    "attention by cuDNN: results are those of our own kernels, for shared keys, windows and broken tiles") {
  Machine9 m;
  const EnvironmentVariable off("ZF_CUDNN", "off");
  Scratch scratch(m.ctx);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const auto& [shape, window] : std::vector<std::pair<AttentionShape, std::int64_t>>{
             {{2, 70, 6, 2, 8}, 0}, {{1, 130, 4, 1, 80}, 50}, {{3, 33, 2, 2, 64}, 1}, {{1, 64, 2, 1, 136}, 100}}) {
      CAPTURE(shape.head_dim);
      Calls calls(shape, dtype, {window}), own(shape, dtype, {window});
      cudnn::Attention attention = attention_of(m.ctx);
      REQUIRE(attention.run(calls.forward()));
      REQUIRE(attention.run(calls.backward()));
      zerofleet::attention(m.ctx, scratch, {shape, own.qkv.view(), own.out.view(), own.lse, own.options});
      attention_backward(
          m.ctx, scratch,
          {shape, own.qkv.view(), own.out.view(), own.lse, own.dout.view(), own.dqkv.view(), own.options});
      synchronize(m.ctx);
      CHECK(relative_error(calls.out, table_of(own.out)) < tolerance(dtype));
      CHECK(relative_error(calls.dqkv, table_of(own.dqkv)) < 2 * tolerance(dtype));
      for (std::size_t i = 0; i < calls.lse.size(); ++i) CHECK(std::abs(calls.lse[i] - own.lse[i]) < 1e-4F);
    }
  }
}

DEVICE_TEST_CASE("attention by cuDNN: calls that it is not asked about, by name") {
  Machine9 m;
  cudnn::Attention attention = attention_of(m.ctx);
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  const int before = fake.num_heuristics();
  const auto reason = [&](Calls&& calls) {
    const std::string forward = attention.reason_against(calls.forward());
    CHECK(attention.reason_against(calls.backward()) == forward);
    CHECK(!attention.run(calls.forward()));
    return forward;
  };
  CHECK(reason(Calls(kShape, DType::kF32)) == "it takes no fp32");
  CHECK(reason(Calls(kShape, DType::kBF16, {0, {}, {1, 2, 3, 4}, 0.1})) == "its dropout would drop other elements");
  const SharedValues<std::int32_t> starts(std::vector<std::int32_t>(128, 0));
  const std::vector<std::int32_t> on_host(128, 0);
  CHECK(reason(Calls(kShape, DType::kBF16, {0, {on_host, starts.data()}})) == "it does not know documents");
  CHECK(reason(Calls({2, 1, 4, 2, 16})) == "it takes no sequences of one token");
  for (const std::int64_t width : {12, 264}) {
    CHECK(reason(Calls({1, 8, 1, 1, width})) == "heads must have a multiple of 8 columns, and up to 256");
  }
  Calls odd(kShape);
  cudnn::Call call = odd.forward();
  call.shape.out_row += 1;
  CHECK(attention.reason_against(call) == "rows must begin at multiples of 16 bytes");
  CHECK(fake.num_heuristics() == before);
}

DEVICE_TEST_CASE(
    "attention by cuDNN: versions and devices whose results are wrong, or differ from run to run, by name") {
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  Machine9 m;
  const auto reasons = [&](const AttentionShape& shape) {
    cudnn::Attention attention = attention_of(m.ctx);
    Calls calls(shape);
    return std::array{attention.reason_against(calls.forward()), attention.reason_against(calls.backward())};
  };
  fake.set_version(91001);
  CHECK(reasons(kShape)[0] == "versions before 9.10.2 are not used");
  fake.set_version(91500);
  CHECK(reasons(kShape)[0].empty());
  CHECK(reasons(kShape)[1] == "its backward needs sequences of a multiple of 128 tokens up to version 9.15.0");
  CHECK(reasons({1, 128, 2, 2, 16})[1].empty());
  fake.set_version(91501);
  CHECK(reasons(kShape)[1].empty());
  const EnvironmentVariable ampere("ZF_EMULATED_COMPUTE", "8");
  CHECK(reasons(kShape)[0].empty());
  CHECK(reasons(kShape)[1] == "on a GPU of compute capability 8.x no backward of a fixed order is known");
}

DEVICE_TEST_CASE(
    "attention by cuDNN: graphs without an engine, or without a deterministic one, go to our kernels by name") {
  Machine9 m;
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  Calls calls(kShape);
  const std::array<std::pair<Offer, const char*>, 2> offers{
      {{Offer::kNone, "it has no engine for it (Warning: NOT_SUPPORTED_SHAPE; Reason: too wide)"},
       {Offer::kNondeterministic, "none of its engines is deterministic"}}};
  for (const auto& [offer, reason] : offers) {
    fake.offer(offer);
    cudnn::Attention attention = attention_of(m.ctx);
    const int before = fake.num_heuristics(), forwards = fake.num_forwards();
    for (const cudnn::Call& call : {calls.forward(), calls.backward(), calls.forward()}) {
      CHECK(attention.reason_against(call) == reason);
      CHECK(!attention.run(call));
    }
    CHECK(fake.num_heuristics() - before == 2);
    CHECK(fake.num_forwards() == forwards);
  }
  // A rank that fell back because its machine lacks something would compute unlike the others.
  fake.offer(Offer::kWithoutCompiler);
  cudnn::Attention attention = attention_of(m.ctx);
  CHECK(code_of([&] { attention.run(calls.forward()); }) == "device_failed");
  fake.offer(Offer::kAll);
}

DEVICE_TEST_CASE(
    "attention by cuDNN: engines that leave out a key or a row are passed over, or leave a call to our kernels") {
  Machine9 m;
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  for (const AttentionOptions& options : {AttentionOptions{}, AttentionOptions{7}}) {
    Calls right(kShape, DType::kBF16, options);
    fake.have_fault(Fault::kNone);
    cudnn::Attention undisturbed = attention_of(m.ctx);
    REQUIRE(undisturbed.run(right.forward()));
    REQUIRE(undisturbed.run(right.backward()));
    for (const Fault fault : {Fault::kHidesLastKey, Fault::kLeavesLastRow}) {
      Calls calls(kShape, DType::kBF16, options);
      fake.have_fault(fault);
      cudnn::Attention attention = attention_of(m.ctx);
      REQUIRE(attention.run(calls.forward()));
      REQUIRE(attention.run(calls.backward()));
      synchronize(m.ctx);
      CHECK(calls.out == right.out);
      CHECK(calls.dqkv == right.dqkv);
      fake.have_fault(fault, true);
      cudnn::Attention none = attention_of(m.ctx);
      for (const cudnn::Call& call : {calls.forward(), calls.backward()})
        CHECK(none.reason_against(call) == "it computes a call wrongly whose results are known");
    }
  }
}

DEVICE_TEST_CASE("attention by cuDNN: a trial leaves what its call reads, and gives its memory back") {
  Machine9 m;
  cudnn::Attention attention = attention_of(m.ctx);
  Calls calls(kShape);
  REQUIRE(attention.run(calls.forward()));
  synchronize(m.ctx);
  const Calls before = calls;
  const std::size_t in_use = cuda::memory_of(kFirstGpu).in_use;
  REQUIRE(attention.reason_against(calls.backward()).empty());
  CHECK(cuda::memory_of(kFirstGpu).in_use == in_use);
  CHECK(calls.qkv == before.qkv);
  CHECK(calls.out == before.out);
  CHECK(calls.dout == before.dout);
  CHECK(calls.lse == before.lse);
}

DEVICE_TEST_CASE("attention by cuDNN: a backward in parts has the bits of one in whole") {
  Machine9 m;
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  const AttentionShape shape{4, 64, 6, 3, 8};
  Calls whole(shape);
  cudnn::Attention at_once = attention_of(m.ctx);
  REQUIRE(at_once.run(whole.forward()));
  REQUIRE(at_once.run(whole.backward()));
  synchronize(m.ctx);
  constexpr std::int64_t kHead = 64 * 64 * 2;
  const std::vector<std::pair<std::int64_t, int>> limits{{12 * kHead, 2}, {11 * kHead, 4}, {5 * kHead, 12}};
  for (const auto& [limit, parts] : limits) {
    cudnn::Attention attention = attention_of(m.ctx, limit);
    Calls calls(shape);
    REQUIRE(attention.run(calls.forward()));
    REQUIRE(attention.reason_against(calls.backward()).empty());
    const int before = fake.num_backwards();
    REQUIRE(attention.run(calls.backward()));
    synchronize(m.ctx);
    CHECK(fake.num_backwards() - before == parts);
    CHECK(calls.dqkv == whole.dqkv);
  }
  cudnn::Attention small = attention_of(m.ctx, kHead);
  CHECK(small.reason_against(whole.backward()) == "scores of a key head need 16384 bytes");
  Calls odd({2, 63, 2, 2, 8});
  cudnn::Attention halved = attention_of(m.ctx, 2 * kHead);
  CHECK(halved.reason_against(odd.backward()) == "parts of a call need sequences of a multiple of 4 tokens");
}
