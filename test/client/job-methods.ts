import type { Test } from 'tap';
import { smallSpec, type TestStack } from '../../api/testing/stack.js';
import { checkpointOf, claimAndTrain } from '../../api/testing/training.js';
import { ApiError, collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Checkpoint } from '../../contracts/index.js';
import { putTestCheckpoint } from '../../formats/testing/checkpoints.js';

const TEXT = 'to be or not to be, that is the question. '.repeat(40);

export async function jobMethods(t: Test, { store }: TestStack, client: Zerofleet) {
  const { id: dataset } = await client.datasets.create('d', TEXT);
  const spec = { ...smallSpec(dataset), labels: { team: 'a' }, model: { preset: 'llama-tiny' as const } };
  t.match(await client.estimate(spec, [1, 2]), { device: 'cpu', data: [{}, {}] });
  t.match(await client.estimate(spec, undefined, 'cuda'), { device: 'cuda' });
  t.match(await client.previewData(spec, 1), { read: { texts: 1 }, texts: [{}] });
  const exact = {
    type: 'string_check' as const,
    name: 'exact',
    input: '{{sample.output_text}}',
    reference: '{{item.a}}',
    operation: 'eq' as const,
  };
  t.match(await client.grade(exact, '4', { a: '4' }), { reward: 1 });
  await client.checkGrader(exact);
  await t.rejects(client.checkGrader({ ...exact, input: '{{a}}' }), { code: 'validation_failed' });
  const [one, same] = await Promise.all(
    [1, 2].map(() => client.jobs.create(spec, { idempotencyKey: 'key-1' })),
  );
  t.ok(one && same);
  if (!one || !same) return;
  t.equal(one.id, same.id);
  t.strictSame(await client.jobs.get(one.id), one);
  const ids = [];
  for (let made = 0; made < 3; made += 1) ids.push((await client.jobs.create(spec)).id);
  const listed = [];
  for await (const { id } of client.jobs.list({ state: ['queued'], label: ['team=a'] })) listed.push(id);
  t.strictSame(listed.sort(), [one.id, ...ids].sort());

  const execution = await claimAndTrain(store, one.id, { steps: 3 });
  await client.jobs.checkpoint(one.id);
  await client.jobs.resize(one.id, 3);
  const steps = [];
  for await (const { step } of client.jobs.metrics(one.id)) steps.push(step);
  t.strictSame(steps, [1, 2, 3]);
  const file = await client.jobs.metricsFile(one.id, { format: 'jsonl' });
  t.equal(file.name, `${one.id}.jsonl`);
  t.strictSame(
    Buffer.concat(await collect(file.content)).toString(),
    (await collect(client.jobs.metrics(one.id))).map((metric) => `${JSON.stringify(metric)}\n`).join(''),
  );
  const types = [];
  for await (const { type } of client.jobs.events(one.id)) types.push(type);
  t.ok(types.includes('checkpoint.committed'));
  const line = { at: new Date().toISOString(), stream: 'stdout', truncated: false, dropped: 0 } as const;
  await store.appendLogs(one.id, execution, [
    { ...line, rank: 0, message: 'a' },
    { ...line, rank: 1, message: 'b' },
  ]);
  const lines = [];
  for await (const { message } of client.jobs.logs(one.id, { rank: 1 })) lines.push(message);
  t.strictSame(lines, ['b']);
  const followedLines = client.jobs.followLogs(one.id, { rank: 1 });
  t.match(await followedLines.next(), { value: { kind: 'log', message: 'b' } });
  const follow = client.jobs.follow(one.id);
  t.match(await follow.next(), { value: { seq: 1 } });
  const waited = client.jobs.wait(one.id);
  await store.finishJob(one.id, execution, 'succeeded', { reason: 'completed' });
  t.match(await followedLines.next(), { done: true, value: 'succeeded' });
  t.equal((await waited).state, 'succeeded');
  await follow.return('succeeded');

  const [first = '', second = '', third = ''] = ids;
  t.equal((await client.jobs.cancel(first)).state, 'cancelled');
  t.equal((await client.jobs.pause(second)).state, 'paused');
  t.equal((await client.jobs.resume(second, { ranks: 1 })).requested_ranks, 1);
  await t.rejects(client.jobs.fork(third), { code: 'checkpoint_not_found' });

  t.match(await client.jobs.dryRun(spec), { spec: { name: '' }, estimate: { num_params: Number } });
  t.equal((await client.jobs.changed(third, 0, 1)).id, third);
  t.equal((await client.jobs.curve(one.id, 16)).length, 3);
  const changed = await client.jobs.update(third, { priority: 3, labels: { team: null, kind: 'b' } });
  t.match(changed, { labels: { kind: 'b' }, spec: { priority: 3 } });
  await t.rejects(client.jobs.update(third, { priority: 4 }, { ifMatch: '"1"' }), {
    code: 'version_mismatch',
  });
  const claim = await store.claimAttempt(third, 1, 'worker-a', 600_000);
  if (!claim.granted) throw new Error(claim.code);
  await store.finishJob(third, claim.execution, 'failed', { reason: 'rank_lost' });
  t.match(await client.jobs.retry(third), { state: 'queued', attempt: 2 });
  const outcomes = [];
  t.match(await client.jobs.document(third), { data: { dataset: String } });
  for await (const { epoch: number, outcome } of client.jobs.attempts(third))
    outcomes.push([number, outcome]);
  t.strictSame(outcomes, [[1, 'failed']]);
  await client.jobs.delete(first, { artifacts: true });
  await t.rejects(client.jobs.get(first), { code: 'job_not_found', status: 404 });
}

export async function checkpointMethods(t: Test, stack: TestStack, client: Zerofleet) {
  const { store, objects } = stack;
  const job = await stack.createJob();
  const execution = await claimAndTrain(store, job.id, { steps: 1 });
  await store.commitCheckpoint(job.id, execution, checkpointOf(job.id, 2));
  const found: Checkpoint[] = [];
  for await (const checkpoint of client.jobs.checkpoints(job.id)) found.push(checkpoint);
  t.strictSame(
    found.map(({ step }) => step),
    [2, 1],
  );
  const ofAll = await collect(client.checkpoints.list());
  const byId = (list: typeof found) => [...list].sort((one, two) => (one.id < two.id ? -1 : 1));
  t.strictSame(byId(ofAll.filter(({ job_id }) => job_id === job.id)), byId(found));
  const [, first] = found;
  if (!first) return;
  await putTestCheckpoint(objects, first.prefix, { numels: [10], ranks: 2 });
  t.strictSame(await client.checkpoints.get(first.id), first);
  const archive = await new Response(await client.checkpoints.archive(first.id)).arrayBuffer();
  t.match(Buffer.from(archive).toString('latin1', 0, 60), `${first.id}/MANIFEST.json`);
  const { files } = await client.checkpoints.downloadUrls(first.id);
  const [manifest] = files;
  if (!manifest) return;
  const text = await new Response(await client.checkpoints.openFile(manifest)).text();
  t.equal((JSON.parse(text) as { step: number }).step > 0, true);
  const tail = await new Response(await client.checkpoints.openFile(manifest, { from: 10 })).text();
  t.equal(tail, text.slice(10));
  t.equal((await client.checkpoints.pin(first.id)).pinned, true);
  t.equal((await client.checkpoints.pin(first.id, false)).pinned, false);
  t.match(await client.checkpoints.verify(first.id), { checkpoint_id: first.id });
  t.match(await collect(client.checkpoints.tensors(first.id)), [{ name: 'p0', shape: [10] }]);
  const opened = await client.checkpoints.openTensor(first.id, 'p0', { state: 'exp_avg' });
  const tensor = new Uint8Array(await new Response(opened).arrayBuffer());
  t.ok(tensor.length > 10 * 4);
  await t.rejects(client.checkpoints.setTensor(first.id, 'p0', tensor), { code: 'invalid_state' });
  await t.rejects(client.checkpoints.edit(first.id, 'edit_0'), ApiError);
  await t.rejects(client.samples.create(first.id, { prompt: 'a' }), { code: 'sample_timeout' });
  await t.rejects(client.checkpoints.export(first.id, { format: 'safetensors' }), ApiError);
  t.strictSame(await client.checkpoints.exports(first.id), []);
  // No worker runs exports here; the requested one holds its checkpoint.
  await t.rejects(client.checkpoints.delete(first.id), { code: 'checkpoint_held' });
  await store.letGoCheckpoint(first.id, `${first.id}-safetensors-bf16`);
  await client.checkpoints.delete(first.id);
  await t.rejects(client.checkpoints.get(first.id), { code: 'checkpoint_not_found' });
}
