import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gguf } from '@huggingface/gguf';
import t, { type Test } from 'tap';
import { MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { encodeManifest } from '../../../formats/checkpoint/manifest.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { fakeCore } from '../../testing/fake-core.js';
import { testSpec } from '../../testing/start-message.js';
import { exportGguf } from './export-gguf.js';
import { exportGgufLora } from './export-gguf-lora.js';

const DIRECTORY = 'jobs/job/checkpoints/000000009-1-a-test';
const ADAPTER = { rank: 16, alpha: 6, rank_stabilized: true };

/** Exports a checkpoint with two parameters as fp32, and returns metadata, tensors and the other files. */
async function exported(t: Test, format: 'gguf' | 'gguf_lora', params: { name: string; shape: number[] }[]) {
  const folder = t.testdir({ store: {} });
  const objects = await openObjectStore(pathToFileURL(join(folder, 'store')).href);
  t.teardown(() => objects.close());
  const stored = await putTestCheckpoint(objects, DIRECTORY, {
    numels: params.map(({ shape }) => shape.reduce((product, size) => product * size, 1)),
    ranks: 2,
    value: (_, param, element) => 1000 * param + element,
  });
  const named = stored.params.map((param, i) => ({ ...param, ...params[i] }));
  await objects.put(`${DIRECTORY}/${MANIFEST_FILE}`, encodeManifest({ ...stored, params: named }));
  const request = {
    kind: 'export' as const,
    object_store: { url: objects.url, s3_endpoint: null },
    format,
    dtype: 'fp32' as const,
    weights: 'trained' as const,
    prefix: 'jobs/job/exports/9',
    spec: testSpec(format === 'gguf' ? {} : { train: { adapter: ADAPTER } }),
    checkpoint: DIRECTORY,
    retry: { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 },
  };
  const exportAs = format === 'gguf' ? exportGguf : exportGgufLora;
  const { files, prefix } = await exportAs(objects, fakeCore(), request);
  const [file] = files;
  const content = await objects.get(`${prefix}/${file?.name}`);
  t.equal(content.length, file?.bytes);
  const path = join(folder, 'file.gguf');
  writeFileSync(path, content);
  const { metadata, tensorInfos, tensorDataOffset } = await gguf(path, { allowLocalFile: true });
  const tensors = tensorInfos.map(({ name, shape, offset }) => {
    const begin = Number(tensorDataOffset + offset);
    const numel = shape.reduce((product, size) => product * Number(size), 1);
    const values = new Float32Array(Uint8Array.from(content.subarray(begin, begin + 4 * numel)).buffer);
    return { name, shape: shape.map(Number), values: [...values] };
  });
  const text = async (name: string) => String(await objects.get(`${prefix}/${name}`));
  return { metadata, tensors, names: files.map(({ name }) => name), text };
}

const counted = (from: number, length: number) => Array.from({ length }, (_, i) => from + i);

t.test('a model with its tokenizer, and a Modelfile', async (t) => {
  const { metadata, tensors, names, text } = await exported(t, 'gguf', [
    { name: 'model.embed_tokens.weight', shape: [3, 5] },
    { name: 'model.norm.weight', shape: [7] },
  ]);
  t.same(names, ['model.gguf', 'Modelfile']);
  t.match(metadata, {
    'general.architecture': 'llama',
    'general.type': 'model',
    'general.file_type': 0,
    'llama.embedding_length': 32,
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.add_bos_token': false,
  });
  t.same(tensors, [
    { name: 'token_embd.weight', shape: [5, 3], values: counted(0, 15) },
    { name: 'output_norm.weight', shape: [7], values: counted(1000, 7) },
  ]);
  t.equal(await text('Modelfile'), 'FROM ./model.gguf\n');
});

t.test('adapters alone have the scale of rank-stabilized ones in alpha', async (t) => {
  const module = 'model.layers.0.mlp.down_proj';
  const { metadata, tensors, names } = await exported(t, 'gguf_lora', [
    { name: `${module}.lora_A.weight`, shape: [16, 3] },
    { name: `${module}.lora_B.weight`, shape: [2, 16] },
  ]);
  t.same(names, ['adapter.gguf']);
  t.match(metadata, { 'general.type': 'adapter', 'adapter.type': 'lora', 'adapter.lora.alpha': 24 });
  t.same(tensors, [
    { name: 'blk.0.ffn_down.weight.lora_a', shape: [3, 16], values: counted(0, 48) },
    { name: 'blk.0.ffn_down.weight.lora_b', shape: [16, 2], values: counted(1000, 32) },
  ]);
});
