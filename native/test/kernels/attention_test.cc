#include "kernels/attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Row = std::vector<double>;

/// Probabilities of one query row over the keys up to its own position.
Row probabilities(const AttentionShape& shape, const Table& qkv, std::size_t first_row, std::size_t head,
                  std::size_t query) {
  const auto dim = static_cast<std::size_t>(shape.head_dim), heads = static_cast<std::size_t>(shape.num_heads);
  const std::size_t kv_head = head / static_cast<std::size_t>(shape.num_heads / shape.num_kv_heads);
  Row probs(query + 1);
  double sum = 0;
  for (std::size_t key = 0; key <= query; ++key) {
    double score = 0;
    for (std::size_t i = 0; i < dim; ++i)
      score += qkv[first_row + query][head * dim + i] * qkv[first_row + key][(heads + kv_head) * dim + i];
    sum += probs[key] = std::exp(score / std::sqrt(static_cast<double>(dim)));
  }
  for (double& prob : probs) prob /= sum;
  return probs;
}

Table attention_rows(const AttentionShape& shape, const Table& qkv) {
  const auto dim = static_cast<std::size_t>(shape.head_dim), heads = static_cast<std::size_t>(shape.num_heads);
  const auto kv_heads = static_cast<std::size_t>(shape.num_kv_heads),
             length = static_cast<std::size_t>(shape.sequence_length);
  Table out(qkv.size(), Row(heads * dim));
  for (std::size_t first = 0; first < qkv.size(); first += length) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t value_col = (heads + kv_heads + head / (heads / kv_heads)) * dim;
      for (std::size_t query = 0; query < length; ++query) {
        const Row probs = probabilities(shape, qkv, first, head, query);
        for (std::size_t key = 0; key <= query; ++key) {
          for (std::size_t i = 0; i < dim; ++i)
            out[first + query][head * dim + i] += probs[key] * qkv[first + key][value_col + i];
        }
      }
    }
  }
  return out;
}

/// Gradients in float64, row by row: dV += Pᵀ dO, dS = P (dO Vᵀ − Σ P dO Vᵀ), dQ = dS K, dK += dSᵀ Q. Checked against
/// central differences below.
Table attention_gradient(const AttentionShape& shape, const Table& qkv, const Table& dout) {
  const auto dim = static_cast<std::size_t>(shape.head_dim), heads = static_cast<std::size_t>(shape.num_heads);
  const auto kv_heads = static_cast<std::size_t>(shape.num_kv_heads),
             length = static_cast<std::size_t>(shape.sequence_length);
  Table grad(qkv.size(), Row(qkv[0].size()));
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  for (std::size_t first = 0; first < qkv.size(); first += length) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t q = head * dim, k = (heads + head / (heads / kv_heads)) * dim, v = k + kv_heads * dim;
      for (std::size_t query = 0; query < length; ++query) {
        const Row probs = probabilities(shape, qkv, first, head, query);
        Row dprobs(probs.size());
        double mean = 0;
        for (std::size_t key = 0; key < probs.size(); ++key) {
          for (std::size_t i = 0; i < dim; ++i) {
            dprobs[key] += dout[first + query][q + i] * qkv[first + key][v + i];
            grad[first + key][v + i] += probs[key] * dout[first + query][q + i];
          }
          mean += probs[key] * dprobs[key];
        }
        for (std::size_t key = 0; key < probs.size(); ++key) {
          const double dscore = probs[key] * (dprobs[key] - mean) * scale;
          for (std::size_t i = 0; i < dim; ++i) {
            grad[first + query][q + i] += dscore * qkv[first + key][k + i];
            grad[first + key][k + i] += dscore * qkv[first + query][q + i];
          }
        }
      }
    }
  }
  return grad;
}

struct Results {
  HostMatrix out, dqkv;
  friend bool operator==(const Results&, const Results&) = default;
};

Results run(const Context& ctx, const AttentionShape& shape, HostMatrix qkv, HostMatrix dout, DType dtype) {
  Scratch scratch(ctx);
  const std::int64_t rows = shape.batch * shape.sequence_length;
  Results results{HostMatrix(dtype, rows, shape.query_size(), 2), HostMatrix(dtype, rows, shape.qkv_size(), 4)};
  std::vector<float> lse(static_cast<std::size_t>(rows * shape.num_heads));
  attention(ctx, scratch, {shape, qkv.view(), results.out.view(), lse});
  attention_backward(ctx, scratch, {shape, qkv.view(), results.out.view(), lse, dout.view(), results.dqkv.view()});
  return results;
}

// Broken and whole blocks of 64 query rows, heads narrower, as wide and wider than a panel, odd widths, shared heads.
constexpr AttentionShape kShapes[] = {{1, 1, 1, 1, 2},    {2, 5, 2, 1, 8},    {1, 64, 2, 2, 32}, {2, 70, 6, 2, 10},
                                      {1, 131, 2, 1, 33}, {1, 200, 2, 2, 64}, {3, 33, 3, 3, 7}};

}  // namespace

TEST_CASE("attention and its backward match float64") {
  for (const CpuIsa isa : available_isas()) {
    Machine machine(isa, 2);
    for (const DType dtype : kAllDTypes) {
      for (const AttentionShape& shape : kShapes) {
        CAPTURE(std::string(name_of(isa)) + " " + name_of(dtype) + " T " + std::to_string(shape.sequence_length));
        std::mt19937 random(23);
        const std::int64_t rows = shape.batch * shape.sequence_length;
        const HostMatrix qkv = HostMatrix::random(dtype, rows, shape.qkv_size(), random, 2, 1.5F);
        const HostMatrix dout = HostMatrix::random(dtype, rows, shape.query_size(), random);
        const Results results = run(machine.ctx, shape, qkv, dout, dtype);
        CHECK(relative_error(results.out, attention_rows(shape, table_of(qkv))) < tolerance(dtype));
        CHECK(relative_error(results.dqkv, attention_gradient(shape, table_of(qkv), table_of(dout))) <
              2 * tolerance(dtype));
      }
    }
  }
}

TEST_CASE("the float64 gradient that attention is tested with agrees with central differences") {
  const AttentionShape shape{2, 6, 4, 2, 3};
  std::mt19937 random(29);
  const Table qkv = table_of(HostMatrix::random(DType::kF32, 12, shape.qkv_size(), random));
  const HostMatrix dout = HostMatrix::random(DType::kF32, 12, shape.query_size(), random);
  const Table from_above = table_of(dout);
  const Table numeric = numeric_gradient(
      [&](const Table& at) {
        const Table out = attention_rows(shape, at);
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
          for (std::size_t j = 0; j < out[i].size(); ++j) sum += out[i][j] * from_above[i][j];
        }
        return sum;
      },
      qkv);
  const Table gradient = attention_gradient(shape, qkv, from_above);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    for (std::size_t j = 0; j < gradient[i].size(); ++j) CHECK(std::abs(gradient[i][j] - numeric[i][j]) < 1e-7);
  }
}

TEST_CASE("attention gives the same bits with one, two and three threads, and in any batch") {
  for (const CpuIsa isa : available_isas()) {
    Machine one(isa, 1), two(isa, 2), three(isa, 3);
    for (const DType dtype : kAllDTypes) {
      const AttentionShape shape{2, 70, 6, 2, 10}, single{1, 70, 6, 2, 10};
      std::mt19937 random(31);
      const HostMatrix qkv = HostMatrix::random(dtype, 140, shape.qkv_size(), random);
      const HostMatrix dout = HostMatrix::random(dtype, 140, shape.query_size(), random);
      const Results expected = run(one.ctx, shape, qkv, dout, dtype);
      CHECK(run(two.ctx, shape, qkv, dout, dtype) == expected);
      CHECK(run(three.ctx, shape, qkv, dout, dtype) == expected);

      HostMatrix second_qkv(dtype, 70, shape.qkv_size()), second_dout(dtype, 70, shape.query_size());
      for (std::int64_t i = 0; i < 70; ++i) {
        for (std::int64_t j = 0; j < shape.qkv_size(); ++j) second_qkv.set(i, j, static_cast<float>(qkv.at(70 + i, j)));
        for (std::int64_t j = 0; j < shape.query_size(); ++j)
          second_dout.set(i, j, static_cast<float>(dout.at(70 + i, j)));
      }
      const Results alone = run(one.ctx, single, second_qkv, second_dout, dtype);
      for (std::int64_t i = 0; i < 70; ++i) {
        for (std::int64_t j = 0; j < shape.qkv_size(); ++j) CHECK(alone.dqkv.at(i, j) == expected.dqkv.at(70 + i, j));
      }
    }
  }
}

TEST_CASE("attention refuses shapes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  Scratch scratch(machine.ctx);
  HostMatrix qkv(DType::kF32, 4, 16), out(DType::kF32, 4, 8);
  std::vector<float> lse(8);
  attention(machine.ctx, scratch, {{1, 4, 2, 1, 4}, qkv.view(), out.view(), lse});
  CHECK_THROWS_AS(attention(machine.ctx, scratch, {{1, 4, 2, 2, 4}, qkv.view(), out.view(), lse}), Error);
  CHECK_THROWS_AS(attention(machine.ctx, scratch, {{1, 3, 2, 1, 4}, qkv.view(), out.view(), lse}), Error);
  CHECK_THROWS_AS(attention(machine.ctx, scratch, {{1, 4, 3, 2, 4}, qkv.view(), out.view(), lse}), Error);
}
