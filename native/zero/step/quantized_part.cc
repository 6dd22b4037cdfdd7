#include "zero/step/quantized_part.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/flat/cast.h"
#include "zero/exchange/host_memory.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/partition/param_init.h"

namespace zerofleet {
namespace {

/// Largest number of elements that are widened or drawn at a time.
constexpr std::int64_t kChunkNumel = 64 * kBlockNumel;

/// Calls body(begin, count) for chunks of `numel` elements.
template <class Body>
void in_chunks(std::int64_t numel, const Body& body) {
  for (std::int64_t begin = 0; begin < numel; begin += kChunkNumel) body(begin, std::min(kChunkNumel, numel - begin));
}

/// The owner of each matrix: the rank that has the fewest elements so far.
std::vector<int> owners_of(std::span<const ParamSpec> specs, int world_size) {
  std::vector<std::int64_t> numels(static_cast<std::size_t>(world_size), 0);
  std::vector<int> owners;
  for (const ParamSpec& spec : specs) {
    const auto least = std::ranges::min_element(numels);
    *least += spec.numel();
    owners.push_back(static_cast<int>(least - numels.begin()));
  }
  return owners;
}

}  // namespace

QuantizedPart::QuantizedPart(const PlannedPart& plan, Communicator& communicator, const PartTools& tools)
    : plan_(plan),
      communicator_(communicator),
      tools_(tools),
      host_{Device{}, tools.context.pool, tools.context.cpu_isa},
      memory_(frozen_memory(tools.context.device, communicator)) {
  const std::vector<int> owners = owners_of(subset().specs, communicator.world_size());
  std::vector<std::size_t> sizes;
  for (const ParamSpec& spec : subset().specs)
    sizes.push_back(quantized_bytes(spec.quantization.value(), spec.shape[0], spec.shape[1]));
  std::vector<Buffer> arrays = memory_->allocate(sizes);
  for (std::size_t local = 0; local < owners.size(); ++local) {
    const ParamSpec& spec = subset().specs[local];
    matrices_.push_back({{std::move(arrays[local]), spec.quantization.value(), spec.shape[0], spec.shape[1]},
                         owners[local],
                         {},
                         {},
                         0});
    if (owners[local] == communicator.rank()) owned_.push_back(local);
  }
}

std::size_t QuantizedPart::num_bytes() const {
  std::size_t num_bytes = 0;
  for (const Held& matrix : matrices_) num_bytes += matrix.codes.num_bytes();
  return num_bytes;
}

void QuantizedPart::load(std::size_t local, std::int64_t begin, std::span<const float> values) {
  Held& matrix = matrices_[local];
  const ParamSpec& spec = subset().specs[local];
  const auto count = static_cast<std::int64_t>(values.size());
  require(matrix.owner == communicator_.rank() && begin >= 0 && begin + count <= spec.numel(), "slice_not_owned",
          "elements " + std::to_string(begin) + " to " + std::to_string(begin + count) + " of '" + spec.name +
              "' are not this rank's");
  const DType dtype = tools_.options.param_dtype;
  if (matrix.elements.empty()) {
    matrix.elements = Buffer(Device{}, static_cast<std::size_t>(spec.numel()) * size_of(dtype));
    matrix.missing = spec.numel();
  }
  const std::span<std::byte> target(matrix.elements.data() + static_cast<std::size_t>(begin) * size_of(dtype),
                                    values.size() * size_of(dtype));
  cast_from_f32(host_, values, dtype, target);
  matrix.missing -= count;
  if (matrix.missing <= 0) finish(local);
}

/// Quantizes a matrix whose elements are all there, on the host, whatever the device is, and gives their memory back.
void QuantizedPart::finish(std::size_t local) {
  Held& matrix = matrices_[local];
  const ParamSpec& spec = subset().specs[local];
  const DType dtype = tools_.options.param_dtype;
  const std::int64_t rows = spec.shape[0], cols = spec.shape[1];
  const std::byte* elements = matrix.elements.data();
  matrix.digest = {};
  std::vector<float> values;
  in_chunks(spec.numel(), [&](std::int64_t begin, std::int64_t count) {
    values.assign(static_cast<std::size_t>(num_blocks_of(count) * kBlockNumel), 0);
    const std::size_t width = size_of(dtype);
    cast_to_f32(host_, {elements + static_cast<std::size_t>(begin) * width, static_cast<std::size_t>(count) * width},
                dtype, std::span(values).first(static_cast<std::size_t>(count)));
    matrix.digest += digest_blocks(host_, static_cast<std::uint8_t>(StateId::kMaster),
                                   subset().first_blocks[local] + begin / kBlockNumel, values);
  });
  QuantizedMatrix codes(Device{}, matrix.codes.format(), rows, cols);
  quantize(host_, {elements, dtype, rows, cols, cols}, codes);
  memory_->begin_writes();
  copy_bytes(tools_.context, matrix.codes.bytes(), tools_.context.device, codes.bytes(), Device{});
  matrix.elements = {};
}

void QuantizedPart::initialize(std::uint64_t seed, std::size_t first) {
  std::vector<float> values;
  for (const std::size_t local : owned_) {
    const std::size_t param = subset().params[local];
    const ParamSpec& spec = subset().specs[local];
    if (param < first) continue;
    in_chunks(spec.numel(), [&](std::int64_t begin, std::int64_t count) {
      values.resize(static_cast<std::size_t>(count));
      host_.pool->parallel_for(num_blocks_of(count), [&](std::int64_t block, int) {
        const std::int64_t from = block * kBlockNumel, size = std::min(kBlockNumel, count - from);
        init_param(spec, seed, param, begin + from,
                   std::span(values).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(size)));
      });
      load(local, begin, values);
    });
  }
}

void QuantizedPart::gather() {
  for (const std::size_t local : owned_) {
    require(
        matrices_[local].elements.empty(), "invalid_argument",
        std::to_string(matrices_[local].missing) + " elements of '" + subset().specs[local].name + "' were not loaded");
  }
  if (communicator_.world_size() == 1) return;
  tools_.queue.post([this](bool failed) {
    if (failed) return;
    std::vector<std::vector<Range>> pieces;
    std::vector<Gather> gathers;
    pieces.reserve(matrices_.size());
    for (Held& matrix : matrices_) {
      const auto size = static_cast<std::int64_t>(matrix.codes.num_bytes());
      std::vector<Range>& of_ranks = pieces.emplace_back();
      for (int rank = 0; rank < communicator_.world_size(); ++rank)
        of_ranks.push_back({rank > matrix.owner ? size : 0, rank >= matrix.owner ? size : 0});
      gathers.push_back({matrix.codes.bytes(), of_ranks});
    }
    memory_->all_gathers(gathers);
    memory_->end_writes();
  });
}

Digest128 QuantizedPart::digest() const {
  Digest128 sum;
  for (const std::size_t local : owned_) sum += matrices_[local].digest;
  return sum;
}

}  // namespace zerofleet
