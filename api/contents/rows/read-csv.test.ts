import t from 'tap';
import { type CsvHeader, readCsv } from './read-csv.js';

const read = (text: string | Buffer, columns: string[], newline: CsvHeader['newline'] = '\n') => {
  const { bytes, ...counts } = readCsv({ bytes: Buffer.from(text), first_line: 2, columns, newline });
  return { lines: Buffer.from(bytes).toString().trimEnd().split('\n'), ...counts };
};

const PAIR = ['prompt', 'completion', 'label'];

t.test('rows become documents; other columns and empty cells are left out', async (t) => {
  t.match(read('a,1\n"b, ""c""\né",2\n\n', ['text', 'id']), {
    lines: ['{"text": "a"}', '{"text": "b, \\"c\\"\\né"}'],
    num_documents: 2,
  });
  t.match(read('p,c,True\r\nq,d,0', ['prompt', 'completion', 'label'], '\r\n'), {
    lines: [
      '{"prompt": "p", "completion": "c", "label": true}',
      '{"prompt": "q", "completion": "d", "label": false}',
    ],
    num_labelled: 2,
  });
  const messages = '[{""role"": ""user"", ""content"": 1e2},\n{""role"": ""assistant"", ""content"": ""b""}]';
  const chat = messages.replace('1e2', '""a""');
  t.match(read(`"${chat}",\n,t\n`, ['messages', 'text']), {
    lines: [
      '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}',
      '{"text": "t"}',
    ],
    num_documents: 2,
    num_chats: 1,
  });
  t.match(read('a,b,c\nd,,e', ['instruction', 'input', 'output']), {
    lines: ['{"instruction": "a", "input": "b", "output": "c"}', '{"instruction": "d", "output": "e"}'],
    num_chats: 2,
  });
  t.match(read('p,c,r', ['prompt', 'chosen', 'rejected']), { num_preferences: 1 });
  t.match(read('p,c,\nq,d,1', PAIR), { num_documents: 2, num_labelled: 1, num_chats: 0 });
});

const REFUSED: [string, string | Buffer, string[], RegExp][] = [
  ['another number of cells', 'a\n"b\nc"\nd,e\n', ['text'], /^line 5: it has 2 cells, and the header has 1/],
  ['a quote that is not closed', 'a\n"b', ['text'], /^line 3: a quoted cell has no closing quote/],
  ['text behind a closing quote', 'a,1\n"b"c,d\n', ['text', 'id'], /^line 3: a quoted cell continues/],
  ['a label', '"p\n",c,yes', PAIR, /^line 2: column "label": it must be true or false.*"yes"/],
  [
    'messages that are no JSON',
    "[{'role': 'user'}]",
    ['messages'],
    /^line 2: column "messages": it is not JSON/,
  ],
  [
    'messages with a line end in a string',
    '"[""a\nb""]"',
    ['messages'],
    /^line 2: column "messages": it is not JSON/,
  ],
  ['messages without an answer', '[]', ['messages'], /^line 2: no message has the role/],
  [
    'two kinds of documents',
    'a,b,c',
    ['text', 'prompt', 'chosen'],
    /^line 2: an object must have exactly one/,
  ],
  ['bytes that are not UTF-8', Buffer.from('a\n"\n\xff"\n', 'latin1'), ['text'], /^line 4: it is not UTF-8/],
];
for (const [name, text, columns, message] of REFUSED)
  t.test(`refused: ${name}`, async (t) => {
    t.throws(() => read(text, columns), { code: 'dataset_line_invalid', message });
  });
