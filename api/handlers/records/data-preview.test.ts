import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { DataPreview, Problem } from '../../../contracts/index.js';
import { modelFolder, tarOf } from '../../../formats/testing/models.js';
import { upload as uploadModel } from '../../testing/model-uploads.js';
import { startTestStack, withMethod } from '../../testing/stack.js';

const TEMPLATE =
  '{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}';
const chat = (question: string, answer: string) =>
  JSON.stringify({
    messages: [
      { role: 'user', content: question },
      { role: 'assistant', content: answer },
    ],
  });

t.test('the beginning of data', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const uploadData = async (content: string | Buffer, format: string) => {
    const url = `/v1/datasets?name=data&format=${format}`;
    const headers = { 'content-type': 'application/octet-stream' };
    const reply = await stack.request({ method: 'POST', url, headers, payload: content });
    t.equal(reply.statusCode, 201, reply.body);
    return reply.json<{ id: string }>().id;
  };
  const ask = (dataset: string, data: object = {}, rest: object = {}, train: object = {}) =>
    stack.request({
      method: 'POST',
      url: '/v1/data-preview',
      payload: {
        spec: {
          model: { preset: 'llama-tiny' },
          data: { dataset, ...data },
          train: { steps: 1, sequence_length: 16, ...train },
        },
        ...rest,
      },
    });
  const preview = async (...request: Parameters<typeof ask>) => {
    const reply = await ask(...request);
    t.equal(reply.statusCode, 200, reply.body);
    return reply.json<DataPreview>();
  };

  t.test('chats: the parts that are learned', async (t) => {
    const dataset = await uploadData([chat('Why?', 'Because.'), '', chat('é', 'ja'), ''].join('\n'), 'jsonl');
    const { read, texts } = await preview(dataset, { chat_template: TEMPLATE }, { texts: 1 });
    const asked = '<user>Why?</user>\n<assistant>';
    const answer = 'Because.</assistant>\n';
    t.strictSame(texts, [
      {
        parts: [
          { text: asked, learned: false },
          { text: answer, learned: true },
        ],
        is_shortened: false,
        tokens: asked.length + answer.length,
        targets: answer.length,
      },
    ]);
    const other = Buffer.byteLength('<user>é</user>\n<assistant>ja</assistant>\n');
    t.match(read, {
      share: 1,
      texts: 2,
      tokens: asked.length + answer.length + other,
      targets: answer.length + 'ja</assistant>\n'.length,
      long_texts: 2,
    });
  });

  t.test('chats that do not teach when to stop', async (t) => {
    const files = modelFolder().set(
      'tokenizer_config.json',
      Buffer.from(JSON.stringify({ eos_token: '</s>' })),
    );
    const { id: tokenizer } = (await uploadModel(stack, await tarOf(files))).json<{ id: string }>();
    const dataset = await uploadData(`${chat('why', 'because')}\n${chat('how', 'so')}\n`, 'jsonl');
    const warnings = async (turn: string) =>
      (await preview(dataset, { tokenizer, chat_template: `{% for m in messages %}${turn}{% endfor %}` }))
        .warnings;
    t.strictSame(await warnings('{% generation %}{{ m.content }}</s>{% endgeneration %}'), []);
    const marked = '{% generation %}{{ m.content }}{% endgeneration %}</s>';
    t.match(await warnings(marked), [
      { pointer: '/data/chat_template', code: 'no_stop_token', message: /^in 2 of 2 texts/ },
    ]);
  });

  t.test('a template that fails names the line', async (t) => {
    const dataset = await uploadData(`${chat('a', 'b')}\n${chat('bad', 'b')}\n`, 'jsonl');
    const chatTemplate = `{% if messages[0].content == 'bad' %}{{ raise_exception('no') }}{% endif %}${TEMPLATE}`;
    const reply = await ask(dataset, { chat_template: chatTemplate });
    t.match(reply.json<Problem>(), { code: 'chat_template_invalid', detail: /^line 2: / });
  });

  t.test('preferences: completions, and what is cut off', async (t) => {
    const pair = { prompt: 'Two and two is', chosen: ' four.', rejected: ' a very large number.' };
    const dataset = await uploadData(`${JSON.stringify(pair)}\n`, 'jsonl');
    const { read, texts } = await preview(
      dataset,
      {},
      {},
      { objective: { type: 'dpo' }, sequence_length: 24 },
    );
    t.strictSame(
      texts.map(({ parts, targets }) => [parts, targets]),
      [pair.chosen, pair.rejected].map((text) => [
        [
          { text: pair.prompt, learned: false },
          { text, learned: true },
        ],
        text.length,
      ]),
    );
    t.match(read, { texts: 2, long_texts: 1 });
  });

  t.test('completions without a label: they are learned, their prompts are not', async (t) => {
    const line = { prompt: 'Two and two is', completion: ' four.' };
    const dataset = await uploadData(
      `${JSON.stringify(line)}\n${JSON.stringify({ text: 'a b' })}\n`,
      'jsonl',
    );
    const { texts } = await preview(dataset);
    t.strictSame(
      texts.map(({ parts, targets }) => [parts, targets]),
      [
        [
          [
            { text: line.prompt, learned: false },
            { text: line.completion, learned: true },
          ],
          line.completion.length,
        ],
        [[{ text: 'a b', learned: true }], 2],
      ],
    );
  });

  t.test('a long text is read in part, and shown in part', async (t) => {
    const content = Buffer.from('äb'.repeat(200_000));
    const dataset = await uploadData(content, 'text');
    const { read, texts } = await preview(dataset);
    t.match(read, { share: (256 * 1024) / content.length, bytes: 256 * 1024, texts: 1, long_texts: 0 });
    // The last character was cut in the middle, and is not counted.
    t.equal(read?.tokens, 256 * 1024 - 1);
    t.match(texts, [{ is_shortened: true }]);
    t.equal(texts[0]?.parts[0]?.text, 'äb'.repeat(1000));
  });

  t.test('a line that is longer than what is read', async (t) => {
    const text = 'a'.repeat(300 * 1024);
    const dataset = await uploadData(
      [text, 'b'].map((text) => `${JSON.stringify({ text })}\n`).join(''),
      'jsonl',
    );
    t.match((await preview(dataset)).read, {
      texts: 1,
      tokens: text.length,
      targets: text.length - 1,
      long_texts: 1,
    });
  });

  t.test('what cannot be read', async (t) => {
    const missing = await ask(`ds_${'0'.repeat(26)}`);
    t.match(missing.json(), {
      status: 422,
      errors: [{ pointer: '/spec/data/dataset', code: 'dataset_not_found' }],
    });
    const spec = { model: { preset: 'llama-tiny' }, data: { uri: 's3://bucket/key' }, train: { steps: 1 } };
    const reply = await stack.request({ method: 'POST', url: '/v1/data-preview', payload: { spec } });
    t.strictSame(reply.json(), { read: null, texts: [], warnings: [] });
    const bad = await stack.request({
      method: 'POST',
      url: '/v1/data-preview',
      payload: { spec: { ...spec, train: {} } },
    });
    t.match(bad.json(), { status: 422, errors: [{ pointer: '/spec/train/steps', code: 'missing_field' }] });
  });
});

t.test('requests that wait for a thread hold no tokenizer', async (t) => {
  const [requests, threads] = [8, 4];
  let reading = 0;
  let most = 0;
  const stack = await startTestStack({
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'get', async (key, ...rest) => {
        if (!key.endsWith('/tokenizer.json')) return objects.get(key, ...rest);
        most = Math.max(most, ++reading);
        await sleep(20);
        return objects.get(key, ...rest).finally(() => (reading -= 1));
      }),
    }),
  });
  t.teardown(() => stack.close());
  const tokenizer = (await uploadModel(stack, await tarOf(modelFolder()))).json<{ id: string }>().id;
  const { id: dataset } = await stack.upload('to be or not to be');
  const spec = { model: { preset: 'llama-tiny' }, data: { dataset, tokenizer }, train: { steps: 1 } };
  const ask = () => stack.request({ method: 'POST', url: '/v1/data-preview', payload: { spec } });
  const replies = await Promise.all(Array.from({ length: requests }, ask));
  for (const reply of replies) t.equal(reply.statusCode, 200, reply.body);
  t.ok(most >= 1 && most < threads, `${most} at once`);
});
