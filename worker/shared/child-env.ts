import { gpuEnv, isGpuVariable } from '../../platform/config/gpu-env.js';

/**
 * Variables of the agent that its child processes have:
 * - where programs, libraries and temporary files are, language and certificates;
 * - settings of the C library, of Node.js, of GPUs and of networks between ranks;
 * - files of libraries and settings of tests (`ZF_`);
 * - the instruction-set path.
 *
 * Whatever else the agent has, such as secrets of the API in a shared environment, stays with it.
 */
const PASSED = new RegExp(
  `^(${[
    ['PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE', 'LC_\\w+'],
    ['LD_\\w+', 'GLIBC_TUNABLES', 'MALLOC_\\w+', '[ALTU]\\w*SAN_OPTIONS'],
    ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'NODE_V8_COVERAGE', 'UV_\\w+', 'SSL_CERT_(FILE|DIR)'],
    [
      'CUDA_\\w+',
      'NVIDIA_\\w+',
      'NCCL_\\w+',
      'FI_\\w+',
      'OFI_\\w+',
      'RDMAV_\\w+',
      'IBV_\\w+',
      'MLX\\d_\\w+',
      'UCX_\\w+',
    ],
    ['ZF_\\w+', 'ZEROFLEET_CPU_ISA'],
  ]
    .flat()
    .join('|')})$`,
);

/** SDK variables for the address of a server and its protocol. All others may lead to credentials. */
const AWS_ENDPOINTS =
  /^AWS_(REGION|DEFAULT_REGION|CA_BUNDLE|DEFAULTS_MODE|MAX_ATTEMPTS|RETRY_MODE|USE_\w+|ENDPOINT_URL(_S3)?|S3_\w+)$/;

/** Settings that disable every credential source of the SDK. */
const NO_CREDENTIALS = {
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_CONFIG_FILE: '/dev/null',
};

/** Makes CUDA and the driver number GPUs alike. */
const CUDA_ORDER = { CUDA_DEVICE_ORDER: 'PCI_BUS_ID' };

/**
 * Returns the environment of a child process: the variables of this process that it needs. Variables that change the
 * numerics of GPUs come only from ZEROFLEET_GPU_ENV.
 * @param aws true if it reads the object store with the AWS credentials of this process
 * @param gpu UUID of the only GPU that CUDA shows the child; null: the GPUs of this process
 */
export function childEnv(aws: boolean, gpu: string | null): NodeJS.ProcessEnv {
  const isPassed = (name: string) =>
    name.startsWith('AWS_') ? aws || AWS_ENDPOINTS.test(name) : PASSED.test(name) && !isGpuVariable(name);
  const entries = Object.entries(process.env).filter(([name]) => isPassed(name));
  return {
    ...Object.fromEntries(entries),
    ...(!aws && NO_CREDENTIALS),
    ...CUDA_ORDER,
    ...gpuEnv(process.env.ZEROFLEET_GPU_ENV || 'none'),
    ...(gpu !== null && { CUDA_VISIBLE_DEVICES: gpu }),
  };
}

/** Whether a child process needs the AWS credentials of this one: it reads a store in S3, and has no session. */
export function needsCredentials(objectStore: { url: string } | null, session: object | null): boolean {
  return session === null && (objectStore?.url.startsWith('s3:') ?? false);
}
