import t from 'tap';
import { childEnv, needsCredentials } from './child-env.js';

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
    ZEROFLEET_OIDC_CLIENT_SECRET: 'secret',
    ZEROFLEET_MLFLOW_CREDENTIALS: '{"main": {"url": "https://mlflow.example.com", "token": "secret"}}',
    ZEROFLEET_WANDB_CREDENTIALS: '{}',
    DATABASE_URL: 'postgres://user:password@host',
    HF_TOKEN: 'hf_secret',
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
  const passed = { PATH: '/bin', ZEROFLEET_CPU_ISA: 'generic' };
  const aws = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('AWS_')));

  await t.test('has what a child needs of that of the agent, and AWS credentials on demand', async (t) => {
    t.strictSame(childEnv(true, null), { ...passed, ...aws, ...ORDER });
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
    t.strictSame(childEnv(true, null), { ...passed, ...aws, ...ORDER, NCCL_DEBUG: 'INFO' });
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
    t.match(childEnv(false, 'GPU-1'), network);
    for (const name of Object.keys(network)) delete process.env[name];
  });
  await t.test(
    'contains no source of AWS credentials for a child that needs none of the agent',
    async (t) => {
      t.strictSame(childEnv(false, null), {
        ...ORDER,
        ...passed,
        AWS_REGION: 'eu-central-1',
        AWS_CA_BUNDLE: '/etc/ca.pem',
        AWS_ENDPOINT_URL_S3: 'http://localhost',
        AWS_EC2_METADATA_DISABLED: 'true',
        AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
        AWS_CONFIG_FILE: '/dev/null',
      });
    },
  );
});

t.test('only a child that reads S3 without a session needs the credentials of the agent', async (t) => {
  t.ok(needsCredentials({ url: 's3://bucket/prefix' }, null));
  t.notOk(needsCredentials({ url: 's3://bucket/prefix' }, {}));
  t.notOk(needsCredentials({ url: 'file:///data' }, null));
  t.notOk(needsCredentials(null, null), 'the look at the machine');
});
