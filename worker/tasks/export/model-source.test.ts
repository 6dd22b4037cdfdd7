import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { ResolvedJobSpec } from '../../../contracts/index.js';
import { modelKey } from '../../../contracts/object-keys.js';
import { TINY_TOKENIZER } from '../../../formats/testing/models.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { testSpec } from '../../testing/start-message.js';
import { companionsOf, tokenizerSource } from './model-source.js';

const MODEL = 'mdl_01J00000000000000000000000';
const OTHER = 'mdl_01J00000000000000000000001';
const CONFIG = JSON.stringify({ chat_template: 'its own', eos_token: '</s>' });
const GENERATION_CONFIG = JSON.stringify({ eos_token_id: 26 });
const tokenizerOf = (version: string) => JSON.stringify({ ...TINY_TOKENIZER, version });

/** Stores two models: one with all files, and one with only a tokenizer, whose files differ. */
async function setup(t: Test) {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const put = (model: string, name: string, text: string) =>
    objects.put(`${modelKey(model)}/${name}`, Buffer.from(text));
  await put(MODEL, 'config.json', '{}');
  await put(MODEL, 'generation_config.json', GENERATION_CONFIG);
  await put(MODEL, 'special_tokens_map.json', '{}');
  await put(MODEL, 'tokenizer.json', tokenizerOf(MODEL));
  await put(MODEL, 'tokenizer_config.json', CONFIG);
  await put(OTHER, 'tokenizer.json', tokenizerOf(OTHER));
  await put(OTHER, 'chat_template.jinja', 'of the file');
  return async (data: Partial<ResolvedJobSpec['data']>, model: string | null) => {
    const spec = testSpec({ data, init_from: model === null ? null : { model } });
    const files: Record<string, string> = {};
    for (const { name, content } of await companionsOf(objects, spec)) {
      const pieces: Uint8Array[] = [];
      for await (const piece of content()) pieces.push(piece);
      files[name] = Buffer.concat(pieces).toString();
    }
    return files;
  };
}

t.test('an export has the tokenizer of the training', async (t) => {
  const files = await setup(t);
  const all = {
    'generation_config.json': GENERATION_CONFIG,
    'special_tokens_map.json': '{}',
    'tokenizer.json': tokenizerOf(MODEL),
    'tokenizer_config.json': CONFIG,
  };
  t.strictSame(await files({ tokenizer: 'bytes' }, null), {});
  t.strictSame(
    await files({ tokenizer: 'bytes' }, MODEL),
    { 'generation_config.json': GENERATION_CONFIG },
    'the old tokenizer does not match byte tokens',
  );
  t.strictSame(await files({ tokenizer: null }, MODEL), all);
  t.strictSame(await files({ tokenizer: MODEL }, MODEL), all);
  const others = { 'chat_template.jinja': 'of the file', 'tokenizer.json': tokenizerOf(OTHER) };
  t.strictSame(await files({ tokenizer: OTHER }, null), others);
  t.strictSame(
    await files({ tokenizer: OTHER }, MODEL),
    { ...others, 'generation_config.json': GENERATION_CONFIG },
    'no file of the unused tokenizer is mixed with those of the other one',
  );
});

t.test("an export has the chat template of the training if it differs from the tokenizer's", async (t) => {
  const files = await setup(t);
  const template = async (tokenizer: string, chatTemplate: string | null) =>
    (await files({ tokenizer, chat_template: chatTemplate }, MODEL))['chat_template.jinja'];
  t.equal(await template(MODEL, 'another'), 'another');
  t.equal(await template(MODEL, 'its own'), undefined, 'it is in tokenizer_config.json');
  t.equal(await template(OTHER, 'of the file'), 'of the file');
  t.equal(await template(OTHER, 'another'), 'another');
  t.equal(await template('bytes', 'another'), undefined, 'useless without a tokenizer');
});

t.test('samples are drawn with the tokenizer of the training', async (t) => {
  const source = (tokenizer: string | null, model: string | null) =>
    tokenizerSource(testSpec({ data: { tokenizer }, init_from: model === null ? null : { model } }));
  t.equal(source('bytes', MODEL), null);
  t.equal(source(OTHER, MODEL), OTHER);
  t.equal(source(null, MODEL), MODEL);
  t.equal(source(null, null), null);
});
