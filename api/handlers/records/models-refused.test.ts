/** Invalid model folders: each is refused with its error and leaves nothing behind. */
import { Readable } from 'node:stream';
import t from 'tap';
import tar from 'tar-stream';
import type { Problem } from '../../../contracts/index.js';
import {
  type FolderFiles,
  modelFolder,
  safetensorsFile,
  TINY_CONFIG,
  tarOf,
  testData,
} from '../../../formats/testing/models.js';
import { tarWithDeclaredSize } from '../../testing/hostile-uploads.js';
import { storedKeys, upload } from '../../testing/model-uploads.js';
import { startTestStack } from '../../testing/stack.js';

const LIMIT = 4_000_000;

/** An archive of a folder after a change that breaks it. */
function brokenArchive(change: (files: FolderFiles) => void, shards = 2): Promise<Buffer> {
  const files = modelFolder({ shards });
  change(files);
  return tarOf(files);
}

const withConfig = (changes: object) =>
  brokenArchive((files) =>
    files.set('config.json', Buffer.from(JSON.stringify({ ...TINY_CONFIG, ...changes }))),
  );

const NORM = 'model.norm.weight';
const norm = (size: number, dtype: 'BF16' | 'F32' = 'BF16') => ({
  name: NORM,
  dtype,
  shape: [size],
  data: testData(NORM, [size], dtype),
});
const FIRST = 'model-00001-of-00002.safetensors';
const SECOND = 'model-00002-of-00002.safetensors';

t.test('models that are refused', async (t) => {
  const stack = await startTestStack({ limits: { model_bytes: LIMIT } });
  t.teardown(() => stack.close());

  const good = await tarOf(modelFolder());
  const index = (change: (map: Record<string, string>) => void) =>
    brokenArchive((files) => {
      const name = 'model.safetensors.index.json';
      const { weight_map } = JSON.parse(String(files.get(name)));
      change(weight_map);
      files.set(name, Buffer.from(JSON.stringify({ weight_map })));
    });
  const link = async () => {
    const pack = tar.pack();
    pack.entry({ name: 'config.json', type: 'symlink', linkname: '/etc/passwd' });
    pack.finalize();
    const pieces: Uint8Array[] = [];
    for await (const piece of pack) pieces.push(piece);
    return Buffer.concat(pieces);
  };
  /** An archive with a long name that never ends. */
  const endlessName = () => {
    const header = Buffer.from(good.subarray(0, 512));
    header.write('77777777777\0', 124);
    header.write('L', 156);
    header.write('        ', 148);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return Buffer.concat([header, Buffer.alloc(LIMIT / 2, 'a')]);
  };
  const refused: [string, Buffer, string, RegExp][] = [
    ['nothing', Buffer.alloc(0), 'model_file_missing', /no config.json/],
    ['no archive', Buffer.alloc(5000, 'x'), 'model_archive_invalid', /can't be read/],
    ['a truncated archive', good.subarray(0, 5000), 'model_archive_invalid', /can't be read/],
    ['a long name without an end', endlessName(), 'model_archive_invalid', /outside of any file/],
    ['a link', await link(), 'model_archive_invalid', /config.json" is a symlink.*tar -h/],
    ['a path with ..', await tarOf(modelFolder(), '../'), 'model_archive_invalid', /not a relative path/],
    ['an absolute path', await tarOf(modelFolder(), '/etc/'), 'model_archive_invalid', /not a relative path/],
    [
      'a file of a negative size',
      tarWithDeclaredSize('-0000000001', good),
      'model_archive_invalid',
      /has an invalid size/,
    ],
    [
      'a file of a huge size',
      tarWithDeclaredSize(`\x80${'\xff'.repeat(11)}`, good),
      'model_archive_invalid',
      /has an invalid size/,
    ],
    ['a file twice', await tarOf([...modelFolder(), ...modelFolder()]), 'model_archive_invalid', /twice/],
    [
      'too much',
      await tarOf([['a.bin', Buffer.alloc(LIMIT)], ...modelFolder()]),
      'model_too_large',
      /at most/,
    ],
    [
      'no configuration',
      await brokenArchive((files) => files.delete('config.json')),
      'model_file_missing',
      /config.json/,
    ],
    [
      'no weights',
      await brokenArchive((files) => [FIRST, SECOND].map((name) => files.delete(name))),
      'model_file_missing',
      /safetensors/,
    ],
    ...(await Promise.all(
      (
        [
          ['config.json', 'model_config_invalid'],
          ['model.safetensors.index.json', 'model_index_mismatch'],
          ['tokenizer.json', 'tokenizer_invalid'],
          ['tokenizer_config.json', 'tokenizer_invalid'],
          ['chat_template.jinja', 'tokenizer_invalid'],
          ['generation_config.json', 'model_archive_invalid'],
          ['special_tokens_map.json', 'tokenizer_invalid'],
        ] as const
      ).map(async ([name, code]): Promise<[string, Buffer, string, RegExp]> => {
        const marked = (files: FolderFiles) =>
          files.set(name, Buffer.from(`\uFEFF${files.get(name) ?? '{}'}`));
        return [
          `a byte order mark in ${name}`,
          await brokenArchive(marked),
          code,
          /begins with a byte order mark/,
        ];
      }),
    )),
    [
      'a configuration that is not JSON',
      await brokenArchive((files) => files.set('config.json', Buffer.from('{'))),
      'model_config_invalid',
      /not JSON/,
    ],
    [
      'a field twice',
      await brokenArchive((files) => files.set('config.json', Buffer.from('{"a":1,"a":2}'))),
      'model_config_invalid',
      /"a" twice/,
    ],
    ['an unknown family', await withConfig({ model_type: 'rwkv' }), 'model_config_invalid', /model_type/],
    [
      'a tokenizer that is not JSON',
      await brokenArchive((files) => files.set('tokenizer.json', Buffer.from('['))),
      'tokenizer_invalid',
      /tokenizer.json is not JSON/,
    ],
    [
      'a tokenizer configuration that is not an object',
      await brokenArchive((files) => files.set('tokenizer_config.json', Buffer.from('[]'))),
      'tokenizer_invalid',
      /tokenizer_config.json is not a JSON object/,
    ],
    [
      'an unsupported tokenizer',
      await brokenArchive((files) => files.set('tokenizer.json', Buffer.from('{"model":{"vocab":{"a":0}}}'))),
      'tokenizer_invalid',
      /tokenizer.json can't be used/,
    ],
    [
      'a tokenizer.model that is no model of SentencePiece',
      await brokenArchive((files) =>
        files.set('tokenizer.model', Buffer.from('not one')).delete('tokenizer.json'),
      ),
      'tokenizer_invalid',
      /^tokenizer.model is no readable SentencePiece model: .*upload the tokenizer.json/,
    ],
    [
      'a chat template that is not UTF-8',
      await brokenArchive((files) => files.set('chat_template.jinja', Buffer.from([0xff]))),
      'tokenizer_invalid',
      /chat_template.jinja is not UTF-8/,
    ],
    [
      'a missing tensor',
      await withConfig({ num_hidden_layers: 3 }),
      'model_tensor_missing',
      /model.layers.2.*\(and 8 more\)/,
    ],
    [
      'an unexpected tensor',
      await withConfig({ num_hidden_layers: 1 }),
      'model_tensor_unexpected',
      /"model.layers.1/,
    ],
    [
      'another shape',
      await withConfig({ intermediate_size: 66 }),
      'model_tensor_mismatch',
      /\[64,32\]; config.json requires \[66,32\]/,
    ],
    [
      'a tensor in two files',
      await brokenArchive((files) =>
        files.set('model.safetensors', safetensorsFile([norm(32)])).delete('model.safetensors.index.json'),
      ),
      'model_tensor_unexpected',
      /is also in/,
    ],
    [
      'a dtype that is not a float',
      await brokenArchive((files) =>
        files.set(
          'model.safetensors',
          Buffer.from(
            safetensorsFile([norm(32)])
              .toString('latin1')
              .replace('BF16', 'I16 ')
              .replace('"I16 "', '"I16" '),
            'latin1',
          ),
        ),
      ),
      'model_tensor_mismatch',
      /is of I16; supported are F32, BF16, F16/,
    ],
    [
      'a truncated shard',
      await brokenArchive((files) => files.set(SECOND, files.get(SECOND)!.subarray(0, -2))),
      'safetensors_invalid',
      /model-00002-of-00002.safetensors: tensor ".*" ends at byte/,
    ],
    [
      'an empty shard',
      await brokenArchive((files) => files.set(SECOND, Buffer.alloc(0))),
      'safetensors_invalid',
      /ends after 0 bytes/,
    ],
    [
      'a shard with a wrong header',
      await brokenArchive((files) =>
        files.set(SECOND, Buffer.concat([Buffer.from('ffffff7f00000000', 'hex'), Buffer.alloc(90)])),
      ),
      'safetensors_invalid',
      /declares a header of/,
    ],
    [
      'an index with an extra tensor',
      await index((map) => (map['model.extra.weight'] = FIRST)),
      'model_index_mismatch',
      /"model.extra.weight" is in model-00001-of-00002.safetensors; it is not/,
    ],
    [
      'an index that lacks a tensor',
      await index((map) => delete map[NORM]),
      'model_index_mismatch',
      /"model.norm.weight" is not where the index says \(nowhere\)/,
    ],
    [
      'an index with wrong files',
      await index((map) => (map[NORM] = map[NORM] === FIRST ? SECOND : FIRST)),
      'model_index_mismatch',
      /model.norm.weight/,
    ],
    [
      'an index of a missing file',
      await index((map) => (map[NORM] = '../../secret')),
      'model_file_missing',
      /which is missing/,
    ],
  ];
  for (const [name, archive, code, detail] of refused) {
    t.test(`refused without leftovers: ${name}`, async (t) => {
      const before = await storedKeys(stack);
      const reply = await upload(stack, Readable.from([archive]));
      t.match(reply.json<Problem>(), { code, detail });
      t.strictSame(await storedKeys(stack), before);
    });
  }
});
