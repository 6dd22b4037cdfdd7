// Gradients of weights in the compute dtype, as their products leave them: fp32 ones rounded once. Not among the cases
// for all devices, because a library may have another algorithm for results in 16 bits.
#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <vector>

#include "core/system/cpu_isa.h"
#include "test/devices_here.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"
#include "test/sanitized.h"
#include "test/zero/narrow_values.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Copies gradients to the host. Has room for every second parameter.
class Collected final : public GradSink {
 public:
  Collected(const Context& ctx, std::span<const ParamSpec> specs) : ctx_(ctx), specs_(specs) {}

  void take(std::size_t param, const GradView& grad) override {
    const auto room = rooms_.find(param);
    if (room != rooms_.end()) CHECK(grad.data == room->second.data());
    CHECK(grad.numel == static_cast<std::size_t>(specs_[param].numel()));
    std::vector<std::byte> bytes(grad.bytes().size());
    copy_bytes(ctx_, bytes, Device{}, grad.bytes(), ctx_.device);
    by_param[param] = widened(bytes, grad.dtype);
    dtypes[param] = grad.dtype;
  }
  std::byte* room_for(std::size_t param, DType dtype) override {
    if (param % 2 == 0) return nullptr;
    return (rooms_[param] = Buffer(ctx_.device, static_cast<std::size_t>(specs_[param].numel()) * size_of(dtype)))
        .data();
  }

  std::map<std::size_t, std::vector<float>> by_param;
  std::map<std::size_t, DType> dtypes;

 private:
  Context ctx_;
  std::span<const ParamSpec> specs_;
  std::map<std::size_t, Buffer> rooms_;
};

std::vector<float> each_rounded(std::vector<float> values, DType dtype) {
  for (float& value : values) value = rounded(value, dtype);
  return values;
}

}  // namespace

DEVICE_TEST_CASE("families: gradients of weights in the compute dtype are those in fp32, rounded") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, config] : family_configs()) {
      for (const DType dtype : kAllDTypes) {
        if (kSanitized && dtype == DType::kF16) continue;  // bf16's accesses
        CAPTURE(name);
        CAPTURE(to_string(device));
        RandomModel in_f32(machine.ctx, config, dtype), narrow(machine.ctx, config, dtype, {.weight_gradients = dtype});
        const LeafKey key{7, 3, 1};
        Collected expected(machine.ctx, in_f32.specs()), actual(machine.ctx, narrow.specs());
        const LeafResult result = in_f32.model().forward_backward(in_f32.leaf(key), {1.0F, 2.0F}, expected);
        CHECK(narrow.model().forward_backward(narrow.leaf(key), {1.0F, 2.0F}, actual).loss_sum == result.loss_sum);
        REQUIRE(actual.by_param.size() == in_f32.specs().size());
        std::size_t num_narrow = 0;
        for (const auto& [param, values] : actual.by_param) {
          CAPTURE(in_f32.specs()[param].name);
          CHECK(expected.dtypes[param] == DType::kF32);
          const DType mine = actual.dtypes[param];
          num_narrow += mine == dtype ? 1 : 0;
          CHECK(values == each_rounded(expected.by_param[param], mine));
        }
        CHECK(num_narrow >= 4 * static_cast<std::size_t>(config.num_hidden_layers));
      }
    }
  }
}
