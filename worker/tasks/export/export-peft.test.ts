import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { encodeManifest } from '../../../formats/checkpoint/manifest.js';
import { parseSafetensorsHeader } from '../../../formats/safetensors/read-header.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { fakeCore } from '../../testing/fake-core.js';
import { testSpec } from '../../testing/start-message.js';
import { exportPeft } from './export-peft.js';

const DIRECTORY = 'jobs/job/checkpoints/000000009-1-a-test';
const NAMES = [
  'model.embed_tokens.weight',
  'model.norm.weight',
  'model.layers.0.self_attn.q_proj.lora_A.weight',
];

/** Exports a checkpoint with these parameters, of which the frozen ones belong to the base. */
async function exported(
  t: Test,
  tieWordEmbeddings: boolean,
  frozen: number[],
  { format = 'peft', adapter = {} }: { format?: 'peft' | 'peft_folded'; adapter?: object } = {},
) {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const stored = await putTestCheckpoint(objects, DIRECTORY, {
    numels: [8, 4, 6],
    ranks: 1,
    frozen,
    value: (_, param, element) => 10 * param + element,
  });
  const params = stored.params.map((param, i) => ({ ...param, name: NAMES[i] as string }));
  await objects.put(`${DIRECTORY}/${MANIFEST_FILE}`, encodeManifest({ ...stored, params }));
  const spec = testSpec({ train: { adapter: { modules_to_save: ['embed_tokens'], ...adapter } } });
  Object.assign(spec.model, { config: { ...spec.model.config, tie_word_embeddings: tieWordEmbeddings } });
  const { prefix } = await exportPeft(objects, fakeCore(), {
    kind: 'export',
    object_store: { url: objects.url, s3_endpoint: null },
    format,
    dtype: 'fp32',
    weights: 'trained',
    prefix: 'jobs/job/exports/9',
    spec,
    checkpoint: DIRECTORY,
    retry: { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 },
  });
  const file = await objects.get(`${prefix}/adapter_model.safetensors`);
  const { bytes, tensors } = parseSafetensorsHeader(file, { name: 'adapter', bytes: file.length });
  const config = JSON.parse(String(await objects.get(`${prefix}/adapter_config.json`)));
  const { modules_to_save } = config;
  const values = tensors.map(({ name, begin, end }) => [
    name.replace('base_model.model.', ''),
    [...new Float32Array(new Uint8Array(file.subarray(bytes + begin, bytes + end)).buffer)],
  ]);
  return { config, saved: { modules_to_save, values: Object.fromEntries(values) } };
}

const EMBEDDING = [0, 1, 2, 3, 4, 5, 6, 7];
const FACTOR = [20, 21, 22, 23, 24, 25];

t.test('a tied matrix that was trained is there for both of its modules', async (t) => {
  t.same((await exported(t, true, [1])).saved, {
    modules_to_save: ['model.embed_tokens', 'lm_head'],
    values: { [NAMES[0] as string]: EMBEDDING, [NAMES[2] as string]: FACTOR, 'lm_head.weight': EMBEDDING },
  });
});

t.test('an untied embedding is there once, and a tied one that was not trained is left out', async (t) => {
  t.same((await exported(t, false, [1])).saved, {
    modules_to_save: ['model.embed_tokens'],
    values: { [NAMES[0] as string]: EMBEDDING, [NAMES[2] as string]: FACTOR },
  });
  t.same((await exported(t, true, [0])).saved, {
    modules_to_save: ['model.norm'],
    values: { [NAMES[1] as string]: [10, 11, 12, 13], [NAMES[2] as string]: FACTOR },
  });
});

t.test('the scale of rank-stabilized adapters is a flag, or folded into lora_alpha', async (t) => {
  const adapter = { rank: 16, alpha: 6, rank_stabilized: true };
  const { config } = await exported(t, false, [1], { adapter });
  t.match(config, { r: 16, lora_alpha: 6, use_rslora: true });
  const folded = await exported(t, false, [1], { adapter, format: 'peft_folded' });
  t.match(folded.config, { r: 16, lora_alpha: 24, use_rslora: false });
});
