/** Secrets that only the agent needs; a child that is taken over must not have them. */
const AGENT_ONLY = ['ZEROFLEET_API_KEY', 'ZEROFLEET_REDIS_URL'];

/** Of the SDK's variables those that say where a server is and how it is spoken to. All others may lead to credentials. */
const AWS_PLACES =
  /^AWS_(REGION|DEFAULT_REGION|CA_BUNDLE|DEFAULTS_MODE|MAX_ATTEMPTS|RETRY_MODE|USE_\w+|ENDPOINT_URL(_S3)?|S3_\w+)$/;

/** In their place: no way is left on which the SDK would find credentials by itself. */
const NO_CREDENTIALS = {
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_CONFIG_FILE: '/dev/null',
};

/** So that CUDA and the driver number GPUs alike. */
const CUDA_ORDER = { CUDA_DEVICE_ORDER: 'PCI_BUS_ID' };

/**
 * The environment of a child process: this one's without what is none of its business.
 * @param confined without credentials of AWS, because the child gets its own
 * @param gpu UUID of the only GPU that CUDA shows the child; null: what it shows this process
 */
export function childEnv(confined: boolean, gpu: string | null): NodeJS.ProcessEnv {
  const isMeant = (name: string) =>
    !AGENT_ONLY.includes(name) && !(confined && name.startsWith('AWS_') && !AWS_PLACES.test(name));
  const entries = Object.entries(process.env).filter(([name]) => isMeant(name));
  return {
    ...Object.fromEntries(entries),
    ...(confined && NO_CREDENTIALS),
    ...CUDA_ORDER,
    ...(gpu !== null && { CUDA_VISIBLE_DEVICES: gpu }),
  };
}
