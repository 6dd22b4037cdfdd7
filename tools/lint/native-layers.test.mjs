import t from 'tap';
import { callProblem, includeProblem } from './native-layers.mjs';

t.test('includes that the layers allow', async (t) => {
  const allowed = [
    ['zero/exchange/grad_reducer.cc', 'comm/communicator.h'],
    ['model/transformer/transformer.cc', 'kernels/gemm/gemm.h'],
    ['train/trainer.cc', 'zero/step/zero_optimizer.h'],
    ['binding/addon.cc', 'napi.h'],
    ['comm/gloo_comm.cc', 'gloo/alltoallv.h'],
    ['core/cuda/runtime.cc', 'cuda_runtime_api.h'],
    ['kernels/gemm/simd/gemm.cc', 'kernels/common/simd/vec.h'],
    ['kernels/gemm/simd/gemm.cc', 'stdint.h'],
    ['kernels/elementwise/simd/gelu.cc', 'kernels/elementwise/formulas/gelu.h'],
    ['kernels/elementwise/formulas/gelu.h', 'kernels/common/formulas/arithmetic.h'],
    ['kernels/quantize/formulas/blocks.h', 'stdint.h'],
    ['test/zero/step/zero_errors_test.cc', 'model/transformer/transformer.h'],
    ['core/device/buffer.cc', 'vector'],
  ];
  for (const [file, header] of allowed) t.equal(includeProblem(file, header), null, `${file}: ${header}`);
});

t.test('includes that the layers forbid', async (t) => {
  const forbidden = [
    ['model/transformer/transformer.cc', 'zero/step/zero_optimizer.h', /model\/ may not include zero\//],
    ['core/device/buffer.cc', 'kernels/gemm/gemm.h', /core\/ may not include kernels\//],
    ['zero/partition/digest.cc', 'train/trainer.h', /zero\/ may not include train\//],
    ['train/trainer.cc', 'napi.h', /only binding\//],
    ['zero/exchange/grad_reducer.cc', 'gloo/alltoallv.h', /only comm\//],
    ['zero/offload/offload.cc', 'cuda_runtime_api.h', /only core\/cuda\//],
    ['kernels/gemm/simd/gemm.cc', 'core/device/context.h', /SIMD files/],
    ['kernels/gemm/simd/gemm.cc', 'vector', /SIMD files/],
    ['kernels/elementwise/formulas/gelu.h', 'cmath', /formulas include only/],
  ];
  for (const [file, header, message] of forbidden)
    t.match(includeProblem(file, header), message, `${file}: ${header}`);
});

t.test('elementary functions of the C library are refused in code that computes the state', async (t) => {
  const forbidden = [
    'std::pow(beta, step)',
    'x = 1 - ::exp (y)',
    'return std::cosf(x);',
    'std::log(1.0) // of 1',
  ];
  for (const line of forbidden)
    t.match(callProblem('zero/optimizer/rules/adam_rules.cc', line), /portable_math/, line);
  const allowed = [
    'portable::log(x)',
    'std::sqrt(x)',
    'std::floor(x)',
    'store(y, exp(load(x)))',
    '// std::pow(x, 2)',
  ];
  for (const line of allowed) t.equal(callProblem('zero/optimizer/rules/adam_rules.cc', line), null, line);
  t.equal(callProblem('test/zero/plain_optimizer.cc', forbidden[0]), null);
});

t.test('functions of formulas are marked, so that no instruction set keeps one of another', async (t) => {
  const file = 'kernels/optimizer/formulas/lion.h';
  t.match(callProblem(file, '  static void apply(Element<M>& e, const Scalars& k) {'), /ZF_FORMULA/);
  t.match(callProblem(file, 'inline float twice(float x) { return 2 * x; }'), /ZF_FORMULA/);
  t.equal(callProblem(file, '  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {'), null);
  t.equal(callProblem(file, '    e.states[0] = M::flushed(m + (g - m) * k.one_minus_beta2);'), null);
  t.equal(callProblem('kernels/optimizer/lamb.cc', 'void check(std::size_t count) {'), null);
});
