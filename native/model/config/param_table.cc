#include "model/config/param_table.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace zerofleet {
namespace {

/// Appends parameters to a table and returns their positions.
class Builder {
 public:
  Builder(const ModelConfig& config, std::vector<ParamSpec>& specs)
      : config_(config), specs_(specs), first_adapter_(first_adapter_of(config)) {}

  std::size_t matrix(const std::string& name, std::int64_t rows, std::int64_t cols, double std) {
    return add({name, {rows, cols}, ParamGroup::kDecay, ParamInit::kNormal, static_cast<float>(std)});
  }

  NormPlace norm(const std::string& name, std::int64_t size) {
    NormPlace place{ones(name + ".weight", size), std::nullopt};
    if (config_.norm == NormType::kLayer) place.bias = zeros(name + ".bias", size);
    return place;
  }

  std::size_t ones(const std::string& name, std::int64_t size) { return vector(name, size, ParamInit::kOnes); }
  std::size_t zeros(const std::string& name, std::int64_t size) { return vector(name, size, ParamInit::kZeros); }

  /// A matrix that is stored as (in, out).
  LinearPlace conv1d(const std::string& name, std::int64_t in, std::int64_t out, double std) {
    LinearPlace place = quantized({matrix(name + ".weight", in, out, std), std::nullopt, out});
    place.bias = zeros(name + ".bias", out);
    return adapted(place, name, in);
  }

  /// Marks parameters added during its lifetime as belonging to one expert.
  class OfExpert {
   public:
    OfExpert(Builder& builder, int number) : builder_(builder) { builder_.expert_ = number; }
    ~OfExpert() { builder_.expert_ = -1; }
    OfExpert(const OfExpert&) = delete;
    OfExpert& operator=(const OfExpert&) = delete;

   private:
    Builder& builder_;
  };

  /// The matrix of a router, which is never quantized: its rounding would change which experts a token has.
  LinearPlace router(const std::string& name, std::int64_t in, std::int64_t num_experts, double std) {
    return adapted({matrix(name + ".weight", num_experts, in, std), std::nullopt, num_experts}, name, in);
  }

  /// A matrix that is stored as (out, in).
  LinearPlace linear(const std::string& name, std::int64_t in, std::int64_t out, bool has_bias, double std) {
    LinearPlace place = quantized({matrix(name + ".weight", out, in, std), std::nullopt, out});
    if (has_bias) place.bias = zeros(name + ".bias", out);
    return adapted(place, name, in);
  }

  /// Parameters that follow belong to this layer; −1: to none.
  void begin_layer(std::int64_t number) { layer_ = static_cast<int>(number); }

  /// Appends the adapters. Nothing else can be added after.
  void append_adapters() {
    for (ParamSpec& spec : adapters_) specs_.push_back(std::move(spec));
  }

 private:
  /// Number of the model's own parameters.
  static std::size_t first_adapter_of(ModelConfig config) {
    if (!config.adapter) return 0;
    config.adapter.reset();
    config.quantization.reset();
    return ParamTable(config).specs.size();
  }
  LinearPlace quantized(LinearPlace place) {
    ParamSpec& spec = specs_[place.weight];
    if (spec.base) spec.quantization = config_.quantization;
    place.quantized = spec.quantization.has_value();
    return place;
  }
  LinearPlace adapted(LinearPlace place, const std::string& name, std::int64_t in) {
    if (!config_.adapter || !config_.adapter->targets(name)) return place;
    const AdapterConfig& adapter = *config_.adapter;
    const bool is_normal = adapter.init == AdapterInit::kGaussian;
    const double scale = is_normal ? 1.0 / static_cast<double>(adapter.rank) : 1.0 / std::sqrt(static_cast<double>(in));
    const std::size_t down = first_adapter_ + adapters_.size();
    place.adapter = {down, down + 1};
    add_adapter({name + ".lora_A.weight",
                 {adapter.rank, in},
                 ParamGroup::kDecay,
                 is_normal ? ParamInit::kNormal : ParamInit::kUniform,
                 static_cast<float>(scale)});
    add_adapter({name + ".lora_B.weight", {place.out, adapter.rank}, ParamGroup::kDecay, ParamInit::kZeros, 0.0F});
    if (adapter.type == AdapterType::kDora) place.adapter->magnitude = add_magnitude(name, place);
    return place;
  }
  /// It begins as the norms of the weights of each output.
  std::size_t add_magnitude(const std::string& name, const LinearPlace& place) {
    const bool in_first = config_.naming == ParamNaming::kGpt2;
    ParamSpec spec{name + ".lora_magnitude_vector.weight",
                   {place.out},
                   ParamGroup::kNoDecay,
                   in_first ? ParamInit::kColumnNorms : ParamInit::kRowNorms,
                   0.0F};
    spec.norms_of = place.weight;
    add_adapter(std::move(spec));
    return first_adapter_ + adapters_.size() - 1;
  }
  void add_adapter(ParamSpec spec) {
    spec.expert = expert_;
    spec.layer = layer_;
    adapters_.push_back(std::move(spec));
  }
  std::size_t vector(const std::string& name, std::int64_t size, ParamInit init) {
    return add({name, {size}, ParamGroup::kNoDecay, init, 0.0F});
  }
  std::size_t add(ParamSpec spec) {
    const std::string_view module = std::string_view(spec.name).substr(0, spec.name.rfind('.'));
    spec.expert = expert_;
    spec.layer = layer_;
    spec.base = config_.adapter && !config_.adapter->saves(module);
    specs_.push_back(std::move(spec));
    return specs_.size() - 1;
  }

  const ModelConfig& config_;
  std::vector<ParamSpec>& specs_;
  std::vector<ParamSpec> adapters_;
  std::size_t first_adapter_ = 0;
  int expert_ = -1, layer_ = -1;
};

MlpPlace add_dense(Builder& add, const ModelConfig& c, const std::string& prefix) {
  const std::int64_t hidden = c.hidden_size, inner = c.intermediate_size;
  const std::string mlp = prefix + "mlp.";
  MlpPlace place;
  place.dense.inner.push_back(add.linear(mlp + "gate_proj", hidden, inner, c.mlp_bias, c.initializer_range));
  place.dense.inner.push_back(add.linear(mlp + "up_proj", hidden, inner, c.mlp_bias, c.initializer_range));
  place.dense.outer = {add.linear(mlp + "down_proj", inner, hidden, c.mlp_bias, c.residual_initializer_range)};
  return place;
}

// An expert's w1 is its gate, w3 its up, w2 its down.
MlpPlace add_experts(Builder& add, const ModelConfig& c, const std::string& prefix) {
  const std::int64_t hidden = c.hidden_size, inner = c.intermediate_size;
  const std::string moe = prefix + "block_sparse_moe.";
  MlpPlace place;
  place.router = {add.router(moe + "gate", hidden, c.num_experts, c.initializer_range)};
  for (std::int64_t number = 0; number < c.num_experts; ++number) {
    const std::string expert = moe + "experts." + std::to_string(number) + ".";
    const Builder::OfExpert marked(add, static_cast<int>(number));
    const LinearPlace gate = add.linear(expert + "w1", hidden, inner, false, c.initializer_range);
    const LinearPlace down = add.linear(expert + "w2", inner, hidden, false, c.residual_initializer_range);
    const LinearPlace up = add.linear(expert + "w3", hidden, inner, false, c.initializer_range);
    place.experts.push_back({{gate, up}, {down}});
  }
  return place;
}

// Llama, Mistral, Qwen2, Qwen3; and Mixtral, which has experts.
void add_llama(const ModelConfig& c, ParamTable& table) {
  Builder add(c, table.specs);
  const std::int64_t hidden = c.hidden_size;
  const double std = c.initializer_range, residual_std = c.residual_initializer_range;
  table.embed = add.matrix("model.embed_tokens.weight", c.vocab_size, hidden, std);
  for (std::int64_t number = 0; number < c.num_hidden_layers; ++number) {
    const std::string prefix = "model.layers." + std::to_string(number) + ".";
    const std::string attention = prefix + "self_attn.";
    LayerPlace& layer = table.layers.emplace_back();
    add.begin_layer(number);
    layer.input_norm = add.norm(prefix + "input_layernorm", hidden);
    layer.qkv.push_back(add.linear(attention + "q_proj", hidden, c.query_size(), c.qkv_bias, std));
    layer.qkv.push_back(add.linear(attention + "k_proj", hidden, c.key_value_size(), c.qkv_bias, std));
    layer.qkv.push_back(add.linear(attention + "v_proj", hidden, c.key_value_size(), c.qkv_bias, std));
    if (c.qk_norm) {
      const std::size_t query = add.ones(attention + "q_norm.weight", c.head_dim);
      layer.qk_norm = {query, add.ones(attention + "k_norm.weight", c.head_dim)};
    }
    layer.output = {add.linear(attention + "o_proj", c.query_size(), hidden, c.output_bias, residual_std)};
    layer.post_attention_norm = add.norm(prefix + "post_attention_layernorm", hidden);
    layer.mlp = c.num_experts > 0 ? add_experts(add, c, prefix) : add_dense(add, c, prefix);
  }
  add.begin_layer(-1);
  table.norm = add.norm("model.norm", hidden);
  table.head = c.tie_word_embeddings ? table.embed : add.matrix("lm_head.weight", c.vocab_size, hidden, std);
  add.append_adapters();
}

void add_gpt2(const ModelConfig& c, ParamTable& table) {
  Builder add(c, table.specs);
  const std::int64_t hidden = c.hidden_size, inner = c.intermediate_size;
  const double std = c.initializer_range, residual_std = c.residual_initializer_range;
  table.layout = WeightLayout::kInOut;
  table.embed = add.matrix("transformer.wte.weight", c.vocab_size, hidden, std);
  table.positions = add.matrix("transformer.wpe.weight", c.max_position_embeddings, hidden, std);
  for (std::int64_t number = 0; number < c.num_hidden_layers; ++number) {
    const std::string prefix = "transformer.h." + std::to_string(number) + ".";
    LayerPlace& layer = table.layers.emplace_back();
    add.begin_layer(number);
    layer.input_norm = add.norm(prefix + "ln_1", hidden);
    layer.qkv = {add.conv1d(prefix + "attn.c_attn", hidden, c.qkv_size(), std)};
    layer.output = {add.conv1d(prefix + "attn.c_proj", c.query_size(), hidden, residual_std)};
    layer.post_attention_norm = add.norm(prefix + "ln_2", hidden);
    layer.mlp.dense.inner = {add.conv1d(prefix + "mlp.c_fc", hidden, inner, std)};
    layer.mlp.dense.outer = {add.conv1d(prefix + "mlp.c_proj", inner, hidden, residual_std)};
  }
  add.begin_layer(-1);
  table.norm = add.norm("transformer.ln_f", hidden);
  table.head = c.tie_word_embeddings ? table.embed : add.matrix("lm_head.weight", c.vocab_size, hidden, std);
  add.append_adapters();
}

}  // namespace

ParamTable::ParamTable(const ModelConfig& config) {
  validate(config);
  config.naming == ParamNaming::kGpt2 ? add_gpt2(config, *this) : add_llama(config, *this);
}

LinearPlaces matrices_of(const LayerPlace& layer) {
  LinearPlaces matrices;
  const auto add = [&](const LinearPlaces& places) { matrices.insert(matrices.end(), places.begin(), places.end()); };
  const auto add_dense = [&](const DensePlace& dense) {
    add(dense.inner);
    add(dense.outer);
  };
  add(layer.qkv);
  add(layer.output);
  add_dense(layer.mlp.dense);
  add(layer.mlp.router);
  for (const DensePlace& expert : layer.mlp.experts) add_dense(expert);
  return matrices;
}

}  // namespace zerofleet
