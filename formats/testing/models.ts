/** Small Hugging Face model folders with weights that are a function of their names. */
import { createHash } from 'node:crypto';
import tar from 'tar-stream';
import { type Model, modelKey } from '../../contracts/index.js';
import { architectureOf, importConfig, modelParams } from '../../job-document/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { ChunkChecksums } from '../checkpoint/verify.js';
import {
  encodeWeights,
  type ModelWeights,
  parseWeights,
  WEIGHTS_FILE,
  type WeightDtype,
} from '../models/weights.js';
import { safetensorsHeader } from '../safetensors/header.js';
import { parseSafetensorsHeader } from '../safetensors/read-header.js';

export type FolderFiles = Map<string, Buffer>;

interface TestFolder {
  /** `config.json`; `TINY_CONFIG` by default. */
  config?: Record<string, unknown>;
  dtype?: 'F32' | 'BF16' | 'F16';
  /** 1: `model.safetensors`; more: as many shards, with their index. */
  shards?: number;
}

export const TINY_CONFIG = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
  tie_word_embeddings: true,
  torch_dtype: 'float32',
};

/** A mixture of experts. */
export const TINY_MIXTRAL = {
  model_type: 'mixtral',
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  num_local_experts: 4,
  num_experts_per_tok: 2,
  vocab_size: 256,
} as const;

/** Tokenizer with a token for each letter. */
export const TINY_TOKENIZER = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [{ id: 26, content: '</s>', special: true }],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  model: {
    type: 'BPE',
    vocab: Object.fromEntries(Array.from('abcdefghijklmnopqrstuvwxyz', (letter, id) => [letter, id])),
    merges: [],
  },
};

const CJK = 0x4e00;

/** Tokenizer with more tokens than a byte-level model. */
export const LARGE_TOKENIZER = {
  ...TINY_TOKENIZER,
  added_tokens: [{ id: 256, content: '</s>', special: true }],
  model: {
    ...TINY_TOKENIZER.model,
    vocab: Object.fromEntries(Array.from({ length: 256 }, (_, id) => [String.fromCodePoint(CJK + id), id])),
  },
};

/** Tensor of a file. */
export interface TestTensor {
  name: string;
  dtype: 'F32' | 'BF16' | 'F16';
  shape: readonly number[];
  data: Buffer;
}

/** Returns all files of a valid folder. */
export function modelFolder({
  config = TINY_CONFIG,
  dtype = 'BF16',
  shards = 1,
}: TestFolder = {}): FolderFiles {
  const tensors = paramsOf(config).map(({ name, shape }) => ({
    name,
    dtype,
    shape,
    data: testData(name, shape, dtype),
  }));
  const files: FolderFiles = new Map([
    ['config.json', json(config)],
    ['generation_config.json', json({ eos_token_id: 2 })],
    ['tokenizer.json', json(TINY_TOKENIZER)],
    ['tokenizer_config.json', json({ model_max_length: 64 })],
  ]);
  if (shards === 1) return files.set('model.safetensors', safetensorsFile(tensors));
  const weightMap: Record<string, string> = {};
  const digits = (value: number) => String(value).padStart(5, '0');
  for (let shard = 0; shard < shards; shard++) {
    const file = `model-${digits(shard + 1)}-of-${digits(shards)}.safetensors`;
    const mine = tensors.filter((_, i) => i % shards === shard);
    for (const { name } of mine) weightMap[name] = file;
    files.set(file, safetensorsFile(mine));
  }
  return files.set('model.safetensors.index.json', json({ metadata: {}, weight_map: weightMap }));
}

export function safetensorsFile(tensors: readonly TestTensor[]): Buffer {
  let at = 0;
  const entries = tensors.map(({ name, dtype, shape, data }) => {
    const begin = at;
    at += data.length;
    return { name, dtype, shape, begin, end: at };
  });
  return Buffer.concat([safetensorsHeader(entries, { format: 'pt' }), ...tensors.map(({ data }) => data)]);
}

/** Returns finite values between -2 and 2 that depend on the name. */
export function testData(name: string, shape: readonly number[], dtype: TestTensor['dtype']): Buffer {
  const numel = shape.reduce((product, size) => product * size, 1);
  let state = createHash('sha256').update(name).digest().readUInt32LE(0);
  const values = Array.from({ length: numel }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 30 - 2;
  });
  if (dtype === 'F32') return Buffer.from(Float32Array.from(values).buffer);
  const words = new Uint32Array(Float32Array.from(values).buffer);
  // The upper half of an fp32 is a bf16. With one bit of the exponent cleared, it is a finite fp16, too.
  const halves = Uint16Array.from(words, (word) => (word >>> 16) & (dtype === 'F16' ? 0xbbff : 0xffff));
  return Buffer.from(halves.buffer);
}

function paramsOf(document: Record<string, unknown>) {
  const { config, errors } = importConfig(document);
  if (config === null || errors.length > 0) throw new Error(JSON.stringify(errors));
  return modelParams(architectureOf(config));
}

/** Returns the data of every tensor of some safetensors files, by name. */
export function tensorsOf(files: Iterable<Buffer>): Record<string, Buffer> {
  const tensors = [...files].flatMap((file) => {
    const header = parseSafetensorsHeader(file);
    return header.tensors.map(
      ({ name, begin, end }) => [name, file.subarray(header.bytes + begin, header.bytes + end)] as const,
    );
  });
  return Object.fromEntries(tensors.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** @param folder prefix of every name, e.g. `./` */
export async function tarOf(files: Iterable<readonly [string, Uint8Array]>, folder = ''): Promise<Buffer> {
  const pack = tar.pack();
  for (const [name, content] of files) pack.entry({ name: folder + name }, Buffer.from(content));
  pack.finalize();
  const pieces: Uint8Array[] = [];
  for await (const piece of pack) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Returns a model record; `storeModel` stores its files. */
export function testModel(id: string): Model {
  return {
    id,
    name: 'test',
    description: '',
    model_type: 'llama',
    num_parameters: 1000,
    dtypes: ['bf16'],
    has_tokenizer: true,
    tokenizer: { vocab_size: 256, chat_template: null },
    bytes: 2000,
    digest: `sha256:${'0'.repeat(64)}`,
    files: [],
    ignored_files: [],
    project: 'default',
    config: TINY_CONFIG,
    created_at: new Date().toISOString(),
  };
}

/** Stores a folder as an upload does. */
export async function storeModel(
  objects: ObjectStore,
  id: string,
  files: FolderFiles,
): Promise<ModelWeights> {
  const weights = [...files]
    .filter(([name]) => name.endsWith('.safetensors'))
    .map(([file, content]) => {
      const chunks = new ChunkChecksums();
      chunks.add(content);
      const header = parseSafetensorsHeader(content);
      const tensors = header.tensors.map(({ name, dtype, shape, begin, end }) => ({
        param: name,
        dtype: dtype as WeightDtype,
        shape: [...shape],
        byte_begin: header.bytes + begin,
        byte_end: header.bytes + end,
      }));
      return { file, bytes: content.length, crc32c: chunks.finish(), tensors };
    });
  const encoded = encodeWeights(weights);
  for (const [name, content] of [...files, [WEIGHTS_FILE, encoded] as const])
    await objects.put(`${modelKey(id)}/${name}`, content);
  return parseWeights(encoded);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value, null, 2));
}
