import { resolve } from 'node:path';
import t from 'tap';
import { loadConfig, renderSettings, SETTINGS } from './config.js';

function problemsOf(env: Record<string, string>): string[] {
  try {
    loadConfig(env);
  } catch (error) {
    const { code, details } = error as { code: string; details: { problems: string[] } };
    t.equal(code, 'invalid_configuration');
    return details.problems;
  }
  return [];
}

t.test('everything has a default', async (t) => {
  t.same(loadConfig({}), {
    host: '127.0.0.1',
    port: 8080,
    trusted_proxies: 0,
    data_dir: resolve('.zerofleet'),
    redis_url: null,
    object_store: null,
    s3_endpoint: null,
    attempt_role: null,
    api_key: null,
    public_url: null,
    oidc_issuer: null,
    oidc_name: 'single sign-on',
    oidc_client_id: null,
    oidc_client_secret: null,
    oidc_client_secret_file: null,
    oidc_scopes: 'openid profile email',
    oidc_roles_claim: 'groups',
    oidc_roles: null,
    oidc_session_hours: 8,
    pool: 'default',
    address: null,
    device: 'auto',
    gpu_env: {},
    slots: null,
    answer_gpus: 0,
    threads_per_rank: null,
    metrics_port: null,
    price_per_rank_hour: 0,
    currency: null,
    preemption_source: null,
    save_seconds: 50,
    cache_bytes: 100_000_000_000,
    webhook_allow: [],
    mlflow_credentials: new Map(),
    wandb_credentials: new Map(),
    grader_credentials: new Map(),
    grader_python: 'python3',
    dataset_buckets: [],
    hub_endpoint: 'https://huggingface.co',
    drain_seconds: 0,
    machine_id: null,
    topology: [],
    autoscale_capacity: 'local',
    autoscale_pools: null,
    autoscale_interval_seconds: 5,
    slurm_installation: 'zerofleet',
    cloudwatch_namespace: null,
    log_level: 'info',
    cpu_isa: 'auto',
  });
  t.same(loadConfig({ ZEROFLEET_PORT: '', PATH: '/bin', AWS_REGION: 'x' }), loadConfig({}), 'empty is unset');
});

t.test('values are parsed', async (t) => {
  const env = {
    ZEROFLEET_HOST: '0.0.0.0',
    ZEROFLEET_PORT: '0',
    ZEROFLEET_DATA_DIR: '/data',
    ZEROFLEET_REDIS_URL: 'unix:///run/redis.sock',
    ZEROFLEET_OBJECT_STORE: 's3://bucket/prefix',
    ZEROFLEET_S3_ENDPOINT: 'http://127.0.0.1:9000',
    ZEROFLEET_ATTEMPT_ROLE: 'arn:aws:iam::123456789012:role/zf-attempt',
    ZEROFLEET_API_KEY: 'zf_0123456789abcdef',
    ZEROFLEET_PUBLIC_URL: 'https://train.example.com',
    ZEROFLEET_OIDC_ISSUER: 'https://login.example.com',
    ZEROFLEET_OIDC_NAME: 'Example Login',
    ZEROFLEET_OIDC_CLIENT_ID: 'zerofleet',
    ZEROFLEET_OIDC_CLIENT_SECRET: 'secret',
    ZEROFLEET_OIDC_CLIENT_SECRET_FILE: '/run/secrets/oidc',
    ZEROFLEET_OIDC_SCOPES: 'openid groups',
    ZEROFLEET_OIDC_ROLES_CLAIM: 'roles',
    ZEROFLEET_OIDC_ROLES: '{"ml": {"project": "default", "scopes": ["admin"]}}',
    ZEROFLEET_OIDC_SESSION_HOURS: '12',
    ZEROFLEET_POOL: 'gpu-8',
    ZEROFLEET_ADDRESS: '10.0.0.7',
    ZEROFLEET_DEVICE: 'cuda',
    ZEROFLEET_GPU_ENV: 'NVIDIA_TF32_OVERRIDE=0 NCCL_ALGO=Ring',
    ZEROFLEET_SLOTS: '8',
    ZEROFLEET_ANSWER_GPUS: '2',
    ZEROFLEET_THREADS_PER_RANK: '2',
    ZEROFLEET_METRICS_PORT: '9100',
    ZEROFLEET_PRICE_PER_RANK_HOUR: '0.25',
    ZEROFLEET_CURRENCY: 'EUR',
    ZEROFLEET_PREEMPTION_SOURCE: 'aws',
    ZEROFLEET_SAVE_SECONDS: '600',
    ZEROFLEET_CACHE_BYTES: '2000000000000',
    ZEROFLEET_WEBHOOK_ALLOW: '10.1.0.0/16, fd00::/8',
    ZEROFLEET_MLFLOW_CREDENTIALS: '{"main": {"url": "https://mlflow.example.com"}}',
    ZEROFLEET_WANDB_CREDENTIALS: '{"main": {"url": "https://api.wandb.ai", "token": "a-key"}}',
    ZEROFLEET_GRADER_CREDENTIALS: '{"main": {"url": "https://models.example.com/v1"}}',
    ZEROFLEET_GRADER_PYTHON: '/opt/python/bin/python3',
    ZEROFLEET_DATASET_BUCKETS: 'my-data, other/texts/deep/',
    ZEROFLEET_HUB_ENDPOINT: 'https://hub.example.com/mirror',
    ZEROFLEET_DRAIN_SECONDS: '15',
    ZEROFLEET_TRUSTED_PROXIES: '1',
    ZEROFLEET_MACHINE_ID: 'aws',
    ZEROFLEET_TOPOLOGY: '/zone-a//rack-7',
    ZEROFLEET_AUTOSCALE_CAPACITY: 'aws',
    ZEROFLEET_AUTOSCALE_POOLS: '[{"pool": "gpu", "types": [{"name": "g5", "slots": 1, "max": 8}]}]',
    ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS: '10',
    ZEROFLEET_SLURM_INSTALLATION: 'lab',
    ZEROFLEET_CLOUDWATCH_NAMESPACE: 'Zerofleet',
    ZEROFLEET_LOG_LEVEL: 'debug',
    ZEROFLEET_CPU_ISA: 'avx2',
  };
  t.equal(Object.keys(env).length, SETTINGS.length, 'every setting is in this test');
  t.match(loadConfig(env), {
    host: '0.0.0.0',
    port: 0,
    data_dir: '/data',
    redis_url: 'unix:///run/redis.sock',
    object_store: 's3://bucket/prefix',
    s3_endpoint: 'http://127.0.0.1:9000',
    attempt_role: 'arn:aws:iam::123456789012:role/zf-attempt',
    api_key: 'zf_0123456789abcdef',
    oidc_roles: [{ role: 'ml', project: 'default', scopes: ['admin'] }],
    oidc_session_hours: 12,
    pool: 'gpu-8',
    device: 'cuda',
    gpu_env: { NVIDIA_TF32_OVERRIDE: '0', NCCL_ALGO: 'Ring' },
    slots: 8,
    answer_gpus: 2,
    threads_per_rank: 2,
    metrics_port: 9100,
    price_per_rank_hour: 0.25,
    currency: 'EUR',
    preemption_source: 'http://169.254.169.254',
    save_seconds: 600,
    cache_bytes: 2_000_000_000_000,
    webhook_allow: ['10.1.0.0/16', 'fd00::/8'],
    dataset_buckets: [
      { bucket: 'my-data', prefix: '' },
      { bucket: 'other', prefix: 'texts/deep/' },
    ],
    hub_endpoint: 'https://hub.example.com/mirror',
    drain_seconds: 15,
    trusted_proxies: 1,
    machine_id: 'aws',
    topology: ['zone-a', 'rack-7'],
    autoscale_capacity: 'aws',
    autoscale_pools: [{ pool: 'gpu', idle_seconds: 120, types: [{ name: 'g5', price_per_hour: 0 }] }],
    autoscale_interval_seconds: 10,
    slurm_installation: 'lab',
    cloudwatch_namespace: 'Zerofleet',
    log_level: 'debug',
    cpu_isa: 'avx2',
  });
});

t.test('an unknown name is refused with the nearest known one', async (t) => {
  t.same(problemsOf({ ZEROFLEET_PROT: '1' }), [
    'ZEROFLEET_PROT is not a setting; the nearest is ZEROFLEET_PORT',
  ]);
  t.match(problemsOf({ ZEROFLEET_REDIS: 'x' }), [/the nearest is ZEROFLEET_REDIS_URL/]);
});

t.test('all bad values are reported at once, without secrets', async (t) => {
  const secret = 'redi://user:hunter2@host';
  const problems = problemsOf({
    ZEROFLEET_PORT: '65536',
    ZEROFLEET_SLOTS: '1.5',
    ZEROFLEET_THREADS_PER_RANK: '0',
    ZEROFLEET_REDIS_URL: secret,
    ZEROFLEET_OBJECT_STORE: 'relative/path',
    ZEROFLEET_S3_ENDPOINT: 'ftp://x',
    ZEROFLEET_API_KEY: 'short',
    ZEROFLEET_POOL: 'Not A Pool',
    ZEROFLEET_LOG_LEVEL: 'loud',
    ZEROFLEET_CPU_ISA: 'sse9',
    ZEROFLEET_HOST: '  ',
    ZEROFLEET_ATTEMPT_ROLE: 'zf-attempt',
  });
  t.equal(problems.length, 12);
  t.notMatch(problems.join(), 'hunter2');
  t.notMatch(problems.join(), 'short');
  t.match(problems.join('\n'), /ZEROFLEET_PORT: must be a whole number from 0 to 65535, not "65536"/);
  for (const port of ['-1', '1e3', '0x10', ' 80', 'NaN', '99999999999']) {
    t.equal(problemsOf({ ZEROFLEET_PORT: port }).length, 1, port);
  }
});

t.test('the documentation contains every setting', async (t) => {
  const text = renderSettings();
  for (const { key } of SETTINGS) t.match(text, `| \`ZEROFLEET_${key.toUpperCase()}\` |`);
  t.equal(text.split('\n').length, SETTINGS.length + 2);
});
