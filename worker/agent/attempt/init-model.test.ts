/** Tests of jobs that start from the weights of an uploaded model. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseSafetensorsHeader } from '../../../formats/safetensors/read-header.js';
import { modelFolder, storeModel, testModel } from '../../../formats/testing/models.js';
import { projectRoot } from '../../../platform/process/root.js';
import { fakeModelFolder } from '../../testing/fake-model.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

const MODEL = 'mdl_01J00000000000000000000000';
const STEPS = 8;

t.test('with the fake core', async (t) => {
  const fleet = await Fleet.start();
  t.teardown(() => fleet.close());
  await fleet.agent();
  await fleet.store.putModel(testModel(MODEL));
  const file = 'model.safetensors';
  const folder = fakeModelFolder();
  const weights = folder.get(file) as Buffer;
  await storeModel(fleet.objects, MODEL, folder);
  const submit = (ranks: number) =>
    fleet.submit({ steps: STEPS, every_steps: 3, ranks, init_from: { model: MODEL } });

  await t.test('any number of ranks ends with the same state, and an event names the model', async (t) => {
    const digests = new Set<string | undefined>();
    for (const ranks of [1, 2, 3]) {
      const id = await submit(ranks);
      digests.add((await fleet.untilState(id, 'succeeded')).export?.state_digest);
      const loaded = (await fleet.events(id)).filter(({ type }) => type === 'init.loaded');
      t.strictSame(
        loaded.map(({ data }) => data),
        [{ model: MODEL }],
      );
    }
    t.equal(digests.size, 1);
    t.notOk(digests.has(fakeStateDigest(1, STEPS)), 'fresh weights have another digest');
  });

  await t.test('a damaged or missing model is refused with its reason, without a retry', async (t) => {
    const failure = async () => {
      const job = await fleet.untilState(await submit(2), 'failed');
      t.notOk(job.state_history.some(({ state }) => state === 'recovering'));
      return job.failure;
    };
    const key = `models/${MODEL}/${file}`;
    const damaged = Buffer.from(weights);
    damaged[damaged.length - 1]! ^= 1;
    await fleet.objects.put(key, damaged);
    t.match(await failure(), { code: 'model_corrupt', category: 'data', message: new RegExp(MODEL) });
    await fleet.objects.put(key, weights.subarray(0, -2));
    t.match(await failure(), { code: 'model_corrupt', message: new RegExp(MODEL) });
    const notFound = { code: 'model_not_found', category: 'user', message: new RegExp(MODEL) };
    await fleet.objects.delete([key]);
    t.match(await failure(), notFound);
    await fleet.objects.delete([`models/${MODEL}/WEIGHTS.json`]);
    t.match(await failure(), notFound);
  });
});

const built = existsSync(join(projectRoot(), 'native', 'build', 'zerofleet.node'));

const DECODER = {
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
};
const GPT2 = {
  model_type: 'gpt2',
  n_embd: 32,
  n_layer: 2,
  n_head: 4,
  vocab_size: 256,
  n_positions: 64,
} as const;
const CLASSES = {
  llama: 'LlamaForCausalLM',
  gpt2: 'GPT2LMHeadModel',
  mistral: 'MistralForCausalLM',
  mixtral: 'MixtralForCausalLM',
  qwen2: 'Qwen2ForCausalLM',
  qwen3: 'Qwen3ForCausalLM',
};

const FORMATS = {
  bf16: { file: 'BF16', torch: 'bfloat16' },
  fp16: { file: 'F16', torch: 'float16' },
  fp32: { file: 'F32', torch: 'float32' },
} as const;

const CASES = [
  [{ model_type: 'llama', ...DECODER, tie_word_embeddings: true }, 'bf16', 2],
  [{ model_type: 'llama', ...DECODER, attention_bias: true, mlp_bias: true }, 'fp32', 3],
  [GPT2, 'bf16', 2],
  [{ model_type: 'qwen2', ...DECODER }, 'bf16', 2],
  [{ model_type: 'mistral', ...DECODER, sliding_window: 8 }, 'fp16', 2],
  [{ model_type: 'mixtral', ...DECODER, num_local_experts: 4, num_experts_per_tok: 2 }, 'bf16', 2],
  [{ model_type: 'qwen3', ...DECODER, head_dim: 16 }, 'fp32', 1],
] as const;

t.test('with the native core', built ? {} : { skip: 'the native core is not built' }, async (t) => {
  const fleet = await Fleet.start({
    core: 'native',
    text: 'The quick brown fox jumps over the lazy dog. '.repeat(20),
  });
  t.teardown(() => fleet.close());
  await fleet.agent();
  for (const [index, [config, dtype, ranks]] of CASES.entries()) {
    const { model_type } = config;
    await t.test(`the export equals the loaded model: ${model_type}, ${dtype}`, async (t) => {
      const model = `${MODEL.slice(0, -1)}${index}`;
      const files = modelFolder({ config, shards: 2, dtype: FORMATS[dtype].file });
      await fleet.store.putModel(testModel(model));
      await storeModel(fleet.objects, model, files);
      const initFrom = { model };
      // A step with a learning rate of 0 changes no weight.
      const overrides = [{ step: 0, lr: 0 }];
      const id = await fleet.submit({
        steps: 1,
        ranks,
        config,
        init_from: initFrom,
        overrides,
        export_dtype: dtype,
      });
      const job = await fleet.untilState(id, 'succeeded');
      const exported = (name: string) => fleet.objects.get(`${job.export?.prefix}/${name}`);

      const stored = new Map<string, Buffer>();
      for (const [name, content] of files) {
        if (!name.endsWith('.safetensors')) continue;
        const { bytes, tensors } = parseSafetensorsHeader(content);
        for (const { name: tensor, begin, end } of tensors)
          stored.set(tensor, content.subarray(bytes + begin, bytes + end));
      }
      const written = await exported('model.safetensors');
      const { bytes, tensors } = parseSafetensorsHeader(written, { name: 'export', bytes: written.length });
      t.strictSame(tensors.map(({ name }) => name).sort(), [...stored.keys()].sort());
      for (const { name, begin, end } of tensors)
        t.ok(stored.get(name)?.equals(written.subarray(bytes + begin, bytes + end)), name);

      const torchDtype = FORMATS[dtype].torch;
      t.strictSame(JSON.parse(String(await exported('config.json'))), {
        ...JSON.parse(String(files.get('config.json'))),
        architectures: [CLASSES[model_type]],
        torch_dtype: torchDtype,
        dtype: torchDtype,
      });
      // The job reads bytes: the model's tokenizer would not match its data.
      const names = ['config.json', 'generation_config.json', 'model.safetensors'];
      t.strictSame(job.export?.files.map(({ name }) => name).sort(), names);
      const settings = 'generation_config.json';
      t.ok((await exported(settings)).equals(files.get(settings)!));
    });
  }
});
