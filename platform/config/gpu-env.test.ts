import t from 'tap';
import { gpuEnv, isGpuVariable } from './gpu-env.js';

t.test('entries with spaces between become variables', async (t) => {
  t.strictSame(gpuEnv('none'), {});
  t.strictSame(gpuEnv(' NVIDIA_TF32_OVERRIDE=0  CUBLAS_WORKSPACE_CONFIG=:4096:8 NCCL_ALGO=Ring,Tree '), {
    NVIDIA_TF32_OVERRIDE: '0',
    CUBLAS_WORKSPACE_CONFIG: ':4096:8',
    NCCL_ALGO: 'Ring,Tree',
  });
});

t.test('anything else is refused by what is wrong with it', async (t) => {
  for (const text of [
    'NVIDIA_TF32_OVERRIDE',
    'CUDNN_X=',
    '=1',
    'CUBLAS_X="1"',
    `CUBLAS_X=${'x'.repeat(101)}`,
  ])
    t.throws(() => gpuEnv(text), /must be none or entries such as NVIDIA_TF32_OVERRIDE=0/, text);
  t.throws(() => gpuEnv('NCCL_DEBUG=INFO'), /ranks have NCCL_DEBUG from the environment of the agent/);
  t.throws(() => gpuEnv('NCCL_ALGO=Ring NCCL_ALGO=Tree'), /sets NCCL_ALGO twice/);
});

t.test('variables that only direct traffic or logs are not withheld', async (t) => {
  for (const name of [
    'NCCL_SOCKET_IFNAME',
    'NCCL_DEBUG',
    'CUDA_VISIBLE_DEVICES',
    'LD_LIBRARY_PATH',
    'ZF_CUBLASLT',
    'ZF_CUDNN',
  ])
    t.notOk(isGpuVariable(name), name);
});
