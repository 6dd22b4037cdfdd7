#include "test/golden/golden_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "core/dtype.h"
#include "test/built_files.h"

namespace zerofleet::test {
namespace {

std::ifstream open(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return file;
}

template <class T>
T element(const std::string& data, std::size_t offset) {
  T value;
  std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

}  // namespace

GoldenFile::GoldenFile(const std::string& name) : name_(name) {
  const auto part = [&](const char* ending) { return std::filesystem::path(golden_dir()) / (name + ending); };
  std::ifstream index = open(part(".txt"));
  for (std::string kind, key; index >> kind >> key;) {
    if (kind == "number") {
      index >> numbers_[key];
    } else if (kind == "word") {
      index >> words_[key];
    } else {
      Entry& place = tensors_[key];
      index >> place.type >> place.offset >> place.count;
    }
  }
  std::ostringstream bytes;
  bytes << open(part(".bin")).rdbuf();
  data_ = bytes.str();
}

double GoldenFile::number(const std::string& key) const {
  const auto found = numbers_.find(key);
  if (found == numbers_.end()) throw std::runtime_error(name_ + " has no number " + key);
  return found->second;
}

const GoldenFile::Entry& GoldenFile::entry(const std::string& key) const {
  const auto found = tensors_.find(key);
  if (found == tensors_.end()) throw std::runtime_error(name_ + " has no tensor " + key);
  return found->second;
}

std::vector<float> GoldenFile::floats(const std::string& key) const {
  const Entry& place = entry(key);
  std::vector<float> values(place.count);
  for (std::size_t i = 0; i < place.count; ++i) {
    values[i] = place.type == "bf16" ? to_float(element<bf16>(data_, place.offset + 2 * i))
                                     : element<float>(data_, place.offset + 4 * i);
  }
  return values;
}

std::vector<std::int32_t> GoldenFile::integers(const std::string& key) const {
  const Entry& place = entry(key);
  std::vector<std::int32_t> values(place.count);
  for (std::size_t i = 0; i < place.count; ++i) {
    values[i] = place.type == "u16" ? element<std::uint16_t>(data_, place.offset + 2 * i)
                                    : element<std::int32_t>(data_, place.offset + 4 * i);
  }
  return values;
}

double GoldenFile::number_or(const std::string& key, double fallback) const {
  const auto found = numbers_.find(key);
  return found == numbers_.end() ? fallback : found->second;
}

std::string GoldenFile::word_or(const std::string& key, const std::string& fallback) const {
  const auto found = words_.find(key);
  return found == words_.end() ? fallback : found->second;
}

RopeScaling GoldenFile::rope_scaling() const {
  const std::string type = word_or("rope_scaling", "none");
  RopeScaling scaling;
  if (type == "none") return scaling;
  scaling.type = type == "linear"   ? RopeScalingType::kLinear
                 : type == "llama3" ? RopeScalingType::kLlama3
                                    : RopeScalingType::kYarn;
  scaling.factor = number("rope_scaling.factor");
  scaling.low_freq_factor = number_or("rope_scaling.low_freq_factor", 1);
  scaling.high_freq_factor = number_or("rope_scaling.high_freq_factor", 4);
  scaling.original_max_position_embeddings =
      static_cast<std::int64_t>(number_or("rope_scaling.original_max_position_embeddings", 0));
  scaling.beta_fast = number_or("rope_scaling.beta_fast", 32);
  scaling.beta_slow = number_or("rope_scaling.beta_slow", 1);
  return scaling;
}

std::optional<AdapterConfig> GoldenFile::adapter() const {
  if (!numbers_.contains("adapter.rank")) return std::nullopt;
  const auto names = [&](const std::string& key) {
    std::vector<std::string> found;
    std::istringstream list(word_or(key, ""));
    for (std::string name; std::getline(list, name, ',');) found.push_back(name);
    return found;
  };
  return AdapterConfig{integer("adapter.rank"),
                       number("adapter.scale"),
                       0,
                       AdapterInit::kKaimingUniform,
                       names("adapter.target_modules"),
                       names("adapter.modules_to_save"),
                       word_or("adapter.type", "lora") == "dora" ? AdapterType::kDora : AdapterType::kLora};
}

ModelConfig GoldenFile::model_config() const {
  ModelConfig config;
  config.hidden_size = integer("hidden_size");
  config.intermediate_size = integer("intermediate_size");
  config.num_hidden_layers = integer("num_hidden_layers");
  config.num_attention_heads = integer("num_attention_heads");
  config.num_key_value_heads = integer("num_key_value_heads");
  config.head_dim = integer("head_dim");
  config.vocab_size = integer("vocab_size");
  config.max_position_embeddings = integer("max_position_embeddings");
  config.norm_eps = number_or("norm_eps", number_or("rms_norm_eps", 0));
  config.rope_theta = number_or("rope_theta", 10000);
  config.rope_scaling = rope_scaling();
  config.qkv_bias = flag("qkv_bias");
  config.output_bias = flag("output_bias");
  config.mlp_bias = flag("mlp_bias");
  config.qk_norm = flag("qk_norm");
  config.tie_word_embeddings = flag("tie_word_embeddings");
  config.num_experts = static_cast<std::int64_t>(number_or("num_experts", 0));
  config.experts_per_token = static_cast<std::int64_t>(number_or("experts_per_token", 0));
  config.router_aux_loss_coef = number_or("router_aux_loss_coef", 0);
  if (word_or("naming", "llama") == "gpt2") config.naming = ParamNaming::kGpt2;
  if (word_or("naming", "llama") == "mixtral") config.naming = ParamNaming::kMixtral;
  if (word_or("norm", "rms") == "layer") config.norm = NormType::kLayer;
  if (word_or("positions", "rope") == "learned") config.positions = PositionType::kLearned;
  const std::string mlp = word_or("mlp", "swiglu");
  if (mlp != "swiglu") config.mlp = mlp == "gelu" ? MlpType::kGelu : MlpType::kGeluTanh;
  config.adapter = adapter();
  if (words_.contains("quantization"))
    config.quantization = word_or("quantization", "") == "nf4" ? QuantFormat::kNf4 : QuantFormat::kInt8;
  if (!tensors_.contains("layer_windows")) return config;
  for (const std::int32_t window : integers("layer_windows")) config.layer_windows.push_back(window);
  return config;
}

}  // namespace zerofleet::test
