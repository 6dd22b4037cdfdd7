#include "model/config/param_table.h"

#include <cmath>
#include <string>
#include <utility>

#include "model/config/model_parts.h"

namespace zerofleet {
namespace {

/// Fills a table with the parameters of a model's parts.
class Builder {
 public:
  Builder(const ModelConfig& config, ParamTable& table) : config_(config), table_(table), parts_(model_parts(config)) {
    for (const PartParams& part : parts_.parts) {
      const std::int64_t layers = part.per_layer() ? config.num_hidden_layers : 1;
      const std::int64_t experts = part.per_expert() ? config.num_experts : 1;
      first_adapter_ += static_cast<std::size_t>(layers * experts * (part.has_bias ? 2 : 1));
    }
  }

  void build() {
    table_.layout = parts_.in_first ? WeightLayout::kInOut : WeightLayout::kOutIn;
    for (const PartParams& part : parts_.parts) {
      if (part.per_layer() && table_.layers.empty()) add_layers();
      if (!part.per_layer()) add_to_ends(part);
    }
    for (ParamSpec& spec : adapters_) table_.specs.push_back(std::move(spec));
  }

 private:
  void add_layers() {
    for (layer_ = 0; layer_ < config_.num_hidden_layers; ++layer_) {
      LayerSpec& layer = table_.layers.emplace_back();
      for (const PartParams& part : parts_.parts) {
        if (part.per_layer() && !part.per_expert()) add_to_layer(part, layer);
      }
      for (expert_ = 0; expert_ < config_.num_experts; ++expert_) {
        DenseSpec& expert = layer.mlp.experts.emplace_back();
        for (const PartParams& part : parts_.parts) {
          if (part.per_expert()) add_to_mlp(part.part, add(part), expert);
        }
      }
      expert_ = -1;
    }
    layer_ = -1;
  }

  void add_to_ends(const PartParams& part) {
    const LinearSpec linear = add(part);
    switch (part.part) {
      case ModelPart::kEmbed:
        table_.embed = table_.head = linear.weight;
        break;
      case ModelPart::kPositions:
        table_.positions = linear.weight;
        break;
      case ModelPart::kNorm:
        table_.norm = {linear.weight, linear.bias};
        break;
      default:
        table_.head = linear.weight;
    }
  }

  void add_to_layer(const PartParams& part, LayerSpec& layer) {
    const LinearSpec linear = add(part);
    const NormSpec norm{linear.weight, linear.bias};
    switch (part.part) {
      case ModelPart::kInputNorm:
        layer.input_norm = norm;
        break;
      case ModelPart::kPostAttentionNorm:
        layer.post_attention_norm = norm;
        break;
      case ModelPart::kAttentionOutputNorm:
        layer.attention_output_norm = norm;
        break;
      case ModelPart::kMlpOutputNorm:
        layer.mlp_output_norm = norm;
        break;
      case ModelPart::kQueryNorm:
        layer.qk_norm.emplace().query = linear.weight;
        break;
      case ModelPart::kKeyNorm:
        layer.qk_norm->key = linear.weight;
        break;
      case ModelPart::kOutput:
        layer.output = {linear};
        break;
      case ModelPart::kSharedGate:
      case ModelPart::kSharedUp:
        layer.mlp.shared.inner.push_back(linear);
        break;
      case ModelPart::kSharedDown:
        layer.mlp.shared.outer = {linear};
        break;
      case ModelPart::kSharedRouter:
        layer.mlp.shared_router = {linear};
        break;
      case ModelPart::kRouter:
        layer.mlp.router = {linear};
        break;
      case ModelPart::kGate:
      case ModelPart::kGateUp:
      case ModelPart::kUp:
      case ModelPart::kDown:
        add_to_mlp(part.part, linear, layer.mlp.dense);
        break;
      default:
        layer.qkv.push_back(linear);
    }
  }

  static void add_to_mlp(ModelPart part, const LinearSpec& linear, DenseSpec& mlp) {
    (part == ModelPart::kDown ? mlp.outer : mlp.inner).push_back(linear);
  }

  /// Adds the weight and the bias of a part, for the layer and the expert that are being added.
  LinearSpec add(const PartParams& part) {
    const std::string module = part.module_of(layer_, expert_);
    LinearSpec linear{add_weight(part, module), std::nullopt, part.out};
    if (part.has_bias)
      linear.bias = add_param(module, {module + ".bias", {part.out}, ParamGroup::kNoDecay, ParamInit::kZeros, 0.0F});
    if (part.kind == PartKind::kLinear) {
      ParamSpec& spec = table_.specs[linear.weight];
      if (spec.base || !config_.adapter) spec.quantization = config_.quantization;
      linear.quantized = spec.quantization.has_value();
    }
    const bool is_linear = part.kind == PartKind::kLinear || part.kind == PartKind::kRouter;
    if (is_linear && config_.adapter && config_.adapter->targets(module))
      linear.adapter = add_adapter(linear, module, part.in);
    return linear;
  }

  std::size_t add_weight(const PartParams& part, const std::string& module) {
    const std::string name = module + ".weight";
    if (part.kind == PartKind::kNorm) {
      const ParamInit init = config_.norm_offset == 1 ? ParamInit::kZeros : ParamInit::kOnes;
      return add_param(module, {name, {part.out}, ParamGroup::kNoDecay, init, 0.0F});
    }
    const bool in_first = part.kind == PartKind::kLinear && parts_.in_first;
    std::vector<std::int64_t> shape{part.out, part.in};
    if (in_first) std::swap(shape[0], shape[1]);
    return add_param(module, {name, shape, ParamGroup::kDecay, ParamInit::kNormal, static_cast<float>(part.init_std)});
  }

  std::size_t add_param(const std::string& module, ParamSpec spec) {
    spec.base = config_.adapter && !config_.adapter->saves(module);
    return append(std::move(spec), table_.specs);
  }

  AdapterSpec add_adapter(const LinearSpec& linear, const std::string& module, std::int64_t in) {
    const AdapterConfig& adapter = *config_.adapter;
    const bool is_normal = adapter.init == AdapterInit::kGaussian;
    const double scale = is_normal ? 1.0 / static_cast<double>(adapter.rank) : 1.0 / std::sqrt(static_cast<double>(in));
    AdapterSpec added;
    added.down = append_adapter({module + ".lora_A.weight",
                                 {adapter.rank, in},
                                 ParamGroup::kDecay,
                                 is_normal ? ParamInit::kNormal : ParamInit::kUniform,
                                 static_cast<float>(scale)});
    added.up = append_adapter(
        {module + ".lora_B.weight", {linear.out, adapter.rank}, ParamGroup::kDecay, ParamInit::kZeros, 0.0F});
    if (adapter.type == AdapterType::kDora) {
      // The magnitudes begin as the norms of the weights of each output.
      ParamSpec spec{module + ".lora_magnitude_vector.weight",
                     {linear.out},
                     ParamGroup::kNoDecay,
                     parts_.in_first ? ParamInit::kColumnNorms : ParamInit::kRowNorms,
                     0.0F};
      spec.norms_of = linear.weight;
      added.magnitude = append_adapter(std::move(spec));
    }
    return added;
  }

  std::size_t append_adapter(ParamSpec spec) { return first_adapter_ + append(std::move(spec), adapters_); }

  std::size_t append(ParamSpec spec, std::vector<ParamSpec>& specs) const {
    spec.expert = expert_;
    spec.layer = layer_;
    specs.push_back(std::move(spec));
    return specs.size() - 1;
  }

  const ModelConfig& config_;
  ParamTable& table_;
  const ModelParts parts_;
  std::vector<ParamSpec> adapters_;
  std::size_t first_adapter_ = 0;  // number of the model's own parameters
  int expert_ = -1, layer_ = -1;
};

}  // namespace

ParamTable::ParamTable(const ModelConfig& config) {
  validate(config);
  Builder(config, *this).build();
}

std::vector<ParamSpec> param_specs(const ModelConfig& config) { return ParamTable(config).specs; }

LinearSpecs matrices_of(const LayerSpec& layer) {
  LinearSpecs matrices;
  const auto add = [&](const LinearSpecs& matrices_of_input) {
    matrices.insert(matrices.end(), matrices_of_input.begin(), matrices_of_input.end());
  };
  const auto add_dense = [&](const DenseSpec& dense) {
    add(dense.inner);
    add(dense.outer);
  };
  add(layer.qkv);
  add(layer.output);
  add_dense(layer.mlp.dense);
  add_dense(layer.mlp.shared);
  add(layer.mlp.shared_router);
  add(layer.mlp.router);
  for (const DenseSpec& expert : layer.mlp.experts) add_dense(expert);
  return matrices;
}

}  // namespace zerofleet
