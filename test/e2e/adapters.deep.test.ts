/** Adapters over a model that another job trained: training, exports, samples, and jobs that begin with them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { tarOf } from '../../formats/testing/models.js';
import { quantizedValues } from '../../native/js/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { ADAPTER, normsOf, sumOf, tensorsOf, withNorms } from '../support/adapted.js';
import { adapterJobs } from '../support/adapter-jobs.js';
import { pythonWith, runPython } from '../support/python.js';
import { roundedToBf16, StoredState } from '../support/stored-state.js';
import { STEPS, tinyJob } from '../support/zero-specs.js';

const LR = 5e-3;
const BASE = 'model.layers.1.mlp.down_proj';
const loader = join(projectRoot(), 'test', 'e2e', 'peft', 'load_adapter.py');

t.test('adapters', async (t) => {
  const { stack, client, dataset, run, interrupted, checkpointOf, exportOf, folderOf } = await adapterJobs(t);
  const source = await run(t, tinyJob({ name: 'source', dataset, ranks: 2 }));
  const init = { checkpoint: (await checkpointOf(source)).id };
  const adapted = (name: string, ranks: number, adapter: object = ADAPTER): JobSpec =>
    tinyJob({
      name,
      dataset,
      ranks,
      steps: STEPS,
      init_from: init,
      train: { adapter, optimizer: { lr: LR } },
    });

  const one = await run(t, adapted('one rank', 1));
  const checkpoint = await checkpointOf(one);
  const [before, after] = [await checkpointOf(source), checkpoint].map(
    (from) => new StoredState(stack.data_dir, from),
  ) as [StoredState, StoredState];

  await t.test('the same bits on two ranks, paused, and three', async (t) => {
    const three = await interrupted(t, adapted('two and three ranks', 2));
    t.equal(three.export?.state_digest, one.export?.state_digest);
  });

  await t.test('a checkpoint has what is trained, and the base by its digest', async (t) => {
    const metrics = await collect(client.jobs.metrics(one.id));
    const losses = metrics.map(({ loss }) => loss ?? Number.NaN);
    // The loss of a batch says little: some lines of the text are harder than others.
    const total = (some: number[]) => some.reduce((sum, loss) => sum + loss, 0);
    t.ok(total(losses.slice(-10)) < total(losses.slice(0, 10)), `it learns: ${losses.join(' ')}`);
    t.ok(after.read('master', `${BASE}.lora_B.weight`).some((value) => value !== 0));
    t.notOk(
      isDeepStrictEqual(
        after.read('master', 'model.norm.weight'),
        before.read('master', 'model.norm.weight'),
      ),
    );
    const trained = after.manifest.params.filter(({ base }) => !base);
    t.equal(trained.length, 1 + 2 * 2 * 2);
    const elements = trained.reduce((sum, { numel }) => sum + numel, 0);
    const bytes = after.manifest.shards.reduce((sum, shard) => sum + shard.bytes - shard.data_begin, 0);
    t.equal(bytes, elements * 3 * 4, 'a master and two moments');
    t.match(after.manifest.base, { digest: /^[0-9a-f]{32}$/, source: init });
  });

  const whole = await exportOf(checkpoint.id, { dtype: 'fp32' });
  const peft = await exportOf(checkpoint.id, { format: 'peft', dtype: 'fp32' });

  await t.test('a model folder has the adapters merged', async (t) => {
    const tensors = tensorsOf(join(folderOf(whole), 'model.safetensors'));
    t.strictSame(
      [...tensors.keys()].sort(),
      before.manifest.params.map(({ name }) => name).sort(),
      "the model's own parameters",
    );
    const [down, up] = ['A', 'B'].map((factor) => after.read('master', `${BASE}.lora_${factor}.weight`));
    const base = (name: string) => roundedToBf16(before.read('master', name));
    t.ok(
      isDeepStrictEqual(
        tensors.get(`${BASE}.weight`),
        Float32Array.from(sumOf(base(`${BASE}.weight`), down!, up!)),
      ),
    );
    t.ok(isDeepStrictEqual(tensors.get('lm_head.weight'), base('lm_head.weight')), 'rounded as in training');
  });

  await t.test('a PEFT folder has the adapters alone', async (t) => {
    const config = JSON.parse(readFileSync(join(folderOf(peft), 'adapter_config.json'), 'utf8'));
    t.match(config, {
      peft_type: 'LORA',
      r: ADAPTER.rank,
      lora_alpha: ADAPTER.alpha,
      target_modules: ADAPTER.target_modules,
      modules_to_save: ['model.norm'],
      use_rslora: false,
    });
    const tensors = tensorsOf(join(folderOf(peft), 'adapter_model.safetensors'));
    t.equal(tensors.size, 9);
    for (const [name, values] of tensors)
      t.ok(isDeepStrictEqual(values, after.read('master', name.replace('base_model.model.', ''))), name);
  });

  const found = pythonWith('torch', 'transformers', 'peft');
  const skip = 'python' in found ? false : found.missing;
  await t.test(
    'peft loads the folder over the base, and computes what the merged model does',
    { skip },
    async (t) => {
      if (!('python' in found)) return;
      const base = await exportOf(init.checkpoint, { dtype: 'bf16' });
      const { difference, size } = runPython(found.python, loader, [base, peft, whole].map(folderOf)) as {
        difference: number;
        size: number;
      };
      t.ok(difference < 1e-5 * size, `logits differ by ${difference} of ${size}`);
    },
  );

  await t.test(
    'an uploaded model with the same weights is the same base, until the job is deleted',
    async (t) => {
      const folder = folderOf(await exportOf(init.checkpoint, { dtype: 'fp32' }));
      const files = readdirSync(folder).map((name): [string, Buffer] => [
        name,
        readFileSync(join(folder, name)),
      ]);
      const model = (await client.models.create('base', await tarOf(new Map(files)))).id;
      const spec = { ...adapted('over a model', 2), model: { init_from: { model } } };
      const job = await interrupted(t, spec);
      t.equal(job.export?.state_digest, one.export?.state_digest);
      const state = new StoredState(stack.data_dir, await checkpointOf(job));
      t.equal(state.manifest.base?.digest, after.manifest.base?.digest);
      const again = folderOf(await exportOf((await checkpointOf(job)).id, { dtype: 'fp32' }));
      const [ours, theirs] = [again, folderOf(whole)].map((at) =>
        readFileSync(join(at, 'model.safetensors')),
      );
      t.ok(ours?.equals(theirs ?? Buffer.of()), 'merged into the same weights');
      await t.rejects(client.models.delete(model), /409 .*model_in_use/);
      await client.jobs.delete(job.id);
      await client.models.delete(model);
    },
  );

  await t.test('a base of a seed', async (t) => {
    const spec = (ranks: number) =>
      tinyJob({ name: 'fresh', dataset, ranks, train: { adapter: ADAPTER, optimizer: { lr: 5e-3 } } });
    const job = await run(t, spec(1));
    t.equal((await interrupted(t, spec(2))).export?.state_digest, job.export?.state_digest);
    const fresh = await checkpointOf(
      await run(t, tinyJob({ name: 'unchanged', dataset, steps: 1, train: { optimizer: { lr: 1e-30 } } })),
    );
    const first = new StoredState(stack.data_dir, fresh);
    const folder = folderOf(await exportOf((await checkpointOf(job)).id, { dtype: 'fp32' }));
    const tensors = tensorsOf(join(folder, 'model.safetensors'));
    t.ok(
      isDeepStrictEqual(tensors.get('lm_head.weight'), roundedToBf16(first.read('master', 'lm_head.weight'))),
    );
  });

  await t.test(
    'DoRA: the same bits on other ranks; exports that peft and the formula agree with',
    async (t) => {
      const dora = { ...ADAPTER, type: 'dora', modules_to_save: [] };
      const job = await run(t, adapted('magnitudes', 1, dora));
      t.equal(
        (await run(t, adapted('magnitudes on three', 3, dora))).export?.state_digest,
        job.export?.state_digest,
      );
      const last = await checkpointOf(job);
      const state = new StoredState(stack.data_dir, last);
      const masterOf = (name: string) => state.read('master', `${BASE}.${name}.weight`);
      const base = roundedToBf16(before.read('master', `${BASE}.weight`));
      const magnitudes = masterOf('lora_magnitude_vector');
      const moved = normsOf(Float64Array.from(base), magnitudes.length).map((norm, row) =>
        Math.abs((magnitudes[row] ?? 0) - norm),
      );
      t.ok(Math.max(...moved) < 1.1 * STEPS * LR, 'magnitudes begin as the norms of the base');
      t.ok(Math.min(...moved) > 0, 'and are trained');
      const folders = [
        await exportOf(init.checkpoint, { dtype: 'bf16' }),
        await exportOf(last.id, { format: 'peft', dtype: 'fp32' }),
        await exportOf(last.id, { dtype: 'fp32' }),
      ].map(folderOf) as [string, string, string];
      const expected = withNorms(sumOf(base, masterOf('lora_A'), masterOf('lora_B')), magnitudes);
      const tensors = tensorsOf(join(folders[2], 'model.safetensors'));
      t.ok(isDeepStrictEqual(tensors.get(`${BASE}.weight`), Float32Array.from(expected)));
      t.match(JSON.parse(readFileSync(join(folders[1], 'adapter_config.json'), 'utf8')), { use_dora: true });
      const named = `base_model.model.${BASE}.lora_magnitude_vector`;
      t.same(
        tensorsOf(join(folders[1], 'adapter_model.safetensors')).get(named),
        masterOf('lora_magnitude_vector'),
      );
      if ('python' in found) {
        const { difference, size } = runPython(found.python, loader, folders) as Record<string, number>;
        t.ok((difference ?? 9) < 1e-5 * (size ?? 0), `logits differ by ${difference} of ${size}`);
      }
      const sampled = await client.samples.create(last.id, { prompt: 'open', max_tokens: 8 });
      t.equal(sampled.usage.completion_tokens, 8);
    },
  );

  await t.test('a quantized base: equal bits, and an export of what was trained', async (t) => {
    const quantized = (name: string, ranks: number) => {
      const spec = adapted(name, ranks);
      return { ...spec, model: { ...spec.model, quantization: 'nf4' as const } };
    };
    const alone = await run(t, quantized('nf4 on one rank', 1));
    const moved = await interrupted(t, quantized('nf4 on two and three', 2));
    t.equal(moved.export?.state_digest, alone.export?.state_digest);
    t.not(alone.export?.state_digest, one.export?.state_digest);
    t.equal(alone.export?.base_quantization, 'nf4');
    const last = await checkpointOf(alone);
    const state = new StoredState(stack.data_dir, last);
    t.equal(state.manifest.base?.digest, after.manifest.base?.digest, 'the digest is of what was quantized');
    const exported = await exportOf(last.id, { dtype: 'fp32' });
    t.equal(exported.base_quantization, 'nf4');
    const file = join(folderOf(exported), 'model.safetensors');
    const [down, up] = ['A', 'B'].map((factor) => state.read('master', `${BASE}.lora_${factor}.weight`));
    const shape = state.manifest.params.find(({ name }) => name === `${BASE}.weight`)?.shape ?? [];
    const matrix = { format: 'nf4', precision: 'bf16', rows: shape[0] ?? 0, columns: shape[1] ?? 0 } as const;
    const weight = before.read('master', `${BASE}.weight`);
    const restored = quantizedValues(
      matrix,
      new Uint8Array(weight.buffer, weight.byteOffset, weight.byteLength),
    );
    const tensors = tensorsOf(file);
    const merged = Float32Array.from(sumOf(new Float32Array(restored.buffer), down!, up!));
    t.ok(isDeepStrictEqual(tensors.get(`${BASE}.weight`), merged));
    t.notOk(isDeepStrictEqual(restored, new Uint8Array(roundedToBf16(weight).buffer)));
    const sampled = await client.samples.create(last.id, { prompt: 'open', max_tokens: 8, seed: 5 });
    t.equal(sampled.usage.completion_tokens, 8);
    await t.rejects(
      client.jobs.create({
        ...tinyJob({ name: 'bare', dataset }),
        model: { preset: 'llama-tiny', quantization: 'int8' },
      }),
      /422 .*\/model\/quantization/,
    );
  });

  await t.test('a sample comes from the adapted model', async (t) => {
    const ask = (id: string) =>
      client.samples.create(id, { prompt: 'open', max_tokens: 24, temperature: 1, seed: 5 });
    const sampled = await ask(checkpoint.id);
    t.equal(sampled.usage.completion_tokens, 24);
    t.not(sampled.choices[0]?.text, (await ask(init.checkpoint)).choices[0]?.text);
  });

  await t.test('a job begins with the adapter; another one does not fit', async (t) => {
    const initFrom = { checkpoint: checkpoint.id };
    const spec = (adapter: object | undefined) =>
      tinyJob({
        name: 'next',
        dataset,
        steps: 1,
        init_from: initFrom,
        train: { ...(adapter && { adapter }), optimizer: { lr: 1e-9 } },
      });
    const job = await run(t, spec(ADAPTER));
    const next = new StoredState(stack.data_dir, await checkpointOf(job));
    t.same(next.manifest.base, after.manifest.base, 'over the same base');
    await t.rejects(client.checkpoints.delete(init.checkpoint), /409 .*checkpoint_held/);
    const [ours, theirs] = [next, after].map((state) => state.read('master', `${BASE}.lora_B.weight`));
    t.ok(ours?.every((value, at) => Math.abs(value - (theirs?.[at] ?? 9)) < 1e-6));
    const other = { ...ADAPTER, rank: 5 };
    await t.rejects(client.jobs.create(spec(other)), /422 .*\/model\/init_from\/checkpoint/);
    t.same((await client.jobs.create(spec(undefined))).spec.train.adapter, one.spec.train.adapter);
    await t.rejects(exportOf(checkpoint.id, { format: 'deepspeed_universal' }), /422 .*use peft/);
    await t.rejects(exportOf(init.checkpoint, { format: 'peft' }), /422 .*no adapters/);
  });
});
