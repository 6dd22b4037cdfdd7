/**
 * Tensors of checkpoints are read and changed; training continues with the changed ones, bit for bit on any number of
 * ranks.
 */
import { join } from 'node:path';
import t from 'tap';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Checkpoint, Job, TensorState } from '../../contracts/index.js';
import { safetensorsHeader } from '../../formats/safetensors/header.js';
import { parseSafetensorsHeader } from '../../formats/safetensors/read-header.js';
import { digestOf, readCheckpoint } from '../docs/reference-readers.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';
import { StoredState } from '../support/stored-state.js';

const HEAD = 'lm_head.weight';
const VOCABULARY = 256;
const STEPS = 40;

let stack: TestStack;
let client: Zerofleet;
/** Paused on two ranks. */
let paused: Job;

const ended = () => false;

async function read(checkpoint: string, name: string, state: TensorState): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await client.checkpoints.openTensor(checkpoint, name, { state }))
    pieces.push(piece);
  return Buffer.concat(pieces);
}

async function set(from: string, name: string, file: Buffer, state: TensorState): Promise<Checkpoint> {
  let edit = await client.checkpoints.setTensor(from, name, new Uint8Array(file), { state });
  while (edit.checkpoint_id === null && edit.error === null) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    edit = await client.checkpoints.edit(from, edit.id);
  }
  if (edit.checkpoint_id === null) throw new Error(JSON.stringify(edit.error));
  return client.checkpoints.get(edit.checkpoint_id);
}

const digestOfFiles = ({ prefix }: Checkpoint) =>
  digestOf(readCheckpoint(join(stack.data_dir, 'objects', prefix)));

t.before(async () => {
  stack = await startStack(t);
  client = stack.client;
  const { id: dataset } = await client.datasets.create('openapi', sampleText());
  const spec = largerSteps(
    smallJob({ name: 'tensors', dataset, steps: STEPS, ranks: 2, keep: { last: 20 } }),
  );
  // On a busy machine the job may end before the request to pause arrives.
  do {
    const { id } = await client.jobs.create(spec);
    await client.jobs.until(id, ({ progress }) => progress.step >= 2, { interval_ms: 20 });
    await client.jobs.pause(id).catch(() => undefined);
    paused = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 20 });
  } while (paused.state !== 'paused');
});

t.test('a tensor is that of the shards; written back it gives the same digest', async (t) => {
  const { id } = paused.latest_checkpoint ?? { id: '' };
  const old = await client.checkpoints.get(id);
  const state = new StoredState(stack.data_dir, old);
  const tensors = await collect(client.checkpoints.tensors(id));
  t.strictSame(
    tensors.map(({ name, shape }) => ({ name, shape })),
    state.manifest.params.map(({ name, shape }) => ({ name, shape })),
  );
  for (const [name, expected] of [
    [HEAD, 'master'],
    ['model.layers.1.mlp.up_proj.weight', 'exp_avg'],
    ['model.norm.weight', 'exp_avg_sq'],
  ] as const) {
    const file = await read(id, name, expected);
    const { bytes } = parseSafetensorsHeader(file);
    t.ok(file.subarray(bytes).equals(Buffer.from(state.read(expected, name).buffer)), `${name} ${expected}`);
  }
  const same = await set(id, HEAD, await read(id, HEAD, 'exp_avg'), 'exp_avg');
  t.equal(same.state_digest, old.state_digest);
  t.match(same, { step: old.step, job_id: old.job_id, made_from: { checkpoint_id: id, tensor: HEAD } });
  t.match(await client.checkpoints.verify(same.id), { valid: true });
});

t.test(
  'a head of zeros gives the loss of a uniform guess, and the same bits on 1, 2 and 3 ranks',
  async (t) => {
    const { latest_checkpoint } = await client.jobs.get(paused.id);
    const { id } = latest_checkpoint ?? { id: '' };
    const shape = [VOCABULARY, 96];
    const numel = VOCABULARY * 96;
    const header = safetensorsHeader([{ name: HEAD, dtype: 'F32', shape, begin: 0, end: 4 * numel }], {});
    const zeros = Buffer.concat([header, Buffer.alloc(4 * numel)]);
    const changed = await set(id, HEAD, zeros, 'master');
    t.equal(changed.state_digest, await digestOfFiles(changed), 'the digest is that of the files');
    t.ok(new StoredState(stack.data_dir, changed).read('master', HEAD).every((value) => value === 0));

    const results: (string | undefined)[] = [];
    for (const ranks of [1, 2, 3]) {
      const resources = { ranks: { preferred: ranks } };
      const { id: fork } = await client.jobs.fork(paused.id, {
        from_checkpoint: changed.id,
        overrides: { resources },
      });
      const job = await client.jobs.until(fork, ended);
      t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
      results.push(job.export?.state_digest);
      const [first] = await collect(client.jobs.metrics(fork));
      t.match(first, { step: changed.step + 1 });
      t.ok(Math.abs((first?.loss ?? 0) - Math.log(VOCABULARY)) < 1e-5, `${first?.loss} is ln 256`);
    }
    await client.jobs.resume(paused.id, { ranks: 3 });
    const resumed = await client.jobs.until(paused.id, ended);
    t.equal(resumed.state, 'succeeded', JSON.stringify(resumed.failure));
    results.push(resumed.export?.state_digest);
    t.equal(new Set(results).size, 1, 'forks and the paused job itself');
  },
);
