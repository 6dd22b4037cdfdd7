// What a model allocates, by the formulas that stand beside the allocations and that memory estimates repeat.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Shape {
  ModelConfig config;
  std::int64_t batch, length;
  int threads;
};

ModelConfig config_of(std::int64_t hidden, std::int64_t inner, std::int64_t heads, std::int64_t kv_heads,
                      std::int64_t head_dim, std::int64_t vocab) {
  ModelConfig config;
  config.hidden_size = hidden;
  config.intermediate_size = inner;
  config.num_hidden_layers = 2;
  config.num_attention_heads = heads;
  config.num_key_value_heads = kv_heads;
  config.head_dim = head_dim;
  config.vocab_size = vocab;
  config.max_position_embeddings = 1024;
  return config;
}

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// The formulas, for one type on one path.
struct Formulas {
  std::int64_t element;
  bool pairs;

  std::int64_t row(std::int64_t cols) const { return cols * element + (cols * element % 2048 == 0 ? 64 : 0); }
  std::int64_t steps(std::int64_t k) const { return pairs ? (k + 1) / 2 : k; }
  std::int64_t packed(std::int64_t k, std::int64_t n) const { return 4 * steps(k) * rounded_up(n, 32); }

  std::int64_t packed_weights(const ModelConfig& c) const {
    const std::int64_t d = c.hidden_size, i = c.intermediate_size, q = c.query_size(), kv = c.key_value_size();
    const std::int64_t forward = packed(d, q) + 2 * packed(d, kv) + packed(q, d) + 2 * packed(d, i) + packed(i, d);
    const std::int64_t backward = packed(c.qkv_size(), d) + packed(d, q) + packed(2 * i, d) + packed(d, i);
    return c.num_hidden_layers * (forward + backward) + packed(d, c.vocab_size) + packed(c.vocab_size, d);
  }

  std::int64_t scratch(const ModelConfig& c, std::int64_t length) const {
    const std::int64_t d = c.head_dim, wide = rounded_up(length, 32), narrow = rounded_up(d, 32),
                       block = rounded_up(std::min<std::int64_t>(length, 256), 32);
    const auto line = [](std::int64_t words) { return rounded_up(4 * words, 64); };
    const std::int64_t attention = 2 * line(wide * steps(d)) + line(narrow * steps(length)) + 2 * line(64 * steps(d)) +
                                   2 * line(narrow * steps(64)) + 2 * line(block * steps(64)) +
                                   4 * line(64 * (block + 32)) + 2 * line(length * d) + line(64 * d) + line(64);
    return std::max<std::int64_t>(attention, 536576);
  }

  std::int64_t head(const ModelConfig& c, std::int64_t m) const {
    const std::int64_t v = c.vocab_size, fitting = (std::int64_t{64} << 20) / (4 * v) / 64 * 64;
    const std::int64_t rows = std::min(m, std::max<std::int64_t>(64, fitting));
    return rows * (4 * v + (4 * v % 2048 == 0 ? 64 : 0)) + 4 * rows + packed(rows, c.hidden_size) +
           (m % rows == 0 ? 0 : packed(m % rows, c.hidden_size));
  }

  std::int64_t activations(const Shape& shape) const {
    const ModelConfig& c = shape.config;
    const std::int64_t m = shape.batch * shape.length, d = c.hidden_size, i = c.intermediate_size, q = c.query_size(),
                       kv = c.key_value_size();
    const std::int64_t wide_rows = row(c.qkv_size()) + row(q) + row(2 * i) + row(i);
    const std::int64_t layer = m * (4 * row(d) + wide_rows) + 4 * m * (2 + c.num_attention_heads);
    const std::int64_t gradients = m * (2 * row(d) + wide_rows) + packed(m, d) + packed(m, q) + packed(m, i) +
                                   4 * (2 * d * q + 2 * d * kv + 3 * d * i + d);
    return c.num_hidden_layers * layer + gradients + head(c, m) + 3 * m * row(d) + 4 * m +
           4 * shape.length * c.head_dim + 4 * c.vocab_size * d + shape.threads * scratch(c, shape.length);
  }
};

}  // namespace

TEST_CASE("a model's bytes are those of the formulas, from its first backward on") {
  const Shape shapes[] = {
      {config_of(24, 40, 4, 2, 6, 50), 2, 9, 1},
      {config_of(128, 352, 4, 4, 32, 512), 2, 65, 2},  // rows of 2 KiB
      {config_of(8, 16, 2, 1, 4, 140'000), 2, 35, 1},  // logits in two chunks, the second shorter
      {config_of(32, 64, 1, 1, 32, 100), 1, 700, 3},   // the work space of attention is the larger one
  };
  for (const Shape& shape : shapes) {
    for (const CpuIsa isa : available_isas()) {
      for (const DType dtype : kAllDTypes) {
        if (kSanitized && shape.config.vocab_size > 100'000 && dtype != DType::kBF16) continue;
        CAPTURE(std::string(name_of(isa)) + " " + name_of(dtype) + " V " + std::to_string(shape.config.vocab_size));
        Machine machine(isa, shape.threads);
        Transformer model(machine.ctx, shape.config, dtype, shape.batch, shape.length);
        std::vector<std::vector<std::byte>> params;
        std::vector<const std::byte*> pointers;
        for (const ParamSpec& spec : param_specs(shape.config)) {
          pointers.push_back(params.emplace_back(static_cast<std::size_t>(spec.numel()) * size_of(dtype)).data());
        }
        model.bind_params(pointers);
        model.params_changed();
        const std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.batch * shape.length), 3);
        const std::size_t before = model.activation_bytes();
        for (int pass = 0; pass < 2; ++pass) {
          model.forward_backward({tokens, tokens}, 1.0F, [](std::size_t, std::span<const float>) {});
          const Formulas formulas{static_cast<std::int64_t>(size_of(dtype)),
                                  dtype == DType::kBF16 && isa == CpuIsa::kAvx512Bf16};
          CHECK(static_cast<std::int64_t>(model.packed_bytes()) == formulas.packed_weights(shape.config));
          CHECK(static_cast<std::int64_t>(model.activation_bytes()) == formulas.activations(shape));
        }
        CHECK(before < model.activation_bytes());
      }
    }
  }
}
