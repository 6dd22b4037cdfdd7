// For infra/images/prove.sh: starts the programs of the images with their commands and health checks, and runs a job.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const API = 'http://127.0.0.1:8080';
const KEY = 'zf_smoke_0123456789abcdef0123456789abcdef';
const DEADLINE_MS = 300_000;

const programs = {
  api: {
    command: ['dist/ops/stack/main.js', '--api-only'],
    env: { ZEROFLEET_PORT: '8080' },
    health: ['8080', '/healthz'],
  },
  worker: {
    command: ['dist/worker/agent/main.js'],
    env: { ZEROFLEET_METRICS_PORT: '9090' },
    health: ['9090', '/metrics'],
  },
  autoscaler: {
    command: ['dist/autoscaler/main.js'],
    env: { ZEROFLEET_METRICS_PORT: '9091', ZEROFLEET_POOL: 'another' },
    health: ['9091', '/healthz'],
  },
};

const shared = {
  PATH: process.env.PATH,
  NODE_ENV: 'production',
  ZEROFLEET_REDIS_URL: 'unix:///tmp/redis.sock',
  ZEROFLEET_DATA_DIR: '/var/lib/zerofleet',
  ZEROFLEET_API_KEY: KEY,
  ZEROFLEET_LOG_LEVEL: 'warn',
};

async function until(condition, attempt) {
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const answer = await attempt();
    if (answer) return answer;
    if (Date.now() > deadline) throw new Error(`not in time: ${condition}`);
    await sleep(500);
  }
}

async function call(path, init = {}) {
  const response = await fetch(`${API}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${KEY}`, ...init.headers },
  });
  const body = await response.json();
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(body)}`);
  return body;
}

function refuseToWrite(path) {
  try {
    writeFileSync(path, '');
  } catch (error) {
    console.log(`writing ${path}: ${error.code}`);
    return;
  }
  throw new Error(`${path} could be written`);
}

async function trainAJob() {
  const data = readFileSync('/opt/zerofleet/openapi.yaml');
  const dataset = await call('/v1/datasets?name=smoke', {
    method: 'POST',
    body: data,
    headers: { 'content-type': 'text/plain' },
  });
  const document = {
    model: { preset: 'llama-tiny' },
    data: { dataset: dataset.id },
    train: { steps: 10 },
    resources: { ranks: { preferred: 2 } },
  };
  const { id } = await call('/v1/jobs', {
    method: 'POST',
    body: JSON.stringify(document),
    headers: { 'content-type': 'application/json' },
  });
  const ended = await until('the job ends', async () => {
    const job = await call(`/v1/jobs/${id}`);
    return ['succeeded', 'failed', 'cancelled'].includes(job.state) ? job : null;
  });
  console.log(`job: ${ended.state}`);
  if (ended.state !== 'succeeded') throw new Error(JSON.stringify(ended.failure));
}

console.log(
  `user ${process.getuid?.()}, ${readFileSync('/proc/self/status', 'utf8').match(/CapEff.*/)?.[0]}`,
);
refuseToWrite('/opt/zerofleet/package.json');
refuseToWrite('/root-file-system');
const children = Object.entries(programs).map(([name, { command, env }]) => {
  const child = spawn(process.execPath, command, {
    cwd: '/opt/zerofleet',
    env: { ...shared, ...env },
    stdio: 'inherit',
  });
  return { name, child, ended: new Promise((resolve) => child.once('exit', resolve)) };
});
try {
  for (const [name, { health }] of Object.entries(programs)) {
    await until(
      `${name} is healthy`,
      () => spawnSync(process.execPath, ['/opt/health.mjs', ...health]).status === 0,
    );
    console.log(`${name}: healthy`);
  }
  await trainAJob();
} finally {
  for (const { child } of children) child.kill('SIGTERM');
  for (const { name, ended } of children) console.log(`${name}: ended with ${await ended}`);
}
