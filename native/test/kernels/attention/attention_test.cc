#include "kernels/attention/attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/kernels/attention/attention_float64.h"
#include "test/kernels/every_path.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct AttentionResults {
  HostMatrix out, dqkv;
  friend bool operator==(const AttentionResults&, const AttentionResults&) = default;
};

struct ExactResults {
  Table out, dqkv;
};

AttentionResults attention_results(const Context& ctx, const AttentionCase& c, HostMatrix qkv, HostMatrix dout,
                                   DType dtype) {
  const AttentionShape& shape = c.shape;
  Scratch scratch(ctx);
  const std::int64_t rows = shape.batch * shape.sequence_length;
  AttentionResults results{HostMatrix(dtype, rows, shape.query_size(), c.gap()),
                           HostMatrix(dtype, rows, shape.qkv_size(), 2 * c.gap())};
  SharedValues<float> lse(static_cast<std::size_t>(rows * shape.num_heads));
  const SharedValues<std::int32_t> starts(c.document_starts);
  const AttentionOptions options = c.options(starts);
  attention(ctx, scratch, {shape, qkv.view(), results.out.view(), lse, options});
  attention_backward(ctx, scratch,
                     {shape, qkv.view(), results.out.view(), lse, dout.view(), results.dqkv.view(), options});
  synchronize(ctx);
  return results;
}

// Broken and whole blocks of 64 query rows and of 256 keys. Heads narrower, as wide and wider than a panel, odd widths,
// shared heads. Windows shorter and longer than a block. Documents that begin within and at the edge of blocks. The
// widths that models have, and wider ones.
std::vector<AttentionCase> cases() {
  return {{{1, 1, 1, 1, 2}},
          {{2, 5, 2, 1, 8}},
          {{1, 64, 2, 2, 32}},
          {{2, 70, 6, 2, 10}},
          {{1, 131, 2, 1, 33}},
          {{1, 200, 2, 2, 64}},
          {{3, 33, 3, 3, 7}},
          {{1, 130, 2, 1, 80}},
          {{2, 65, 1, 1, 96}},
          {{1, 98, 3, 1, 96}},
          with_documents({{1, 196, 4, 2, 72}, 90, {}, 0.2}),
          {{1, 150, 2, 1, 128}, 70},
          {{1, 70, 1, 1, 136}},
          {{1, 66, 1, 1, 300}},
          {{1, 555, 2, 1, 16}},
          {{2, 70, 4, 2, 10}, 1},
          {{2, 70, 4, 2, 10}, 9},
          {{1, 555, 1, 1, 9}, 64},
          {{1, 555, 2, 1, 9}, 300},
          {{1, 130, 4, 2, 64, 0.0625}},
          {{1, 70, 2, 1, 10, 0.75}, 9},
          {{1, 130, 4, 2, 64, 0, 1.5}},
          {{1, 300, 2, 1, 10, 0.75, 2}, 70, {}, 0.25},
          with_documents({{2, 157, 4, 2, 10}}),
          with_documents({{1, 555, 1, 1, 9}}),
          with_documents({{1, 400, 2, 1, 9}, 20}),
          {{2, 70, 6, 2, 10}, 0, {}, 0.25},
          with_documents({{1, 301, 2, 1, 8}, 50, {}, 0.5})};
}

AttentionCase two_sequences() { return with_documents({{2, 70, 6, 2, 10}, 30}); }

}  // namespace

DEVICE_TEST_CASE("attention and its backward match float64") {
  for (const AttentionCase& c : cases()) {
    const std::int64_t rows = c.shape.batch * c.shape.sequence_length;
    std::map<DType, ExactResults> exact;  // of operands that all paths have
    on_every_device([&](const Context& ctx, DType dtype) {
      CAPTURE(c.name());
      std::mt19937 random(23);
      const HostMatrix qkv = HostMatrix::random(dtype, rows, c.shape.qkv_size(), random, c.gap(), 1.5F);
      const HostMatrix dout = HostMatrix::random(dtype, rows, c.shape.query_size(), random);
      const AttentionResults results = attention_results(ctx, c, qkv, dout, dtype);
      if (!exact.contains(dtype)) {
        const Table operands = table_of(qkv);
        exact[dtype] = {attention_rows(c, operands), attention_gradient(c, operands, table_of(dout))};
      }
      CHECK(relative_error(results.out, exact[dtype].out) < tolerance(dtype));
      CHECK(relative_error(results.dqkv, exact[dtype].dqkv) < 2 * tolerance(dtype));
    });
  }
}

// Probabilities other than the maximum underflow, and sums of scores of 10⁴ round at 10⁻³: so does a probability. The
// gradients of the scores are then differences that vanish, and their values after rounding to 16 bits are no measure.
DEVICE_TEST_CASE("attention: huge scores stay finite and right") {
  on_every_device([](const Context& ctx, DType dtype) {
    const AttentionCase c{{1, 100, 2, 1, 32}, 0, {}, 0.2};
    std::mt19937 random(43);
    const HostMatrix qkv = HostMatrix::random(dtype, 100, c.shape.qkv_size(), random, 0, 60.0F);
    const HostMatrix dout = HostMatrix::random(dtype, 100, c.shape.query_size(), random);
    const AttentionResults results = attention_results(ctx, c, qkv, dout, dtype);
    CHECK(relative_error(results.out, attention_rows(c, table_of(qkv))) < 1e-2);
    for (const std::vector<double>& row : table_of(results.dqkv))
      CHECK(std::ranges::all_of(row, [](double x) { return std::isfinite(x); }));
    if (dtype != DType::kF32) return;
    CHECK(relative_error(results.dqkv, attention_gradient(c, table_of(qkv), table_of(dout))) < 1e-2);
  });
}

TEST_CASE("the float64 gradient that attention is tested with agrees with central differences") {
  for (const AttentionCase& c :
       {AttentionCase{{2, 6, 4, 2, 3}}, AttentionCase{{2, 6, 4, 2, 3}, 4, {0, 0, 2, 2, 2, 5, 0, 1, 1, 1, 1, 1}, 0.3}}) {
    std::mt19937 random(29);
    const Table qkv = table_of(HostMatrix::random(DType::kF32, 12, c.shape.qkv_size(), random));
    const Table above = table_of(HostMatrix::random(DType::kF32, 12, c.shape.query_size(), random));
    const Table numeric = numeric_gradient([&](const Table& at) { return dot(attention_rows(c, at), above); }, qkv);
    const Table gradient = attention_gradient(c, qkv, above);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      for (std::size_t j = 0; j < gradient[i].size(); ++j) CHECK(std::abs(gradient[i][j] - numeric[i][j]) < 1e-7);
    }
  }
}

DEVICE_TEST_CASE(
    "attention: documents beside each other give the bits of each alone where they begin at the same position") {
  on_every_device([](const Context& ctx, DType dtype) {
    const AttentionShape shape{1, 256, 2, 1, 10};
    std::mt19937 random(37);
    const HostMatrix qkv = HostMatrix::random(dtype, 256, shape.qkv_size(), random);
    const HostMatrix dout = HostMatrix::random(dtype, 256, shape.query_size(), random);
    AttentionCase two{shape};
    for (std::int32_t position = 0; position < 256; ++position) two.document_starts.push_back(position < 128 ? 0 : 128);
    CHECK(attention_results(ctx, two, qkv, dout, dtype) ==
          attention_results(ctx, {{2, 128, 2, 1, 10}}, qkv, dout, dtype));
  });
}

DEVICE_TEST_CASE("attention gives the same bits in any batch") {
  on_every_device([](const Context& ctx, DType dtype) {
    const AttentionCase both = two_sequences();
    const AttentionShape& shape = both.shape;
    AttentionCase single{{1, 70, 6, 2, 10}, 30};
    single.document_starts.assign(both.document_starts.begin() + 70, both.document_starts.end());
    std::mt19937 random(31);
    const HostMatrix qkv = HostMatrix::random(dtype, 140, shape.qkv_size(), random);
    const HostMatrix dout = HostMatrix::random(dtype, 140, shape.query_size(), random);
    const AttentionResults expected = attention_results(ctx, both, qkv, dout, dtype);
    HostMatrix second_qkv(dtype, 70, shape.qkv_size()), second_dout(dtype, 70, shape.query_size());
    for (std::int64_t i = 0; i < 70; ++i) {
      for (std::int64_t j = 0; j < shape.qkv_size(); ++j) second_qkv.set(i, j, static_cast<float>(qkv.at(70 + i, j)));
      for (std::int64_t j = 0; j < shape.query_size(); ++j)
        second_dout.set(i, j, static_cast<float>(dout.at(70 + i, j)));
    }
    const AttentionResults alone = attention_results(ctx, single, second_qkv, second_dout, dtype);
    for (std::int64_t i = 0; i < 70; ++i) {
      for (std::int64_t j = 0; j < shape.qkv_size(); ++j) CHECK(alone.dqkv.at(i, j) == expected.dqkv.at(70 + i, j));
    }
  });
}

DEVICE_TEST_CASE("attention: a call gives the same bits every time") {
  on_every_device([](const Context& ctx, DType dtype) {
    const AttentionCase c{{1, 200, 2, 1, 8}};
    std::mt19937 random(41);
    const HostMatrix qkv = HostMatrix::random(dtype, 200, c.shape.qkv_size(), random);
    const HostMatrix dout = HostMatrix::random(dtype, 200, c.shape.query_size(), random);
    const AttentionResults expected = attention_results(ctx, c, qkv, dout, dtype);
    for (int i = 0; i < 2; ++i) CHECK(attention_results(ctx, c, qkv, dout, dtype) == expected);
  });
}

TEST_CASE("attention gives the same bits with one to eight threads, which share heads where there are fewer") {
  const std::vector<AttentionCase> shared{two_sequences(),
                                          {{2, 300, 4, 2, 10}, 0, {}, 0.3},
                                          {{1, 700, 2, 1, 10}},
                                          {{1, 800, 2, 1, 9}, 300},
                                          with_documents({{1, 900, 1, 1, 9}, 0, {}, 0.1})};
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      if (is_repetition(isa, dtype)) continue;
      for (const AttentionCase& c : shared) {
        CAPTURE(std::string(name_of(isa)) + " " + name_of(dtype) + " " + c.name());
        const std::int64_t rows = c.shape.batch * c.shape.sequence_length;
        std::mt19937 random(31);
        const HostMatrix qkv = HostMatrix::random(dtype, rows, c.shape.qkv_size(), random);
        const HostMatrix dout = HostMatrix::random(dtype, rows, c.shape.query_size(), random);
        Machine one(isa, 1);
        const AttentionResults expected = attention_results(one.ctx, c, qkv, dout, dtype);
        for (int threads = 2; threads <= 8; threads += kSanitized ? 3 : 1) {
          Machine machine(isa, threads);
          CHECK(attention_results(machine.ctx, c, qkv, dout, dtype) == expected);
        }
      }
    }
  }
}

TEST_CASE("attention holds scores of one block only, and the operands of a head once for all threads") {
  const auto scratch_of = [&](std::int64_t length, int threads) {
    Machine machine(best_cpu_isa(), threads);
    const AttentionShape shape{1, length, 1, 1, 2};
    HostMatrix qkv(DType::kF32, length, 6), out(DType::kF32, length, 2), dqkv(DType::kF32, length, 6);
    std::vector<float> lse(static_cast<std::size_t>(length));
    Scratch scratch(machine.ctx);
    attention(machine.ctx, scratch, {shape, qkv.view(), out.view(), lse});
    attention_backward(machine.ctx, scratch, {shape, qkv.view(), out.view(), lse, out.view(), dqkv.view()});
    return scratch.num_bytes();
  };
  // Per token: keys, values and their gradients, of which the packed ones are padded to panels; and a turn for 256
  // tokens.
  CHECK(scratch_of(1024, 1) - scratch_of(512, 1) <= 512 * 4 * (2 * 2 + 32 + 2 * 2) + 64);
  CHECK(scratch_of(1024, 8) - scratch_of(1024, 1) == scratch_of(512, 8) - scratch_of(512, 1));
}

DEVICE_TEST_CASE("attention refuses shapes that do not fit") {
  on_every_device([](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    HostMatrix qkv(dtype, 4, 16), out(dtype, 4, 8);
    SharedValues<float> lse(8);
    attention(ctx, scratch, {{1, 4, 2, 1, 4}, qkv.view(), out.view(), lse});
    CHECK_THROWS_AS(attention(ctx, scratch, {{1, 4, 2, 2, 4}, qkv.view(), out.view(), lse}), Error);
    CHECK_THROWS_AS(attention(ctx, scratch, {{1, 3, 2, 1, 4}, qkv.view(), out.view(), lse}), Error);
    CHECK_THROWS_AS(attention(ctx, scratch, {{1, 4, 3, 2, 4}, qkv.view(), out.view(), lse}), Error);
    const auto refused = [&](const AttentionOptions& options) {
      CHECK_THROWS_AS(attention(ctx, scratch, {{1, 4, 2, 1, 4}, qkv.view(), out.view(), lse, options}), Error);
    };
    refused({-1});
    refused({0, {}, {}, 1.0});
    using Starts = std::vector<std::int32_t>;
    for (const Starts& starts : {Starts{0, 0, 0}, {0, 0, 3, 3}, {0, 1, 0, 0}, {0, -1, 0, 0}}) refused({0, starts});
    synchronize(ctx);
  });
}
