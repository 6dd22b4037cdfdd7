#include "model/layers/served_adapter.h"

#include <algorithm>

#include "core/device/transfer.h"
#include "core/error.h"
#include "model/config/param_table.h"

namespace zerofleet {
namespace {

ModelConfig with_adapter(const ModelConfig& base, const AdapterConfig& adapter) {
  ModelConfig config = base;
  config.adapter = adapter;
  return config;
}

/// Calls `visit` with the matrices of each Linear that all tokens pass through, and the number of its inputs.
template <class Visit>
void each_linear(const ModelConfig& config, const ParamTable& table, Visit visit) {
  for (const LayerSpec& layer : table.layers) {
    visit(layer.qkv, config.hidden_size);
    visit(layer.output, config.query_size());
    visit(layer.mlp.dense.inner, config.hidden_size);
    visit(layer.mlp.dense.outer, config.intermediate_size);
    visit(layer.mlp.shared.inner, config.hidden_size);
    visit(layer.mlp.shared.outer, config.shared_expert_size);
    visit(layer.mlp.shared_router, config.hidden_size);
    visit(layer.mlp.router, config.hidden_size);
  }
}

}  // namespace

std::vector<ParamSpec> ServedAdapter::params(const ModelConfig& base, const AdapterConfig& adapter) {
  require(adapter.type == AdapterType::kLora && adapter.modules_to_save.empty(), "adapter_not_servable",
          "an adapter with magnitudes or modules_to_save changes more than it adds to products");
  require(!base.adapter, "invalid_argument", "adapters beside others need a base without one");
  const std::size_t num_base = param_specs(base).size();
  std::vector<ParamSpec> specs = param_specs(with_adapter(base, adapter));
  specs.erase(specs.begin(), specs.begin() + static_cast<std::ptrdiff_t>(num_base));
  require(std::ranges::all_of(specs, [](const ParamSpec& spec) { return spec.expert < 0; }), "adapter_not_servable",
          "an adapter of experts cannot be beside others: each of its rows would be in several groups");
  return specs;
}

ServedAdapter::ServedAdapter(const ModelContext& base, const AdapterConfig& adapter, std::int64_t rows,
                             std::span<const std::vector<std::byte>> values) {
  ModelContext model = base;
  model.config = with_adapter(base.config, adapter);
  const ParamTable table(model.config);
  std::vector<const std::byte*> elements(table.specs.size() - values.size(), nullptr);
  for (const std::vector<std::byte>& host : values) {
    Buffer& target = values_.emplace_back(model.ctx.device, host.size());
    copy_bytes(model.ctx, {target.data(), target.num_bytes()}, model.ctx.device, host, Device{});
    elements.push_back(target.data());
  }
  std::int64_t width = 0;
  each_linear(model.config, table, [&](const LinearSpecs& specs, std::int64_t in) {
    LinearAdapter linear(model, specs, in, true);
    if (linear.empty()) return;
    linear.bind(model, {elements}, {});
    width = std::max(width, linear.low_size());
    linears_.emplace(specs.front().weight, std::move(linear));
  });
  low_ = model.tensor(rows, width);
}

const LinearAdapter* ServedAdapter::linear_of(std::size_t weight) const {
  const auto found = linears_.find(weight);
  return found == linears_.end() ? nullptr : &found->second;
}

std::size_t ServedAdapter::num_bytes() const {
  std::size_t bytes = low_.num_bytes();
  for (const Buffer& value : values_) bytes += value.num_bytes();
  return bytes;
}

void add_adapted_rows(const ModelContext& model, std::span<const AdaptedRows> rows, std::size_t weight, const Matrix& x,
                      std::span<const Matrix> ys) {
  std::vector<GemmProblem> lows, outputs;
  for (const AdaptedRows& mine : rows) {
    const LinearAdapter* adapter = mine.adapter->linear_of(weight);
    if (adapter == nullptr) continue;
    const auto part = [&](const Matrix& matrix) { return mine.range == nullptr ? mine.rows_of(matrix) : matrix; };
    const Matrix low = part(mine.adapter->low().first_rows(x.rows)).columns(0, adapter->low_size());
    std::vector<Matrix> sums(ys.size());
    std::ranges::transform(ys, sums.begin(), part);
    adapter->add_low(part(x), low, lows, mine.range);
    adapter->add_outputs(low, sums, outputs, mine.range);
  }
  if (lows.empty()) return;
  gemm(model.ctx, *model.scratch, lows);
  gemm(model.ctx, *model.scratch, outputs);
}

}  // namespace zerofleet
