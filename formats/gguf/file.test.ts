import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gguf } from '@huggingface/gguf';
import t from 'tap';
import {
  bool,
  dataBytes,
  float32,
  float32s,
  type GgufTensor,
  ggufHeader,
  int32s,
  paddingAfter,
  string,
  strings,
  tensorBytes,
  uint32,
} from './file.js';

const TENSORS: GgufTensor[] = [
  { name: 'a.weight', shape: [3, 5], type: 'F32' },
  { name: 'b.weight', shape: [2, 64], type: 'Q8_0' },
  { name: 'c.weight', shape: [2, 3, 4], type: 'BF16' },
  { name: 'd.bias', shape: [7], type: 'F16' },
];

t.test('another reader finds metadata and tensors', async (t) => {
  const header = ggufHeader(
    [
      ['general.architecture', string('llama')],
      ['llama.block_count', uint32(4_000_000_000)],
      ['llama.rope.freq_base', float32(0.5)],
      ['tokenizer.ggml.add_bos_token', bool(true)],
      ['tokenizer.ggml.tokens', strings(['a', '\u2581ä', ''])],
      ['tokenizer.ggml.merges', strings([])],
      ['tokenizer.ggml.token_type', int32s([1, -2])],
      ['tokenizer.ggml.scores', float32s([-1.5])],
    ],
    TENSORS,
  );
  t.equal(header.length % 32, 0);
  const file = join(t.testdir(), 'model.gguf');
  writeFileSync(file, Buffer.concat([header, Buffer.alloc(dataBytes(TENSORS))]));
  const { metadata, tensorInfos, tensorDataOffset } = await gguf(file, { allowLocalFile: true });
  t.match(metadata, {
    version: 3,
    'general.architecture': 'llama',
    'llama.block_count': 4_000_000_000,
    'llama.rope.freq_base': 0.5,
    'tokenizer.ggml.add_bos_token': true,
    'tokenizer.ggml.tokens': ['a', '\u2581ä', ''],
    'tokenizer.ggml.merges': [],
    'tokenizer.ggml.token_type': [1, -2],
    'tokenizer.ggml.scores': [-1.5],
  });
  t.equal(tensorDataOffset, BigInt(header.length));
  t.same(
    tensorInfos.map(({ name, shape, dtype, offset }) => [name, shape.map(Number), dtype, Number(offset)]),
    [
      ['a.weight', [5, 3], 0, 0],
      ['b.weight', [64, 2], 8, 64],
      ['c.weight', [4, 3, 2], 30, 64 + 160],
      ['d.bias', [7], 1, 64 + 160 + 64],
    ],
  );
});

t.test('each tensor is padded to 32 bytes', async (t) => {
  t.same(TENSORS.map(tensorBytes), [60, 136, 48, 14]);
  t.same(
    [0, 1, 31, 32, 33].map((bytes) => paddingAfter(bytes).length),
    [0, 31, 1, 0, 31],
  );
});
