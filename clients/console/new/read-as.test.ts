import t from 'tap';
import { parseLine } from '../../../contracts/jsonl/line.js';
import { formOf, promptsOf } from './read-as.js';

t.test('every form that a line can have is described', async (t) => {
  const turn = { role: 'assistant', content: 'b' };
  const user = { role: 'user', content: 'a' };
  const forms: [kind: string, line: object][] = [
    ['texts', { text: 'a' }],
    ['chats', { messages: [turn], tools: [] }],
    ['preferences', { prompt: 'a', chosen: 'b', rejected: 'c' }],
    ['preferences', { input: { messages: [user] }, preferred_output: [turn], non_preferred_output: [turn] }],
    ['prompts with completions', { prompt: 'a', completion: 'b', label: true }],
    ['chats', { instruction: 'a', input: 'b', output: 'c', system: 'd', history: [] }],
    ['chats', { question: 'a', context: 'b', answer: 'c' }],
    ['chats', { conversations: [{ from: 'gpt', value: 'b' }] }],
    ['prompts', { prompt: 'a', tools: [] }],
  ];
  for (const [kind, line] of forms) {
    const json = JSON.stringify(line);
    t.doesNotThrow(() => parseLine(json), json);
    const form = formOf([json]);
    t.equal(form?.kind, kind, json);
    t.same(
      form?.fields.map(({ name }) => name),
      Object.keys(line),
    );
    t.same(form?.ignored, []);
  }
});

t.test('fields that no job reads are named', async (t) => {
  t.match(formOf(['', '{"instruction": "a", "output": "b", "text": "a b"}']), {
    kind: 'texts',
    fields: [{ name: 'text', becomes: 'text' }],
    ignored: ['instruction', 'output'],
  });
  t.match(formOf(['{"instruction": "a", "output": "b", "answer": "c"}']), { ignored: ['answer'] });
  t.match(formOf(['{"question": "a", "answer": "b", "output": "c"}']), { ignored: ['output'] });
  t.equal(formOf(['[1]', '{']), null);
  t.equal(formOf(['{"title": 1}']), null);
});

t.test('the fields of answers are no part of a prompt', async (t) => {
  const namesOf = (line: object) => promptsOf(formOf([JSON.stringify(line)])!).fields.map(({ name }) => name);
  t.same(namesOf({ question: 'a', answer: 'b' }), ['question']);
  t.same(namesOf({ prompt: 'a', completion: 'b' }), ['prompt']);
  t.same(namesOf({ prompt: 'a', chosen: 'b', rejected: 'c' }), ['prompt']);
  t.same(namesOf({ prompt: 'a', digit: 'b' }), ['prompt']);
});
