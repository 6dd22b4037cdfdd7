import { gpuEnv, isGpuVariable } from '../../platform/config/gpu-env.js';

/** Secrets of the agent that a compromised child must not have. */
const AGENT_ONLY = ['ZEROFLEET_API_KEY', 'ZEROFLEET_REDIS_URL'];

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
 * Returns the environment of a child process: this one's without the agent's secrets. Of the variables that change the numerics of GPUs it
 * has those that ZEROFLEET_GPU_ENV sets, and no others.
 * @param confined true to leave out AWS credentials, because the child has its own session
 * @param gpu UUID of the only GPU that CUDA shows the child; null: the GPUs of this process
 */
export function childEnv(confined: boolean, gpu: string | null): NodeJS.ProcessEnv {
  const isAllowed = (name: string) =>
    !AGENT_ONLY.includes(name) &&
    !isGpuVariable(name) &&
    !(confined && name.startsWith('AWS_') && !AWS_ENDPOINTS.test(name));
  const entries = Object.entries(process.env).filter(([name]) => isAllowed(name));
  return {
    ...Object.fromEntries(entries),
    ...(confined && NO_CREDENTIALS),
    ...CUDA_ORDER,
    ...gpuEnv(process.env.ZEROFLEET_GPU_ENV || 'none'),
    ...(gpu !== null && { CUDA_VISIBLE_DEVICES: gpu }),
  };
}
