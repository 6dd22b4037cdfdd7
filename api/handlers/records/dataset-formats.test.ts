/** Datasets of JSONL and of tokens, from the upload to a job that uses them. */
import { Readable } from 'node:stream';
import t from 'tap';
import { type Dataset, datasetKey, type Job, type Problem } from '../../../contracts/index.js';
import { tokenFile } from '../../../formats/testing/tokens.js';
import { DEFAULT_CHAT_TEMPLATE } from '../../../job-document/index.js';
import { smallSpec, startTestStack } from '../../testing/stack.js';

const OCTETS = { 'content-type': 'application/octet-stream' };

t.test('formats of datasets', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const upload = (
    payload: string | Buffer | Readable,
    format: string,
    headers: Record<string, string> = OCTETS,
  ) => stack.request({ method: 'POST', url: `/v1/datasets?name=x&format=${format}`, headers, payload });
  const storedKeys = async () => {
    const keys: string[] = [];
    for await (const object of stack.objects.list('')) keys.push(object.key);
    return keys;
  };

  const chat = '{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}';
  t.test('lines are counted, with any media type of a stream', async (t) => {
    const body = `{"text": "世界"}\n\n${chat}\n`;
    for (const type of [
      'application/x-ndjson',
      'application/jsonl',
      'text/plain',
      'application/octet-stream',
    ]) {
      const reply = await upload(body, 'jsonl', { 'content-type': type });
      t.equal(reply.statusCode, 201, reply.body);
      const dataset = reply.json<Dataset>();
      const bytes = Buffer.byteLength(body);
      t.match(dataset, {
        format: 'jsonl',
        bytes,
        num_documents: 2,
        num_chats: 1,
        num_tokens: null,
        max_token: null,
      });
      t.same(await stack.objects.get(datasetKey(dataset.id)), Buffer.from(body));
    }
  });

  t.test('a token file is counted', async (t) => {
    const file = tokenFile([5, 300, 7]);
    const reply = await upload(file, 'tokens');
    t.equal(reply.statusCode, 201, reply.body);
    const dataset = reply.json<Dataset>();
    t.match(dataset, { format: 'tokens', num_documents: 1, num_chats: 0, num_tokens: 3, max_token: 300 });
    t.ok((await stack.objects.get(datasetKey(dataset.id))).equals(file));
  });

  const unreadable: [string, string, Buffer | Readable, string, RegExp][] = [
    [
      'a bad line',
      'jsonl',
      Buffer.from(`${chat}\n{"text": 3}\n`),
      'dataset_line_invalid',
      /^line 2: "text" must/,
    ],
    [
      'a bad line after a stored part',
      'jsonl',
      Readable.from([Buffer.from(`${chat}\n`.repeat(700)), Buffer.from('oh')]),
      'dataset_line_invalid',
      /^line 701: it is not JSON/,
    ],
    ['no lines', 'jsonl', Buffer.from('\n\n'), 'dataset_empty', /has no document/],
    [
      'a truncated token file',
      'tokens',
      tokenFile([1, 2]).subarray(0, 60),
      'dataset_tokens_invalid',
      /ends after 60/,
    ],
    ['a text as tokens', 'tokens', Buffer.from('x'.repeat(99)), 'dataset_tokens_invalid', /header/],
  ];
  for (const [name, format, payload, code, detail] of unreadable) {
    t.test(`refused without leftovers: ${name}`, async (t) => {
      const before = await storedKeys();
      const reply = await upload(payload, format);
      t.equal(reply.statusCode, 422);
      t.match(reply.json<Problem>(), { code, detail });
      t.same(await storedKeys(), before);
    });
  }

  t.test('requirements of a job on its dataset', async (t) => {
    const store = async (format: string, body: string | Buffer) =>
      (await upload(body, format)).json<Dataset>().id;
    const create = async (dataset: string, data: object = {}) => {
      const payload = { ...smallSpec(dataset), data: { dataset, ...data } };
      return stack.request({ method: 'POST', url: '/v1/jobs', payload });
    };
    const refusal = async (dataset: string, data?: object) => {
      const { errors } = (await create(dataset, data)).json<Problem>();
      return errors.map(({ pointer, code }) => `${pointer} ${code}`).join();
    };
    const chats = await store('jsonl', chat);
    t.match((await create(chats)).json<Job>(), {
      spec: { data: { chat_template: DEFAULT_CHAT_TEMPLATE } },
      warnings: [{ pointer: '/data/chat_template', code: 'default_chat_template' }],
    });
    t.equal(await refusal(chats, { chat_template: '' }), '/data/chat_template wrong_length');
    t.equal(
      await refusal(chats, { chat_template: '{% for %}' }),
      '/data/chat_template chat_template_invalid',
    );
    t.equal(await refusal(chats, { tokenizer: 'words' }), '/data/tokenizer wrong_format');
    const chatTemplate = '{% for m in messages %}{{ m.content }}{% endfor %}';
    t.match((await create(chats, { chat_template: chatTemplate })).json<Job>().spec.data, {
      tokenizer: 'bytes',
      chat_template: chatTemplate,
      packing: 'whole',
    });
    const small = await store('tokens', tokenFile([0, 255]));
    t.match((await create(small)).json<Job>().spec.data, { tokenizer: null, packing: 'split' });
    t.equal(await refusal(await store('tokens', tokenFile([0, 256]))), '/data/dataset vocab_too_small');
  });
});
