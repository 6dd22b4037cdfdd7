import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { modelKey } from '../../../contracts/object-keys.js';
import { TINY_TOKENIZER } from '../../../formats/testing/models.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { testSpec } from '../../testing/start-message.js';
import { newGenerationConfig } from './generation-config.js';

const MODEL = 'mdl_01J00000000000000000000000';
const OTHER = 'mdl_01J00000000000000000000001';
const END = 26;
const TURN_END = 27;
const TOKENIZER = {
  ...TINY_TOKENIZER,
  added_tokens: [...TINY_TOKENIZER.added_tokens, { id: TURN_END, content: '<|end|>', special: true }],
};
const TEMPLATE = '{% for m in messages %}{{ m.content }}<|end|>{% endfor %}';

/** Returns what the export of a job has instead of the file of its source, `generation`, beside `config`. */
async function written(
  t: Test,
  given: {
    generation?: object;
    config?: object;
    chat_template?: string | null;
    tokenizer?: string;
    model?: string | null;
  },
): Promise<unknown> {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const { generation, config = {}, chat_template = TEMPLATE, tokenizer = MODEL, model = MODEL } = given;
  const put = (name: string, value: object, checkpoint = MODEL) =>
    objects.put(`${modelKey(checkpoint)}/${name}`, Buffer.from(JSON.stringify(value)));
  await put('config.json', config);
  if (generation) await put('generation_config.json', generation);
  for (const each of [MODEL, OTHER]) {
    await put('tokenizer.json', TOKENIZER, each);
    await put('tokenizer_config.json', { eos_token: '</s>' }, each);
  }
  const spec = testSpec({ data: { tokenizer, chat_template }, init_from: model === null ? null : { model } });
  const source = model === null ? null : modelKey(model);
  const text = await newGenerationConfig(objects, spec, { tokenizer, source });
  return text && JSON.parse(text);
}

t.test('generation stops where the turns of the training end', async (t) => {
  t.same(await written(t, { generation: { eos_token_id: 5, temperature: 0.6 } }), {
    eos_token_id: [5, END, TURN_END],
    temperature: 0.6,
  });
  t.same(await written(t, { generation: { eos_token_id: [TURN_END, END] } }), null, 'it does already');
  t.same(await written(t, { generation: { eos_token_id: END }, chat_template: null }), null, 'no chats');
  t.same(await written(t, { generation: {}, chat_template: null }), { eos_token_id: END });
});

t.test('without the file of a source, the tokens of its configuration stay', async (t) => {
  const config = { bos_token_id: 3, eos_token_id: 5, vocab_size: 99 };
  t.same(await written(t, { config }), { bos_token_id: 3, eos_token_id: [5, END, TURN_END] });
  t.same(await written(t, { config: { eos_token_id: END }, chat_template: null }), null);
  t.same(await written(t, { model: null }), { eos_token_id: [END, TURN_END] });
  t.same(await written(t, { generation: { eos_token_id: 5 }, tokenizer: OTHER }), {
    eos_token_id: [5, END, TURN_END],
  });
});
