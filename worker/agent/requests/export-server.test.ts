/** Tests of checkpoint exports that an agent takes from the queue. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type ConnectionOptions, Queue, QueueEvents } from 'bullmq';
import t from 'tap';
import {
  type Checkpoint,
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  REDIS_PREFIX,
} from '../../../contracts/index.js';
import { type ExportRecord, exportRecordKey } from '../../../formats/checkpoint/export-record.js';
import { checkpointExportPrefix } from '../../../formats/checkpoint/layout.js';
import { memorySource } from '../../../formats/testing/byte-source.js';
import { stepsOf } from '../../../formats/testing/event-file.js';
import { readTorchFile, scalarOf } from '../../../formats/torch-file/read.js';
import { TorchTensor, type TorchValue } from '../../../formats/torch-file/values.js';
import { redisOptions } from '../../../platform/redis/connect.js';
import { testPython } from '../../../platform/testing/python.js';
import { bytesOf, fakeParamTable, fakeState, valuesOf } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

const STATES = [
  ['fp32', 'master'],
  ['exp_avg', 'exp_avg'],
  ['exp_avg_sq', 'exp_avg_sq'],
] as const;
const TAG = 'global_step4_universal';
const itemOf = (value: TorchValue | undefined, key: string) =>
  value instanceof Map ? value.get(key) : undefined;

t.test('exports', async (t) => {
  const fleet = await Fleet.start();
  t.teardown(() => fleet.close());
  await fleet.agent();
  const bullmq = {
    connection: redisOptions(fleet.redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const queue = new Queue<ExportPayload, ExportReply>(exportQueueName('default'), bullmq);
  const events = new QueueEvents(exportQueueName('default'), bullmq);
  t.teardown(() => Promise.all([queue.close(), events.close()]));

  const requestExport = async (
    { id, job_id, prefix, step }: Checkpoint,
    format: ExportPayload['format'] = 'deepspeed_universal',
    dtype: ExportPayload['dtype'] = 'fp32',
    tensorboard = false,
  ) => {
    const kind = { format, dtype, weights: 'trained' as const, tensorboard };
    const folder = checkpointExportPrefix(job_id, step, { checkpoint: id, ...kind });
    const checkpoint = { id, prefix, step };
    const entry = await queue.add('export', { job_id, checkpoint, ...kind, prefix: folder });
    const reply = await entry.waitUntilFinished(events, 60_000);
    const record = async () =>
      JSON.parse(String(await fleet.objects.get(exportRecordKey(folder)))) as ExportRecord;
    return { reply, folder, record };
  };
  const trained = async (ranks: number): Promise<[Checkpoint, Checkpoint]> => {
    const id = await fleet.submit({ steps: 8, every_steps: 4, ranks });
    await fleet.untilState(id, 'succeeded');
    return (await fleet.store.listCheckpoints(id)).data as [Checkpoint, Checkpoint];
  };
  const [, first] = await trained(3);

  await t.test('the universal layout holds every state, bit for bit', async (t) => {
    const { reply, folder, record } = await requestExport(first);
    t.strictSame(reply, { error: null });
    const { files, state_digest, format } = await record();
    t.equal(state_digest, first.state_digest);
    t.equal(format, 'deepspeed_universal');
    const names = new Set(files.map(({ name }) => name));
    const open = async (name: string) => {
      t.ok(names.has(`${TAG}/${name}`), name);
      const bytes = await fleet.objects.get(`${folder}/${TAG}/${name}`);
      return { bytes, file: await readTorchFile(memorySource(bytes, name)) };
    };
    t.equal(String(await fleet.objects.get(`${folder}/latest_universal`)), TAG);
    t.ok(names.has('config.json'));
    const state = fakeState(1, 4);
    for (const { index, name, shape } of fakeParamTable()) {
      for (const [fileName, stateName] of STATES) {
        const { bytes, file } = await open(`zero/${name}/${fileName}.pt`);
        const tensor = itemOf(file.value, 'param');
        if (!(tensor instanceof TorchTensor)) throw new Error('no tensor');
        t.strictSame(tensor.shape, shape);
        const { byte_begin, byte_end } = file.location(tensor);
        t.ok(bytes.subarray(byte_begin, byte_end).equals(bytesOf(valuesOf(state, stateName, index))));
      }
      const { file } = await open(`zero/${name}/step.pt`);
      t.equal(scalarOf(file, file.value), 4);
    }
    const optimizer = await open('zero/optimizer_state.pt');
    const groups = itemOf(optimizer.file.value, 'param_groups');
    if (!Array.isArray(groups)) throw new Error('no groups');
    t.same(
      groups.map((group) => [itemOf(group, 'step'), itemOf(group, 'params')]),
      [
        [4, [0, 2]],
        [4, [1]],
      ],
      'norms have a group of their own, without weight decay',
    );
    const model = await open('mp_rank_00_model_states.pt');
    t.equal(itemOf(model.file.value, 'global_steps'), 4);
    const weights = itemOf(itemOf(model.file.value, 'module'), 'model.norm.weight');
    t.match(weights, { dtype: 'BF16', shape: [10] });
  });

  await t.test(
    'two exports of one checkpoint are identical, whatever the ranks that saved it and the worker that writes',
    async (t) => {
      const before = await (await requestExport(first)).record();
      const again = await requestExport(first);
      t.strictSame((await again.record()).files, before.files);
      const [, alone] = await trained(1);
      const other = await (await requestExport(alone)).record();
      const content = ({ files }: ExportRecord) =>
        files.map(({ name, sha256 }) => [name, name.includes('mp_rank') ? '' : sha256]);
      t.strictSame(
        content(other),
        content(before),
        'except for the number of ranks, which the model states contain',
      );
    },
  );

  await t.test('a Hugging Face folder at any step and in any dtype', async (t) => {
    const { reply, folder, record } = await requestExport(first, 'safetensors', 'fp32');
    t.strictSame(reply, { error: null });
    t.strictSame(
      (await record()).files.map(({ name }) => name),
      ['config.json', 'model.safetensors'],
    );
    t.match(JSON.parse(String(await fleet.objects.get(`${folder}/config.json`))), { torch_dtype: 'float32' });
    const file = await fleet.objects.get(`${folder}/model.safetensors`);
    const master = Buffer.concat(
      fakeParamTable().map(({ index }) => bytesOf(valuesOf(fakeState(1, 4), 'master', index))),
    );
    t.ok(file.subarray(-master.length).equals(master));
  });

  await t.test('an event file with the metrics up to the step', async (t) => {
    const { folder, record } = await requestExport(first, 'safetensors', 'fp32', true);
    const { tensorboard, files } = await record();
    t.equal(tensorboard, true);
    const [name = '', ...others] = files
      .map((file) => file.name)
      .filter((file) => file.startsWith('events.out.tfevents.'));
    t.same(others, []);
    t.same(stepsOf(await fleet.objects.get(`${folder}/${name}`)), [1, 2, 3, 4]);
  });

  await t.test('a failed export is reported and leaves no record', async (t) => {
    const [, second] = await trained(2);
    const keys = await fleet.keys(second.prefix);
    const shard = keys.find((key) => key.endsWith('.safetensors')) ?? '';
    const bytes = await fleet.objects.get(shard);
    bytes[bytes.length - 1]! ^= 1;
    await fleet.objects.put(shard, bytes);
    const damaged = await requestExport(second);
    t.match(damaged.reply, { error: { code: 'shard_corrupt' } });
    await t.rejects(damaged.record(), { code: 'object_not_found' });
    await fleet.objects.delete(keys);
    t.match((await requestExport(second)).reply, {
      error: { code: 'checkpoint_not_found', message: /was removed before it was exported/ },
    });
  });

  const python = testPython('torch');
  await t.test(
    'PyTorch reads the whole export',
    python.missing ? { skip: python.missing } : {},
    async (t) => {
      const { folder } = await requestExport(first);
      const root = join(fleet.objectsDir, folder);
      const { status, stdout, stderr } = spawnSync(python.program, ['-c', READ, root], { encoding: 'utf8' });
      t.equal(status, 0, stderr);
      const state = fakeState(1, 4);
      const expected = fakeParamTable().map(({ index, name, shape }) => [
        name,
        {
          shape,
          step: 4,
          sums: STATES.map(([, stateName]) =>
            valuesOf(state, stateName, index).reduce((sum, x) => sum + x, 0),
          ),
        },
      ]);
      t.same(JSON.parse(stdout), { params: Object.fromEntries(expected), groups: 2, global_steps: 4 });
    },
  );
});

/** Reads the folder as DeepSpeed does: every file of a parameter except step.pt is a dict with the whole tensor. */
const READ = `
import json, os, sys, torch
root = sys.argv[1]
load = lambda *names: torch.load(os.path.join(root, tag, *names), weights_only=True)
tag = open(os.path.join(root, 'latest_universal')).read()
params = {}
for name in os.listdir(os.path.join(root, tag, 'zero')):
    if name == 'optimizer_state.pt':
        continue
    files = sorted(os.listdir(os.path.join(root, tag, 'zero', name)))
    assert files == ['exp_avg.pt', 'exp_avg_sq.pt', 'fp32.pt', 'step.pt'], files
    states = [load('zero', name, state + '.pt')['param'] for state in ('fp32', 'exp_avg', 'exp_avg_sq')]
    sums = [sum(state.double().flatten().tolist()) for state in states]
    params[name] = {'shape': list(states[0].shape), 'step': load('zero', name, 'step.pt').item(), 'sums': sums}
states = load('mp_rank_00_model_states.pt')
assert set(states['module']) == set(params)
groups = load('zero', 'optimizer_state.pt')['param_groups']
print(json.dumps({'params': params, 'groups': len(groups), 'global_steps': states['global_steps']}))
`;
