#include "serve/answer_engine.h"

#include <algorithm>
#include <string>

#include "core/device/transfer.h"
#include "core/dtype.h"
#include "core/error.h"
#include "kernels/flat/cast.h"
#include "model/config/param_table.h"

namespace zerofleet {
AnswerEngine::AnswerEngine(const ModelConfig& config, DType dtype, Device device, int num_threads, CpuIsa cpu_isa,
                           const Limits& limits)
    : specs_(param_specs(config)),
      pool_(num_threads),
      stream_(device),
      context_{device, &pool_, cpu_isa, &stream_},
      dtype_(dtype),
      config_(config),
      num_set_(specs_.size(), 0),
      decoder_(context_, config, dtype,
               ContinuousBatch::decoder_limits(config, limits.max_sequences, limits.cache_tokens, limits.max_length)),
      batch_(context_, config.rope_scaling, decoder_) {
  std::vector<const std::byte*> pointers;
  std::vector<const QuantizedMatrix*> matrices;
  quantized_.resize(specs_.size());
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    const ParamSpec& spec = specs_[param];
    params_.emplace_back(device, static_cast<std::size_t>(spec.numel()) * size_of(dtype));
    if (spec.quantization) quantized_[param] = {device, *spec.quantization, spec.shape[0], spec.shape[1]};
    pointers.push_back(spec.quantization ? nullptr : params_.back().data());
    matrices.push_back(spec.quantization ? &quantized_[param] : nullptr);
    ++unset_[spec.layer];
  }
  if (!config.quantization) matrices.clear();
  decoder_.bind_params(pointers, matrices);
}

void AnswerEngine::set_param(std::size_t param, std::int64_t begin, DType dtype, std::span<const std::byte> elements) {
  const auto count = static_cast<std::int64_t>(elements.size() / size_of(dtype));
  require(param < specs_.size() && begin == num_set_[param] && count <= specs_[param].numel() - begin &&
              elements.size() % size_of(dtype) == 0,
          "invalid_argument",
          "parameter " + std::to_string(param) + " does not take " + std::to_string(count) +
              " elements next, from element " + std::to_string(begin));
  if (count == 0) return;
  const std::span<std::byte> target{params_[param].data() + static_cast<std::size_t>(begin) * size_of(dtype_),
                                    static_cast<std::size_t>(count) * size_of(dtype_)};
  if (context_.device.kind == DeviceKind::kCpu) {
    convert(dtype, elements, target);
  } else {
    std::vector<std::byte> host(target.size());
    convert(dtype, elements, host);
    copy_bytes(context_, target, context_.device, host, Device{});
  }
  num_set_[param] += count;
  if (num_set_[param] < specs_[param].numel()) return;
  if (const int layer = specs_[param].layer; --unset_[layer] == 0) use_params(layer);
}

/// Called once per layer when all its parameters are set, so that only one layer is in memory twice.
void AnswerEngine::use_params(int layer) {
  unset_.erase(layer);
  const auto of_layer = [&](std::size_t param) { return specs_[param].layer == layer; };
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    if (!of_layer(param) || !specs_[param].quantization) continue;
    const QuantizedMatrix& matrix = quantized_[param];
    quantize(context_, {params_[param].data(), dtype_, matrix.rows(), matrix.cols(), matrix.cols()}, quantized_[param]);
    synchronize(context_);
    params_[param] = Buffer();
  }
  decoder_.params_changed(layer);
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    if (!of_layer(param) || !decoder_.is_copied(param)) continue;
    params_[param] = Buffer();
    quantized_[param] = QuantizedMatrix();
  }
}

/// On the host.
void AnswerEngine::convert(DType dtype, std::span<const std::byte> elements, std::span<std::byte> target) const {
  if (dtype == dtype_) {
    std::ranges::copy(elements, target.begin());
    return;
  }
  const Context host{Device{}, context_.pool, context_.cpu_isa};
  std::vector<float> values(elements.size() / size_of(dtype));
  cast_to_f32(host, elements, dtype, values);
  cast_from_f32(host, values, dtype_, target);
}

std::int32_t AnswerEngine::add_adapter(const AdapterConfig& adapter, std::span<const std::vector<float>> values) {
  const std::vector<ParamSpec> specs = ServedAdapter::params(config_, adapter);
  const auto num_elements = [](const auto& param) { return std::ssize(param); };
  require(std::ranges::equal(specs, values, {}, &ParamSpec::numel, num_elements), "invalid_argument",
          "the values of an adapter do not fit its " + std::to_string(specs.size()) + " parameters");
  std::vector<std::vector<std::byte>> elements;
  for (const std::vector<float>& param : values) {
    elements.emplace_back(param.size() * size_of(dtype_));
    convert(DType::kF32, std::as_bytes(std::span(param)), elements.back());
  }
  auto served = decoder_.make_adapter(adapter, elements);
  const std::lock_guard lock(mutex_);
  adapters_.emplace(++last_adapter_, std::move(served));
  return last_adapter_;
}

void AnswerEngine::remove_adapter(std::int32_t adapter) {
  const auto uses_adapter = [&](const SequenceRequest& request) { return request.adapter == adapter; };
  batch_.sequences().drop(uses_adapter);
  const std::lock_guard lock(mutex_);
  std::erase_if(arrived_, uses_adapter);
  adapters_.erase(adapter);
}

std::size_t AnswerEngine::bytes_of(const ParamSpec& spec) const {
  if (spec.quantization) return quantized_bytes(*spec.quantization, spec.shape[0], spec.shape[1]);
  return static_cast<std::size_t>(spec.numel()) * size_of(dtype_);
}

std::size_t AnswerEngine::num_bytes() const {
  std::size_t bytes = decoder_.num_bytes();
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    if (!decoder_.is_copied(param)) bytes += bytes_of(specs_[param]);
  }
  return bytes;
}

void AnswerEngine::add(SequenceRequest request) {
  ContinuousBatch::check(request, decoder_.vocab_size(), max_length());
  const std::lock_guard lock(mutex_);
  require(request.adapter == 0 || adapters_.contains(request.adapter), "invalid_argument",
          "there is no adapter " + std::to_string(request.adapter));
  arrived_.push_back(std::move(request));
}

void AnswerEngine::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(arrived_, [&](const SequenceRequest& request) { return request.id == id; });
  cancelled_.push_back(id);
}

void AnswerEngine::allow(std::uint64_t id, TokenMask mask) {
  require(std::ranges::any_of(mask, [](std::uint32_t word) { return word != 0; }), "invalid_argument",
          "a mask must allow a token");
  const std::lock_guard lock(mutex_);
  allowed_[id] = std::move(mask);
}

void AnswerEngine::receive_requests() {
  std::vector<SequenceRequest> arrived;
  std::vector<std::uint64_t> cancelled;
  std::map<std::uint64_t, TokenMask> allowed;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
    cancelled.swap(cancelled_);
    allowed.swap(allowed_);
  }
  batch_.sequences().drop(
      [&](const SequenceRequest& request) { return std::ranges::find(cancelled, request.id) != cancelled.end(); });
  for (SequenceRequest& request : arrived) batch_.sequences().add(std::move(request));
  batch_.sequences().set_masks(allowed);
}

std::vector<DrawnToken> AnswerEngine::step() {
  if (!unset_.empty()) {
    const auto unset = std::ranges::mismatch(num_set_, specs_, {}, {}, &ParamSpec::numel).in2;
    throw Error("invalid_argument", "parameter " + unset->name + " was not set");
  }
  receive_requests();
  return batch_.step([this](std::int32_t adapter) { return adapters_.at(adapter).get(); });
}

}  // namespace zerofleet
