/**
 * AWS credentials of an agent's child processes when ZEROFLEET_ATTEMPT_ROLE is set, with in-process stand-ins for S3
 * and STS.
 */
import { readFile } from 'node:fs/promises';
import t, { type Test } from 'tap';
import { storeModel, testModel } from '../../formats/testing/models.js';
import { S3StandIn, type StandInRequest } from '../../platform/testing/s3-stand-in.js';
import { StsStandIn } from '../../platform/testing/sts-stand-in.js';
import { until } from '../../platform/testing/waiting.js';
import { fakeModelFolder } from '../testing/fake-model.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../testing/fleet.js';
import { SampleClient } from '../testing/samples.js';

const MODEL = 'mdl_01J00000000000000000000000';
const AGENT_KEY = 'AGENTSOWNKEY';
const ROLE = 'arn:aws:iam::123456789012:role/zf-attempt';
const SECRETS = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_PROFILE',
];

/** Request to the object store, and the refusal if it was refused. */
type Seen = StandInRequest & { refusal: string | null };

async function start(t: Test, ranks: FleetOptions['ranks'] = {}) {
  const before = { ...process.env };
  for (const name of SECRETS) process.env[name] = name;
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: AGENT_KEY, AWS_REGION: 'eu-central-1' });
  delete process.env.AWS_PROFILE;
  const sts = new StsStandIn('fleet');
  const s3 = new S3StandIn();
  const seen: Seen[] = [];
  s3.refuse = (request) => {
    const refusal = sts.judge(request);
    seen.push({ ...request, refusal });
    return refusal;
  };
  const server = await s3.open();
  process.env.AWS_ENDPOINT_URL_STS = await sts.listen();
  const fleet = await Fleet.start({
    ranks,
    bucket: { url: 's3://fleet/a', endpoint: server.endpoint },
  });
  t.teardown(async () => {
    await fleet.close();
    server.close();
    await sts.close();
    process.env = before;
  });
  const agent = (slots = 4, timing = {}) =>
    fleet.agent(slots, timing, { ZEROFLEET_ATTEMPT_ROLE: ROLE, ZEROFLEET_S3_ENDPOINT: server.endpoint });
  return { fleet, sts, seen, agent };
}

const isShard = ({ action, key }: Seen) => action === 's3:PutObject' && /\/shard-/.test(key);
const keysOf = (requests: Seen[]) => [...new Set(requests.map(({ access_key_id }) => access_key_id))];
const isSession = (key: string) => key.startsWith('ASIA');

t.test('ranks save with credentials of their job, which rotate between saves', async (t) => {
  const { fleet, sts, seen, agent } = await start(t, { step_ms: 25 });
  sts.lifeMs = 1_500;
  await agent();
  const id = await fleet.submit({ steps: 200, every_steps: 10, ranks: 2 });
  await until(async () => (await fleet.rankProcesses()).length === 2);
  for (const pid of await fleet.rankProcesses()) {
    const environment = (await readFile(`/proc/${pid}/environ`, 'latin1')).split('\0');
    const names = environment.map((line) => line.split('=')[0]);
    t.same(
      names.filter((name) => SECRETS.includes(`${name}`)),
      [],
      "a rank has none of the agent's credentials",
    );
    t.ok(environment.includes('AWS_EC2_METADATA_DISABLED=true'));
    t.ok(environment.includes('AWS_REGION=eu-central-1'));
  }
  const job = await fleet.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 200));
  await hasOnlyCredentialErrors(t, fleet, id);

  const keys = keysOf(seen.filter(isShard));
  t.ok(keys.length >= 3, `${keys.length} sessions saved shards`);
  t.ok(keys.every(isSession), 'only sessions saved shards');
  // Sessions last 1.5 s here: on a busy machine a renewal may be late, and the request is retried.
  t.same(
    seen.filter(({ refusal }) => refusal !== null && refusal !== 'ExpiredToken'),
    [],
    'no session was refused for its policy',
  );
  t.ok(
    seen.some(({ access_key_id, key }) => access_key_id === AGENT_KEY && key.endsWith('MANIFEST.json')),
    'the agent commits the manifest',
  );
  for (const folder of [`a/datasets/${fleet.datasetId}/text`, `a/jobs/${id}/exports/`])
    t.ok(
      keysOf(seen.filter(({ key }) => key.startsWith(folder))).some(isSession),
      `the other processes of the job have a session, too: ${folder}`,
    );
  for (const { name, tags } of sts.sessions.values()) {
    t.match(name, new RegExp(`^${id}-1-[0-9a-f]+$`));
    t.ok(name.length <= 64, 'STS limits names to 64 characters');
    t.strictSame(tags, { 'zerofleet:job': id, 'zerofleet:from': id });
  }
  const logs = await fleet.store.readStream(id, null, 1000, ['log']);
  t.notMatch(JSON.stringify(logs), /secret-of-|token-of-/);
});

t.test('each dataset to evaluate on is read in a session that reaches no other', async (t) => {
  const { fleet, sts, seen, agent } = await start(t);
  await agent();
  const texts = ['a text to evaluate on', 'another one'];
  const ids = await Promise.all(texts.map((text) => fleet.addDataset(Buffer.from(text.repeat(20)))));
  const datasets = ids.map((dataset, i) => ({ name: `e-${i}`, dataset }));
  const id = await fleet.submit({ steps: 4, train: { evaluation: { every_steps: 2, datasets } } });
  await fleet.untilState(id, 'succeeded');
  await hasOnlyCredentialErrors(t, fleet, id);
  const readers = [fleet.datasetId, ...ids].map((dataset) =>
    keysOf(seen.filter(({ key, action }) => action === 's3:GetObject' && key.includes(dataset))).filter(
      isSession,
    ),
  );
  const purposes = readers.map((keys) => keys.map((key) => sts.sessions.get(key)?.name.slice(id.length + 1)));
  t.match(purposes, [[/^1-[0-9a-f]+$/], ['evaluation-0'], ['evaluation-1']]);
  t.ok(purposes.every(({ length }) => length === 1));
});

t.test('each dataset of a mixture is read in a session that reaches no other', async (t) => {
  const { fleet, sts, seen, agent } = await start(t);
  await agent();
  const ids = [fleet.datasetId, await fleet.addDataset(Buffer.from('another text '.repeat(20)))];
  const mixture = ids.map((dataset) => ({ dataset }));
  const id = await fleet.submit({ steps: 4, data: { mixture } });
  await fleet.untilState(id, 'succeeded');
  await hasOnlyCredentialErrors(t, fleet, id);
  const readers = ids.map((dataset) =>
    keysOf(seen.filter(({ key, action }) => action === 's3:GetObject' && key.includes(dataset))).filter(
      isSession,
    ),
  );
  const purposes = readers.map((keys) => keys.map((key) => sts.sessions.get(key)?.name.slice(id.length + 1)));
  t.same(purposes, [['data-0'], ['data-1']]);
});

t.test('each machine of a job has a session of its own', async (t) => {
  const { fleet, sts, seen, agent } = await start(t, { step_ms: 20 });
  await agent(2);
  await agent(2);
  const id = await fleet.submit({ steps: 20, every_steps: 10, ranks: 4 });
  t.equal((await fleet.untilState(id, 'succeeded')).export?.state_digest, fakeStateDigest(1, 20));
  const names = [...sts.sessions.values()].map(({ name }) => name);
  const [leader = '', ...others] = names.sort();
  t.match(leader, new RegExp(`^${id}-1-[0-9a-f]+$`));
  t.strictSame(others, [`${leader}-member`]);
  const savers = keysOf(seen.filter(isShard));
  t.equal(savers.length, 2);
  t.ok(savers.every(isSession));
});

t.test('an STS outage that outlasts the credentials costs saves, not the job', async (t) => {
  const { fleet, sts, seen, agent } = await start(t, { slow: { from: 6, ms: 100 } });
  sts.lifeMs = 1_000;
  await agent();
  const id = await fleet.submit({ steps: 400, every_steps: 10, ranks: 2 });
  await fleet.until(id, (job) => job.latest_checkpoint !== null);
  sts.mood = 'away';
  await until(async () => (await typesOf(fleet, id)).includes('checkpoint.failed'));
  t.ok(seen.some((request) => isShard(request) && request.refusal === 'ExpiredToken'));
  t.ok((await typesOf(fleet, id)).includes('credentials.failed'));
  t.equal((await fleet.store.getJob(id))?.state, 'running', 'training goes on');
  // On a starved machine a save takes longer than credentials of a second live.
  sts.lifeMs = 60_000;
  sts.mood = 'well';
  await fleet.speedUp();
  const job = await fleet.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 400));
  await hasOnlyCredentialErrors(t, fleet, id);
});

t.test('a job without available credentials waits, with no error counted against it', async (t) => {
  const { fleet, sts, seen, agent } = await start(t);
  sts.mood = 'refusing';
  await agent(4, { restart: { attempts: Number.MAX_SAFE_INTEGER, first_delay_ms: 20, max_delay_ms: 300 } });
  const id = await fleet.submit({ steps: 10, every_steps: 5, max_errors: 0 });
  await until(async () => (await typesOf(fleet, id)).filter((type) => type === 'attempt.error').length >= 2);
  const [error] = (await fleet.events(id)).filter(({ type }) => type === 'attempt.error');
  t.match(error?.data, { code: 'credentials_unavailable', message: /trust policy/ });
  t.same(
    keysOf(seen).filter((key) => key !== AGENT_KEY),
    [],
    'no other credentials were used',
  );
  sts.mood = 'well';
  await fleet.untilState(id, 'succeeded');
  await hasOnlyCredentialErrors(t, fleet, id);
});

t.test('the process of an uploaded model reads it in a session of the model', async (t) => {
  const { fleet, sts, seen, agent } = await start(t);
  await agent();
  await fleet.store.putModel(testModel(MODEL));
  await storeModel(fleet.objects, MODEL, fakeModelFolder());
  seen.length = 0;
  const samples = new SampleClient(fleet);
  t.match(await samples.ask({ model_id: MODEL }), { ok: true });
  const readers = keysOf(seen.filter(({ key }) => key.startsWith(`a/models/${MODEL}/`)));
  t.ok(readers.length > 0 && readers.every(isSession), 'without the credentials of the agent');
  const session = [...sts.sessions.values()].find(({ tags }) => tags['zerofleet:job'] === MODEL);
  t.match(session, { name: `${MODEL}-sample`, tags: { 'zerofleet:from': MODEL } });
  t.ok(session?.statements.every(({ Action }) => !Action.includes('s3:PutObject')));
});

/** Checks that the job has no errors except those of credentials. */
async function hasOnlyCredentialErrors(t: Test, fleet: Fleet, id: string): Promise<void> {
  const errors = (await fleet.events(id)).filter(
    ({ type, data }) =>
      ['rank.lost', 'node.lost', 'attempt.retry'].includes(type) ||
      (type === 'attempt.error' && data.code !== 'credentials_unavailable'),
  );
  t.same(errors, []);
}

async function typesOf(fleet: Fleet, id: string): Promise<string[]> {
  return (await fleet.events(id)).map(({ type }) => type);
}
