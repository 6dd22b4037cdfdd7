import t from 'tap';
import { childEnv } from './child-env.js';

const ORDER = { CUDA_DEVICE_ORDER: 'PCI_BUS_ID' };

t.test('the environment of child processes', async (t) => {
  const before = { ...process.env };
  t.teardown(() => {
    process.env = before;
  });
  process.env = {
    PATH: '/bin',
    ZEROFLEET_CPU_ISA: 'generic',
    ZEROFLEET_REDIS_URL: 'redis://:password@host',
    ZEROFLEET_API_KEY: 'key',
    AWS_REGION: 'eu-central-1',
    AWS_CA_BUNDLE: '/etc/ca.pem',
    AWS_ENDPOINT_URL_S3: 'http://localhost',
    AWS_ACCESS_KEY_ID: 'id',
    AWS_SECRET_ACCESS_KEY: 'secret',
    AWS_SESSION_TOKEN: 'token',
    AWS_PROFILE: 'production',
    AWS_CONFIG_FILE: '/root/.aws/config',
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/task',
    AWS_CONTAINER_AUTHORIZATION_TOKEN: 'token',
    AWS_WEB_IDENTITY_TOKEN_FILE: '/token',
    AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/agent',
  };
  const ours = ({ ZEROFLEET_REDIS_URL: _url, ZEROFLEET_API_KEY: _key, ...rest }: NodeJS.ProcessEnv) => rest;

  await t.test("is the agent's environment without its secrets", async (t) => {
    t.strictSame(childEnv(false, null), { ...ours(process.env), ...ORDER });
  });
  await t.test('shows a rank only its own GPU, whatever the agent sees', async (t) => {
    process.env.CUDA_VISIBLE_DEVICES = '0,1';
    t.equal(childEnv(false, 'GPU-1').CUDA_VISIBLE_DEVICES, 'GPU-1');
    t.equal(childEnv(false, null).CUDA_VISIBLE_DEVICES, '0,1');
    delete process.env.CUDA_VISIBLE_DEVICES;
  });
  await t.test('contains variables of GPU numerics only by configuration', async (t) => {
    process.env.NVIDIA_TF32_OVERRIDE = '1';
    process.env.CUBLAS_WORKSPACE_CONFIG = ':16:8';
    process.env.NCCL_DEBUG = 'INFO';
    const { NVIDIA_TF32_OVERRIDE: _tf32, CUBLAS_WORKSPACE_CONFIG: _workspace, ...rest } = ours(process.env);
    t.strictSame(childEnv(false, null), { ...rest, ...ORDER });
    process.env.ZEROFLEET_GPU_ENV = 'NVIDIA_TF32_OVERRIDE=0';
    const { NVIDIA_TF32_OVERRIDE, CUBLAS_WORKSPACE_CONFIG } = childEnv(false, 'GPU-1');
    t.strictSame([NVIDIA_TF32_OVERRIDE, CUBLAS_WORKSPACE_CONFIG], ['0', undefined]);
    for (const name of ['NVIDIA_TF32_OVERRIDE', 'CUBLAS_WORKSPACE_CONFIG', 'NCCL_DEBUG', 'ZEROFLEET_GPU_ENV'])
      delete process.env[name];
  });
  await t.test('contains the variables of networks, of NCCL and of libfabric', async (t) => {
    const network = {
      FI_PROVIDER: 'efa',
      FI_EFA_USE_DEVICE_RDMA: '1',
      NCCL_SOCKET_IFNAME: 'eth0',
      NCCL_NET: 'Socket',
    };
    Object.assign(process.env, network);
    t.match(childEnv(true, 'GPU-1'), network);
    for (const name of Object.keys(network)) delete process.env[name];
  });
  await t.test('contains no source of AWS credentials for a child with its own session', async (t) => {
    t.strictSame(childEnv(true, null), {
      ...ORDER,
      PATH: '/bin',
      ZEROFLEET_CPU_ISA: 'generic',
      AWS_REGION: 'eu-central-1',
      AWS_CA_BUNDLE: '/etc/ca.pem',
      AWS_ENDPOINT_URL_S3: 'http://localhost',
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_CONFIG_FILE: '/dev/null',
    });
  });
});
