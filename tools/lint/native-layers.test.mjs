import t from 'tap';
import { callProblem, includeProblem } from './native-layers.mjs';

t.test('includes that the layers allow', async (t) => {
  const allowed = [
    ['zero/grad_reducer.cc', 'comm/communicator.h'],
    ['model/transformer.cc', 'kernels/gemm.h'],
    ['train/trainer.cc', 'zero/zero_optimizer.h'],
    ['binding/addon.cc', 'napi.h'],
    ['comm/gloo_comm.cc', 'gloo/alltoallv.h'],
    ['core/cuda/runtime.cc', 'cuda_runtime_api.h'],
    ['kernels/cpu/simd/gemm.cc', 'kernels/cpu/simd/vec.h'],
    ['kernels/cpu/simd/gemm.cc', 'stdint.h'],
    ['test/zero/zero_errors_test.cc', 'model/transformer.h'],
    ['core/buffer.cc', 'vector'],
  ];
  for (const [file, header] of allowed) t.equal(includeProblem(file, header), null, `${file}: ${header}`);
});

t.test('includes that the layers forbid', async (t) => {
  const forbidden = [
    ['model/transformer.cc', 'zero/zero_optimizer.h', /model\/ may not include zero\//],
    ['core/buffer.cc', 'kernels/gemm.h', /core\/ may not include kernels\//],
    ['zero/digest.cc', 'train/trainer.h', /zero\/ may not include train\//],
    ['train/trainer.cc', 'napi.h', /only binding\//],
    ['zero/grad_reducer.cc', 'gloo/alltoallv.h', /only comm\//],
    ['zero/offload.cc', 'cuda_runtime_api.h', /only core\/cuda\//],
    ['kernels/cpu/simd/gemm.cc', 'core/context.h', /SIMD files/],
    ['kernels/cpu/simd/gemm.cc', 'vector', /SIMD files/],
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
  for (const line of forbidden) t.match(callProblem('zero/rules/adam_rules.cc', line), /portable_math/, line);
  const allowed = [
    'portable::log(x)',
    'std::sqrt(x)',
    'std::floor(x)',
    'store(y, exp(load(x)))',
    '// std::pow(x, 2)',
  ];
  for (const line of allowed) t.equal(callProblem('zero/rules/adam_rules.cc', line), null, line);
  t.equal(callProblem('test/zero/plain_optimizer.cc', forbidden[0]), null);
});
