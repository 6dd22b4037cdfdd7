// Allocations of a model, by the formulas that stand beside the allocations and that memory estimates repeat.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/config/param_table.h"
#include "model/transformer/transformer.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"
#include "test/model/family_configs.h"
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

  static std::int64_t row(std::int64_t cols, std::int64_t size) {
    const std::int64_t bytes = rounded_up(cols * size, 64);
    return bytes + (bytes % 2048 == 0 ? 64 : 0);
  }
  std::int64_t row(std::int64_t cols) const { return row(cols, element); }
  std::int64_t steps(std::int64_t k) const { return pairs ? (k + 1) / 2 : k; }
  std::int64_t packed(std::int64_t k, std::int64_t n) const { return 4 * steps(k) * rounded_up(n, 32); }

  std::int64_t packed_weights(const ModelConfig& c, WeightUse use) const {
    const std::int64_t d = c.hidden_size, i = c.intermediate_size, q = c.query_size(), kv = c.key_value_size();
    const std::int64_t width = c.gated_mlp() ? 2 : 1;
    const LayerSpec layer = ParamTable(c).layers[0];
    const std::int64_t to_qkv = layer.qkv.size() == 1 ? packed(d, c.qkv_size()) : packed(d, q) + 2 * packed(d, kv);
    const std::int64_t to_inner = layer.mlp.dense.inner.size() == 1 ? packed(d, width * i) : width * packed(d, i);
    const std::int64_t forward = to_qkv + packed(q, d) + to_inner + packed(i, d);
    const std::int64_t backward = packed(c.qkv_size(), d) + packed(d, q) + packed(width * i, d) + packed(d, i);
    return (use == WeightUse::kInPlace ? 0 : c.num_hidden_layers) * (forward + backward) + packed(d, c.vocab_size);
  }

  static std::int64_t line(std::int64_t words) { return rounded_up(4 * words, 64); }

  /// Bytes of one key/value head in attention's backward pass.
  std::int64_t attention_head(const ModelConfig& c, std::int64_t length) const {
    const std::int64_t d = c.head_dim;
    return 2 * line(rounded_up(length, 32) * steps(d)) + line(rounded_up(d, 32) * steps(length)) +
           2 * line(length * d) + line((length + 255) / 256);
  }

  std::int64_t scratch(const ModelConfig& c, std::int64_t batch, std::int64_t length, std::int64_t threads) const {
    const std::int64_t d = c.head_dim, narrow = rounded_up(d, 32),
                       block = rounded_up(std::min<std::int64_t>(length, 256), 32);
    const std::int64_t rows =
        2 * line(64 * steps(d)) + 2 * line(narrow * steps(64)) + 2 * line(block * steps(64)) + line(64 * d) + line(64);
    const std::int64_t attention = 2 * rows + 4 * line(64 * (block + 32));
    const std::int64_t heads =
        std::min({batch * c.num_key_value_heads, threads, (1024 * threads + length - 1) / length + 1});
    return threads * std::max<std::int64_t>(attention, 1'454'080) + heads * attention_head(c, length);
  }

  std::int64_t head(const ModelConfig& c, std::int64_t m) const {
    const std::int64_t v = c.vocab_size;
    const auto chunk = [&](std::int64_t count, std::int64_t bytes, std::int64_t size) {
      const std::int64_t most = std::max<std::int64_t>(64, bytes / (v * size) / 64 * 64),
                         chunks = (count + most - 1) / most;
      return std::min(count, rounded_up((count + chunks - 1) / chunks, 64));
    };
    const std::int64_t rows = chunk(m, std::int64_t{64} << 20, element),
                       logits = chunk(rows, std::int64_t{16} << 20, 4);
    return logits * row(v, 4) + 4 * m + rows * row(v) + packed(rows, c.hidden_size);
  }

  /// Values per row or column of a norm: rstd and weight, with LayerNorm mean and bias too.
  static std::int64_t norm_values(const ModelConfig& c) { return c.norm == NormType::kRms ? 1 : 2; }

  /// Rows of the MLP's inner values and of the output of its function.
  std::int64_t inner_rows(const ModelConfig& c) const {
    const std::int64_t i = c.intermediate_size;
    return row(c.gated_mlp() ? 2 * i : i) + row(i);
  }

  /// Rows of qkv and attended.
  std::int64_t attention_rows(const ModelConfig& c) const { return row(c.qkv_size()) + row(c.query_size()); }

  /// Norms of the stream and of what is added to it, in one layer.
  static std::int64_t num_norms(const ModelConfig& c) {
    const LayerSpec layer = ParamTable(c).layers[0];
    const std::optional<NormSpec> norms[] = {layer.input_norm, layer.attention_output_norm, layer.post_attention_norm,
                                             layer.mlp_output_norm};
    return std::ranges::count_if(norms, [](const auto& norm) { return norm.has_value(); });
  }

  /// True if the outputs of attention and MLP change before they are added to the stream.
  static bool changes_outputs(const ModelConfig& c) {
    return c.residual_dropout > 0 || c.residual_scale != 1 || c.parallel_residual ||
           ParamTable(c).layers[0].mlp_output_norm;
  }

  /// Bytes that one layer keeps beside its input; r rows are computed at once.
  std::int64_t kept(const ModelConfig& c, std::int64_t m, std::int64_t r) const {
    const std::int64_t heads = c.num_attention_heads, d = c.hidden_size, norms = num_norms(c);
    const std::int64_t qk_norms = c.query_size() / c.query_norm_size() + c.key_value_size() / c.key_norm_size();
    const std::int64_t qk_norm = row(c.query_size() + c.key_value_size()) + 4 * qk_norms;
    return m * ((1 + norms) * row(d) + attention_rows(c)) + r * inner_rows(c) +
           4 * m * (norms * norm_values(c) + heads) + (c.qk_norm ? m * qk_norm : 0);
  }

  std::int64_t operands(const ModelConfig& c, std::int64_t r) const {
    const std::int64_t d = c.hidden_size, i = c.intermediate_size, q = c.query_size();
    if (c.naming != "gpt2") return packed(r, d) + packed(r, q) + packed(r, i);
    return packed(r, c.qkv_size()) + packed(r, d) + (i == c.qkv_size() ? 0 : packed(r, i)) + packed(r, d);
  }

  std::int64_t work(const ModelConfig& c, std::int64_t m, std::int64_t r) const {
    const std::int64_t d = c.hidden_size, i = c.intermediate_size, q = c.query_size(), width = c.gated_mlp() ? 2 : 1;
    const std::int64_t biases =
        (c.qkv_bias ? c.qkv_size() : 0) + (c.output_bias ? d : 0) + (c.mlp_bias ? width * i + d : 0);
    const std::int64_t params = d * c.qkv_size() + q * d + (width + 1) * d * i + biases + norm_values(c) * d +
                                (c.qk_norm ? c.query_norm_size() + c.key_norm_size() : 0);
    const std::int64_t inner = inner_rows(c) - (c.gated_mlp() ? 0 : row(i));  // GELU's is in place
    return m * ((changes_outputs(c) ? 3 : 2) * row(d) + attention_rows(c)) + r * inner + operands(c, r) + 4 * params;
  }

  std::int64_t activations(const Shape& shape, bool checkpointing) const {
    const ModelConfig& c = shape.config;
    const std::int64_t m = shape.batch * shape.length, d = c.hidden_size, layers = c.num_hidden_layers;
    const std::int64_t positions = c.positions == PositionType::kRope
                                       ? (c.has_local_rope() ? 8 : 4) * shape.length * c.rotated()
                                       : 4 * c.max_position_embeddings * d;
    const std::int64_t parts = checkpointing ? (m + 2047) / 2048 : 1,
                       r = std::min(m, rounded_up((m + parts - 1) / parts, 64));
    return layers * m * row(d) + (checkpointing ? 1 : layers) * kept(c, m, r) + work(c, m, r) + head(c, m) +
           3 * m * row(d) + 4 * m * (norm_values(c) + 1) + positions + 4 * c.vocab_size * d +
           scratch(c, shape.batch, shape.length, shape.threads);
  }
};

void check_bytes(const Shape& shape, CpuIsa isa, DType dtype, const Formulas& formulas, bool checkpointing) {
  Machine machine(isa, shape.threads);
  const WeightUse use = checkpointing ? WeightUse::kInPlace : WeightUse::kPackedCopies;
  Transformer model(machine.ctx, shape.config, dtype, shape.batch, shape.length,
                    {.checkpoint_activations = checkpointing, .weights = use});
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
    CHECK(static_cast<std::int64_t>(model.packed_bytes()) == formulas.packed_weights(shape.config, use));
    CHECK(static_cast<std::int64_t>(model.activation_bytes()) == formulas.activations(shape, checkpointing));
  }
  CHECK(before < model.activation_bytes());
}

}  // namespace

TEST_CASE("a model's bytes are those of the formulas, from its first backward on") {
  std::vector<Shape> shapes{
      {config_of(24, 40, 4, 2, 6, 50), 2, 9, 1},      {config_of(128, 352, 4, 4, 32, 512), 2, 65, 2},  // rows of 2 KiB
      {config_of(8, 16, 2, 1, 4, 280'000), 2, 35, 1},  // gradients of logits in two chunks, the second shorter
      {config_of(32, 64, 1, 1, 32, 100), 1, 700, 3},   // one head for three threads
      {config_of(16, 32, 4, 2, 160, 100), 2, 700, 2},  // the work space of attention is the larger one
      {config_of(24, 40, 4, 2, 6, 50), 3, 900, 1},     // rows of an MLP in parts
  };
  for (const auto& [name, config] : family_configs()) {
    if (config.num_experts == 0) shapes.push_back({config, 2, 19, 2});
  }
  for (const Shape& shape : shapes) {
    for (const CpuIsa isa : available_isas()) {
      // Bytes depend on whether the path packs bf16 in pairs: the portable one does not, the best one may.
      if (isa != best_cpu_isa() && isa != CpuIsa::kGeneric) continue;
      for (const DType dtype : kAllDTypes) {
        const bool is_large = shape.config.vocab_size > 100'000;
        // Other tests make the accesses of the paths and of fp16; of these shapes one path's are enough.
        if (kSanitized && (isa != best_cpu_isa() || dtype == DType::kF16 || (is_large && dtype == DType::kF32)))
          continue;
        CAPTURE(std::string(name_of(isa)) + " " + name_of(dtype) + " V " + std::to_string(shape.config.vocab_size));
        const Formulas formulas{static_cast<std::int64_t>(size_of(dtype)),
                                dtype == DType::kBF16 && isa == CpuIsa::kAvx512Bf16};
        check_bytes(shape, isa, dtype, formulas, false);
        if (dtype == DType::kBF16) check_bytes(shape, isa, dtype, formulas, true);
      }
    }
  }
}
