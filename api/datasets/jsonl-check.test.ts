import fc from 'fast-check';
import t from 'tap';
import { MAX_LINE_BYTES } from '../../contracts/jsonl/line.js';
import { checkLines } from '../contents/check-lines.js';
import { JsonlCheck } from './jsonl-check.js';

async function check(body: string | Buffer, cuts: readonly number[] = []) {
  const bytes = Buffer.from(body);
  const borders = [
    0,
    ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ];
  const lines = new JsonlCheck(async (batch) => checkLines(batch));
  for (let index = 1; index < borders.length; index += 1) {
    const piece = Uint8Array.from(bytes.subarray(borders[index - 1], borders[index]));
    await lines.push(piece);
    piece.fill(0x7b);
  }
  return lines.end();
}

const CHAT =
  '{"messages": [{"role": "user", "content": "é"}, {"role": "assistant", "content": ""}], "id": 3}';

t.test('documents are counted independently of chunk borders', async (t) => {
  const body = `{"text": "世界"}\n\n  \r\n${CHAT}\r\n{"text": "a\\nb"}`;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat()), async (cuts) => {
      t.same(await check(body, cuts), {
        num_documents: 3,
        num_chats: 1,
        num_preferences: 0,
        num_labelled: 0,
        num_prompts: 0,
        num_tokens: null,
        max_token: null,
      });
    }),
  );
  t.equal((await check(`${body}\n`)).num_documents, 3);
});

t.test('prompts are counted, also with a label for graders', async (t) => {
  const lines = [
    { prompt: '2+2=', answer: '4' },
    { prompt: 'Buy now!', label: 'spam' },
    { messages: [{ role: 'user', content: 'a' }], answer: 'b' },
  ];
  t.match(await check(lines.map((line) => JSON.stringify(line)).join('\n')), {
    num_documents: 3,
    num_chats: 1,
    num_prompts: 3,
  });
});

t.test('preferences are counted; those of messages are chats', async (t) => {
  const user = { role: 'user', content: 'a' };
  const answer = { role: 'assistant', content: 'b' };
  const lines = [
    { prompt: 'a', chosen: 'b', rejected: 'c' },
    { prompt: [user], chosen: [answer], rejected: [answer] },
    { input: { messages: [user] }, preferred_output: [answer], non_preferred_output: [answer] },
    { prompt: 'a', completion: 'b', label: true },
    { prompt: [user], completion: [answer], label: false },
  ];
  t.match(await check(lines.map((line) => JSON.stringify(line)).join('\n')), {
    num_documents: 5,
    num_chats: 3,
    num_preferences: 3,
    num_labelled: 2,
    num_prompts: 0,
  });
});

const REFUSED: [string, string | Buffer, RegExp][] = [
  ['no UTF-8', Buffer.from([0x0a, 0x22, 0xc3, 0x22, 0x0a]), /^line 2: it is not UTF-8/],
  ['no JSON', '{"text": "a"}\n{"text": }', /^line 2: it is not JSON .*every line must be one whole object/],
  ['a byte order mark', '\uFEFF{"text": "a"}', /^line 1: it begins with a byte order mark/],
  ['two lines in one', '{"text": "a"}{"text": "b"}', /^line 1: it is not JSON/],
  ['no object', '\n\n[1]', /^line 3: it is JSON, but not an object/],
  ['null', 'null', /not an object/],
  ['neither field', '{"txt": "a"}', /^line 1: .*this one has only "txt"; write/],
  ['both fields', `{"text": "a", "messages": []}`, /this one has "text" and "messages"/],
  ['a text that is a number', '{"text": 3}', /"text" must be a string/],
  ['an empty text', '{"text": ""}', /"text" is empty; leave the line out/],
  ['messages that are not a list', '{"messages": {}}', /must be a list/],
  [
    'a message that is null',
    '{"messages": [null]}',
    /message 0 must be an object with a "role" and a "content"/,
  ],
  [
    'a part without a type',
    '{"messages": [{"role": "user", "content": [{}]}]}',
    /part 0 of "content" of message 0 has the type undefined/,
  ],
  [
    'tools that are not a list',
    '{"messages": [{"role": "assistant", "content": "a"}], "tools": {}}',
    /"tools" must be a list of objects/,
  ],
  [
    'a tool that is a text',
    `{"messages": [{"role": "assistant", "content": "a"}], "tools": ["f"]}`,
    /"tools" must be a list of objects/,
  ],
  [
    'a call that is a text',
    '{"messages": [{"role": "assistant", "tool_calls": ["f"]}]}',
    /"tool_calls" of message 0 must be a list of objects/,
  ],
  [
    'neither content nor a call',
    '{"messages": [{"role": "assistant", "content": null, "tool_calls": []}]}',
    /"content" of message 0 must be a string or a list of parts/,
  ],
  [
    'a pair without a second completion',
    '{"text": "a"}\n{"prompt": "a", "chosen": "b"}',
    /^line 2: "rejected" must be a string/,
  ],
  ['brackets in brackets', `{"text": "a"}\n${'['.repeat(1_000_000)}`, /^line 2: it is nested deeper than/],
  ['lists without end', `{"text": "a", "x": [${'[],'.repeat(1_000_000)}1]}`, /^line 1: it has more than/],
  ['a line that is too long', `{"text": "${'a'.repeat(MAX_LINE_BYTES)}"}`, /^line 1: it has more than/],
];
for (const [name, body, message] of REFUSED)
  t.test(`refused with its number: ${name}`, async (t) => {
    await t.rejects(check(body), { code: 'dataset_line_invalid', message });
  });

t.test('a body without a document is empty', async (t) => {
  for (const body of ['', '\n', ' \n\t\n']) await t.rejects(check(body), { code: 'dataset_empty' });
});
