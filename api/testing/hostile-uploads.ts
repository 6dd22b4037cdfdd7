/** Generators of hostile uploads: deep, large, many, or odd. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import tar from 'tar-stream';
import { modelFolder, TINY_CONFIG, TINY_TOKENIZER, tarOf } from '../../formats/testing/models.js';
import { protoField, sentencepiecePiece } from '../../formats/testing/sentencepiece.js';
import { zipArchive } from '../../formats/torch-file/zip-write.js';

const WEIGHTS = 'model.safetensors';
const PIECE_BYTES = 64 * 1024;

/** Yields pieces with event loop turns in between, like a connection. */
export async function* arriving(body: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    await nextTurn();
    yield body.subarray(at, at + PIECE_BYTES);
  }
}

/** Nested lists. */
export const nested = (bytes: number): Buffer =>
  Buffer.concat([Buffer.alloc(bytes / 2, '['), Buffer.alloc(bytes / 2, ']')]);

/** Empty lists in a list. */
export const lists = (bytes: number): Buffer =>
  Buffer.concat([Buffer.from('['), Buffer.alloc(bytes, '[],'), Buffer.from('1]')]);

/** A safetensors file. @param length declared length of its header */
export function withHeader(
  json: Buffer,
  data = Buffer.alloc(0),
  length: number | bigint = json.length,
): Buffer {
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(BigInt(length));
  return Buffer.concat([start, json, data]);
}

/** Empty tensors with names of output projections, followed by a large tensor. */
export function emptyTensors(count: number, dataBytes: number): Buffer {
  const names = Array.from({ length: count }, (_, i) => `x${i}.lm_head.weight`);
  const empty = names.map((name) => `"${name}":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`);
  const last = `"w":{"dtype":"F32","shape":[${dataBytes / 4}],"data_offsets":[0,${dataBytes}]}`;
  return withHeader(Buffer.from(`{${[...empty, last].join()}}`), Buffer.alloc(dataBytes));
}

/** A large but otherwise valid tokenizer. */
export function largeTokenizer(words: number): Buffer {
  const vocab = Object.fromEntries(Array.from({ length: words }, (_, id) => [`word${id}`, id]));
  const model = { ...TINY_TOKENIZER.model, vocab, merges: [] };
  return Buffer.from(JSON.stringify({ ...TINY_TOKENIZER, added_tokens: [], model }));
}

/** A folder with a `tokenizer.model` of BPE. */
function sentencepiece(texts: readonly string[], type = 1): Promise<Buffer> {
  const pieces = texts.map((text, id) => sentencepiecePiece(text, type, -id));
  const bpe = protoField(2, Buffer.of(24, 2));
  const model = Buffer.concat([sentencepiecePiece('<unk>', 2), ...pieces, bpe]);
  return tarOf([...modelFolder()].map(withSentencepiece(model)));
}

function withSentencepiece(model: Buffer): (file: [string, Buffer]) => [string, Buffer] {
  return ([name, content]) => (name === 'tokenizer.json' ? ['tokenizer.model', model] : [name, content]);
}

/** A PyTorch file with many dicts. */
export async function manyDicts(count: number): Promise<Buffer> {
  const pickle = Buffer.concat([Buffer.from([0x80, 2]), Buffer.alloc(count, '}'), Buffer.from('.')]);
  const entries = [
    { name: 'a/data.pkl', content: pickle },
    { name: 'a/version', content: Buffer.from('3\n') },
  ].map(({ name, content }) => ({ name, bytes: content.length, content: [content] }));
  const parts: Uint8Array[] = [];
  for await (const part of zipArchive(entries)) parts.push(part);
  return Buffer.concat(parts);
}

/** A configuration with the maximum number of parameters. */
export const MANY_EXPERTS = {
  ...TINY_CONFIG,
  architectures: ['MixtralForCausalLM'],
  model_type: 'mixtral',
  num_hidden_layers: 256,
  num_local_experts: 256,
};

export function configFile(document: object): [string, Buffer] {
  return ['config.json', Buffer.from(JSON.stringify(document))];
}

/** An archive with entries that are not plain files. */
async function oddTar(headers: (tar.Headers & { content?: Buffer })[]): Promise<Buffer> {
  const pack = tar.pack();
  for (const { content, ...header } of headers) pack.entry(header, content ?? Buffer.alloc(0));
  pack.finalize();
  const pieces: Uint8Array[] = [];
  for await (const piece of pack) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** An entry with a wrong declared size and a correct checksum. */
export function tarWithDeclaredSize(size: string, archive: Buffer): Buffer {
  const changed = Buffer.from(archive);
  changed.write(size.padEnd(12, '\0'), 124, 'latin1');
  changed.fill(' ', 148, 156);
  const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return changed;
}

const tensor = (shape: unknown, dataOffsets: unknown, dtype = 'F32') =>
  `"model.norm.weight":{"dtype":${JSON.stringify(dtype)},"shape":${JSON.stringify(shape)},"data_offsets":${JSON.stringify(dataOffsets)}}`;
const weights = (json: string, bytes = 0) =>
  tarOf([configFile(TINY_CONFIG), [WEIGHTS, withHeader(Buffer.from(json), Buffer.alloc(bytes))]]);
const numbers = (value: number) => ({
  ...TINY_CONFIG,
  ...Object.fromEntries(
    Object.entries(TINY_CONFIG).flatMap(([name, given]) =>
      typeof given === 'number' ? [[name, value]] : [],
    ),
  ),
});

/** Invalid bodies of `POST /v1/models`, by description. @param bytes approximate size of the body */
export const HOSTILE_MODELS: Readonly<Record<string, (bytes: number) => Promise<Buffer>>> = {
  'tokenizer of brackets in brackets': (bytes) => tarOf([['tokenizer.json', nested(bytes)]]),
  'tokenizer of lists': (bytes) => tarOf([['tokenizer.json', lists(bytes)]]),
  'tokenizer of words': (bytes) => tarOf([['tokenizer.json', largeTokenizer(Math.ceil(bytes / 20))]]),
  'SentencePiece model of long pieces': () =>
    sentencepiece(Array.from({ length: 1024 }, (_, id) => 'a'.repeat(id + 1))),
  'SentencePiece model of symbols': (bytes) =>
    sentencepiece(
      Array.from({ length: Math.ceil(bytes / 20) + 5000 }, (_, id) => `s${id}`),
      4,
    ),
  'SentencePiece model of empty pieces': (bytes) =>
    tarOf([...modelFolder()].map(withSentencepiece(Buffer.alloc(bytes & ~1, Buffer.of(10, 0))))),
  'tokenizer configuration of lists': (bytes) => tarOf([['tokenizer_config.json', lists(bytes)]]),
  'index of lists': (bytes) => tarOf([['model.safetensors.index.json', lists(bytes)]]),
  'chat template of braces': (bytes) =>
    tarOf([
      ['tokenizer.json', largeTokenizer(10)],
      ['chat_template.jinja', Buffer.alloc(bytes, '{%if a%}')],
    ]),
  'configuration of brackets in brackets': (bytes) => tarOf([['config.json', nested(bytes)]]),
  'configuration of huge numbers': () => tarOf([configFile(numbers(2 ** 53 - 1))]),
  'configuration of many experts': () => tarOf([configFile(MANY_EXPERTS)]),
  'configuration of many layers': () => tarOf([configFile({ ...TINY_CONFIG, num_hidden_layers: 2 ** 31 })]),
  'header of brackets in brackets': (bytes) =>
    tarOf([[WEIGHTS, withHeader(Buffer.concat([Buffer.from('{"a":'), nested(bytes)]))]]),
  'header of lists': (bytes) =>
    tarOf([[WEIGHTS, withHeader(Buffer.concat([Buffer.from('{"a":'), lists(bytes), Buffer.from('}')]))]]),
  'header that says it is endless': (bytes) =>
    tarOf([[WEIGHTS, withHeader(Buffer.alloc(bytes, '{"a":'), Buffer.alloc(0), 2n ** 64n - 1n)]]),
  'header longer than its file': (bytes) =>
    tarOf([[WEIGHTS, withHeader(Buffer.alloc(bytes, ' '), Buffer.alloc(0), bytes + 1)]]),
  'empty tensors': (bytes) =>
    tarOf([[WEIGHTS, emptyTensors(Math.ceil(bytes / 80), 4096)], configFile(TINY_CONFIG)]),
  'tensors of endless shapes': () => weights(`{${tensor([2 ** 53 - 1, 2 ** 53 - 1], [0, 4])}}`, 4),
  'tensors of negative sizes': () => weights(`{${tensor([-32], [0, -128])}}`),
  'tensors beyond the file': () => weights(`{${tensor([32], [2 ** 52, 2 ** 52 + 128])}}`, 128),
  'tensor of a thousand dimensions': () => weights(`{${tensor(Array(1000).fill(1), [0, 4])}}`, 4),
  'tensor twice': () => weights(`{${tensor([32], [0, 128])},${tensor([32], [0, 128])}}`, 128),
  'pickle of dicts': async (bytes) => tarOf([['zero/w/fp32.pt', await manyDicts(bytes)]]),
  'archive of zeros': async (bytes) => Buffer.alloc(bytes),
  'archive that is compressed': async (bytes) => gzipSync(Buffer.alloc(bytes)),
  'archive of empty files': (bytes) =>
    tarOf(Array.from({ length: Math.ceil(bytes / 512) }, (_, i) => [`${i}.bin`, Buffer.alloc(0)] as const)),
  'archive of checkpoints of nothing': (bytes) =>
    tarOf(
      Array.from(
        { length: Math.ceil(bytes / 512) },
        (_, i) => [`zero/${i}/fp32.pt`, Buffer.alloc(0)] as const,
      ),
    ),
  'archive with a long name': (bytes) => oddTar([{ name: 'a'.repeat(bytes), size: 0 }]),
  'archive with a link': () => oddTar([{ name: 'config.json', type: 'symlink', linkname: '/etc/passwd' }]),
  'archive with a device': () => oddTar([{ name: 'config.json', type: 'character-device' }]),
  'archive that leavesFolder': (bytes) =>
    oddTar([{ name: '../../config.json', content: Buffer.alloc(bytes) }]),
  'archive with a file that is cut': async (bytes) =>
    (await tarOf([['config.json', Buffer.alloc(bytes)]])).subarray(0, 512 + bytes / 2),
  'archive with an endless file': async (bytes) =>
    tarWithDeclaredSize('77777777777', await tarOf([['config.json', Buffer.alloc(bytes, ' ')]])),
  'archive with a file of a negative size': async (bytes) =>
    tarWithDeclaredSize('-0000000001', await tarOf([['model.safetensors', Buffer.alloc(bytes, ' ')]])),
  'archive with a file of a binary size': async (bytes) =>
    tarWithDeclaredSize(
      '\x80'.padEnd(12, '\xff'),
      await tarOf([['model.safetensors', Buffer.alloc(bytes, ' ')]]),
    ),
  'archive with a file twice': () => tarOf([configFile(TINY_CONFIG), configFile(TINY_CONFIG)]),
};
