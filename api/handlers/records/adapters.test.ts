/** Uploads of adapters, as peft wrote them (test/fine-tuning/peft/make_golden.py), over a model of transformers. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Job, Model, Problem } from '../../../contracts/index.js';
import { parseWeights } from '../../../formats/models/weights.js';
import {
  type FolderFiles,
  modelFolder,
  safetensorsFile,
  type TestTensor,
  tarOf,
  testData,
} from '../../../formats/testing/models.js';
import { projectRoot } from '../../../platform/process/root.js';
import { storedKeys, upload } from '../../testing/model-uploads.js';
import { startTestStack } from '../../testing/stack.js';

const TESTS = join(projectRoot(), 'test');

function folderOf(...path: string[]): FolderFiles {
  const at = join(TESTS, ...path);
  return new Map(readdirSync(at).map((name) => [name, readFileSync(join(at, name))]));
}

const BASE = folderOf('e2e', 'hf-llama', 'model');
const CONFIG = 'adapter_config.json';
const WEIGHTS = 'adapter_model.safetensors';
const ABSENT = `mdl_${'0'.repeat(26)}`;

t.test('adapters', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const base = (await upload(stack, await tarOf(BASE))).json<Model>();
  const send = async (files: FolderFiles, baseId: string | null = base.id) =>
    upload(stack, await tarOf(files), baseId === null ? 'name=mine' : `name=mine&base=${baseId}`);
  const stored = async (...path: string[]) => {
    const reply = await send(folderOf('fine-tuning', 'peft', ...path));
    t.equal(reply.statusCode, 201, reply.body);
    return reply.json<Model>();
  };
  const remove = ({ id }: Model) => stack.request({ method: 'DELETE', url: `/v1/models/${id}` });

  t.test('an adapter is described by its file and its tensors', async (t) => {
    const defaults = { dropout: 0, init: 'kaiming_uniform', rank_stabilized: false };
    const lora = await stored('lora');
    t.match(lora, { base: base.id, model_type: 'llama', dtypes: ['fp32'], config: base.config });
    t.same(lora.adapter, {
      ...defaults,
      type: 'lora',
      rank: 4,
      alpha: 12,
      target_modules: ['q_proj', 'down_proj'],
      // PEFT takes `norm` for every module whose name ends so.
      modules_to_save: ['input_layernorm', 'post_attention_layernorm', 'norm'],
    });
    t.equal(lora.num_parameters, 2 * (4 * (48 + 48) + 4 * (96 + 48)) + 5 * 48);
    const rslora = await stored('rslora');
    t.match(rslora.adapter, {
      rank_stabilized: true,
      dropout: 0.1,
      rank: 3,
      alpha: 5,
      target_modules: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'],
    });
    const dora = await stored('dora');
    t.match(dora.adapter, { type: 'dora', target_modules: ['gate_proj', 'up_proj', 'down_proj'] });
    const { files } = parseWeights(await stack.objects.get(`models/${dora.id}/WEIGHTS.json`));
    const names = files.flatMap(({ tensors }) => tensors.map(({ param }) => param));
    t.ok(names.includes('model.layers.1.mlp.up_proj.lora_magnitude_vector.weight'));
    t.same((await stack.request({ url: `/v1/models/${dora.id}` })).json(), dora);
    for (const model of [lora, rslora, dora]) t.equal((await remove(model)).statusCode, 204);
  });

  t.test('it has the documents of its base, but for its own tokenizer', async (t) => {
    const plain = await stored('lora');
    t.same(plain.tokenizer, base.tokenizer);
    const shared = base.files.filter(({ name }) => !/safetensors/.test(name));
    t.same(
      plain.files.filter(({ name }) => !name.startsWith('adapter_')),
      shared,
    );
    const own = { ...JSON.parse(String(BASE.get('tokenizer.json'))), added_tokens: [] };
    const files = folderOf('fine-tuning', 'peft', 'lora').set(
      'tokenizer.json',
      Buffer.from(JSON.stringify(own)),
    );
    const other = (await send(files)).json<Model>();
    t.notSame(other.tokenizer, base.tokenizer);
    t.equal(other.tokenizer?.chat_template, null, 'files of two tokenizers are not mixed');
    t.ok(other.files.some(({ name }) => name === 'config.json'));
    for (const model of [plain, other]) await remove(model);
  });

  t.test('a job trains it on over its base, which is kept', async (t) => {
    const adapter = await stored('lora');
    const dataset = (await stack.upload('x'.repeat(500))).id;
    const payload = {
      model: { init_from: { model: adapter.id } },
      data: { dataset, tokenizer: 'bytes' },
      train: { steps: 1, sequence_length: 8 },
    };
    const reply = await stack.request({ method: 'POST', url: '/v1/jobs', payload });
    t.equal(reply.statusCode, 201, reply.body);
    const { id, spec } = reply.json<Job>();
    t.same(spec.model, { ...spec.model, base: { model: base.id }, init_from: { model: adapter.id } });
    t.same(spec.train.adapter, adapter.adapter);
    const other = { ...payload, train: { ...payload.train, adapter: { rank: 5 } } };
    const refused = await stack.request({ method: 'POST', url: '/v1/jobs', payload: other });
    t.match(refused.json<Problem>().errors, [
      { pointer: '/model/init_from/model', code: 'adapter_mismatch', message: /lora adapter of rank 4/ },
    ]);
    await stack.request({ method: 'POST', url: `/v1/jobs/${id}/cancel` });
    await stack.request({ method: 'DELETE', url: `/v1/jobs/${id}` });
    t.match((await remove(base)).json(), { code: 'model_in_use', detail: new RegExp(adapter.id) });
    t.equal((await remove(adapter)).statusCode, 204);
  });

  const broken = (change: (files: FolderFiles) => void) => {
    const files = folderOf('fine-tuning', 'peft', 'lora');
    change(files);
    return files;
  };
  const withConfig = (changes: object) =>
    broken((files) =>
      files.set(
        CONFIG,
        Buffer.from(JSON.stringify({ ...JSON.parse(String(files.get(CONFIG))), ...changes })),
      ),
    );
  const refusals: [string, FolderFiles, object, string?][] = [
    [
      'another method',
      withConfig({ peft_type: 'IA3' }),
      { code: 'model_config_invalid', detail: /peft_type/ },
    ],
    ['another rank', withConfig({ r: 5 }), { code: 'model_tensor_mismatch' }],
    ['a pattern', withConfig({ rank_pattern: { q_proj: 3 } }), { detail: /rank_pattern/ }],
    ['a new switch', withConfig({ use_qalora: true }), { detail: /use_qalora is true.*merge_and_unload/ }],
    ['a changed base', withConfig({ init_lora_weights: 'pissa_niter_4' }), { detail: /pissa_niter_4/ }],
    ['biases', withConfig({ bias: 'all' }), { detail: /bias is "all"/ }],
    [
      'no configuration',
      broken((files) => files.delete(CONFIG)),
      { code: 'model_file_missing', detail: new RegExp(CONFIG) },
    ],
    [
      'no weights',
      broken((files) => files.delete(WEIGHTS)),
      { code: 'model_file_missing', detail: new RegExp(WEIGHTS) },
    ],
    [
      'magnitudes that are missing',
      withConfig({ use_dora: true }),
      { code: 'model_tensor_missing', detail: /lora_magnitude_vector/ },
    ],
    ['a model', BASE, { code: 'model_file_missing', detail: new RegExp(CONFIG) }],
  ];
  for (const [name, files, problem] of refusals) {
    t.test(`refused: ${name}`, async (t) => {
      const before = await storedKeys(stack);
      const reply = await send(files);
      t.equal(reply.statusCode, 422, reply.body);
      t.match(reply.json(), problem);
      t.same(await storedKeys(stack), before, 'nothing is left behind');
    });
  }

  t.test('refused: no base, an unknown one, another adapter', async (t) => {
    const files = folderOf('fine-tuning', 'peft', 'dora');
    t.match((await send(files, null)).json(), { code: 'model_file_missing', detail: /base=mdl_/ });
    t.match((await send(files, ABSENT)).json(), { code: 'model_not_found', status: 404 });
    const adapter = (await send(files)).json<Model>();
    t.match((await send(files, adapter.id)).json(), {
      code: 'model_base_invalid',
      detail: new RegExp(base.id),
    });
    await remove(adapter);
  });

  t.test('the shared matrix of a tied base', async (t) => {
    const tied = (await upload(stack, await tarOf(modelFolder()))).json<Model>();
    const withConfig = (whole: Record<string, string>, config: object = {}) => {
      const tensor = (name: string, shape: number[], seed = name): TestTensor => ({
        name: `base_model.model.${name}`,
        dtype: 'F32',
        shape,
        data: testData(seed, shape, 'F32'),
      });
      const tensors = [0, 1].flatMap((layer) => [
        tensor(`model.layers.${layer}.self_attn.q_proj.lora_A.weight`, [2, 32]),
        tensor(`model.layers.${layer}.self_attn.q_proj.lora_B.weight`, [32, 2]),
      ]);
      for (const [name, seed] of Object.entries(whole))
        tensors.push(tensor(`${name}.weight`, [256, 32], seed));
      const document = { peft_type: 'LORA', r: 2, lora_alpha: 4, ...config };
      return send(
        new Map([
          [CONFIG, Buffer.from(JSON.stringify(document))],
          [WEIGHTS, safetensorsFile(tensors)],
        ]),
        tied.id,
      );
    };
    const [input, output] = ['model.embed_tokens', 'lm_head'] as const;
    const ensured = { ensure_weight_tying: true };
    for (const [whole, config] of [
      [{ [input]: 'one', [output]: 'one' }],
      [{ [input]: 'one', [output]: 'one' }, ensured],
      [{ [input]: 'one' }, ensured],
      [{ [output]: 'one' }, ensured],
    ] as const) {
      const reply = await withConfig(whole, config);
      t.equal(reply.statusCode, 201, reply.body);
      const adapter = reply.json<Model>();
      t.same(adapter.adapter?.modules_to_save, ['embed_tokens']);
      const { files } = parseWeights(await stack.objects.get(`models/${adapter.id}/WEIGHTS.json`));
      const params = files.flatMap(({ tensors }) => tensors.map(({ param }) => param));
      t.same(
        params.filter((param) => !param.includes('lora')),
        ['model.embed_tokens.weight'],
      );
      await remove(adapter);
    }
    t.match((await withConfig({ [input]: 'one', [output]: 'two' })).json(), {
      code: 'model_tensor_mismatch',
      detail: /is not the same as model.embed_tokens.weight, but config.json ties the two/,
    });
    for (const [there, other] of [
      [input, output],
      [output, input],
    ] as const)
      t.match((await withConfig({ [there]: 'one' })).json(), {
        code: 'model_config_invalid',
        detail: new RegExp(
          `have ${there}.weight without ${other}.weight.* ties the two.*ensure_weight_tying`,
        ),
      });
    await remove(tied);
  });

  t.test('a base without adapters can be deleted', async (t) => {
    t.equal((await remove(base)).statusCode, 204);
  });
});
