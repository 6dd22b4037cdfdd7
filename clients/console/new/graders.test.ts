import t from 'tap';
import { answerField, firstLine, GRADERS, kindOf, missingFields } from './graders.js';

const json = (line: object) => JSON.stringify(line);

t.test('the field with the right answer', async (t) => {
  const lines: [field: string, line: object][] = [
    ['answer', { prompt: 'a', answer: 'b', digit: 'c' }],
    ['digit', { prompt: 'a', digit: 'c' }],
    ['solution', { messages: [], solution: 'c' }],
    ['answer', { question: 'a', answer: 'b' }],
    ['output', { instruction: 'a', output: 'b' }],
    ['completion', { prompt: 'a', completion: 'b' }],
    ['answer', { messages: [] }],
    ['answer', { title: 'a' }],
  ];
  for (const [field, line] of lines) t.equal(answerField(['', json(line)]), field, json(line));
  t.equal(answerField([]), 'answer');
});

t.test('graders begin with that field', async (t) => {
  for (const [type, { begun }] of Object.entries(GRADERS)) {
    const grader = begun('digit');
    t.equal(kindOf(grader), type);
    const isJudge = ['score_model', 'webhook'].includes(type);
    t.equal(/item(\.|\[\\")digit/.test(json(grader)), !isJudge, type);
  }
  t.equal(kindOf({ type: 'constructor' }), undefined);
  t.equal(kindOf(undefined), undefined);
});

t.test('fields that the first line lacks', async (t) => {
  const grader = { input: '{{item.a}} {{ item.b.c }}{{sample.output_text}}', reference: '{{item.a}}' };
  t.same(missingFields(grader, { b: 1 }), ['a']);
  t.same(missingFields(undefined, {}), []);
  t.same(firstLine(['[]', '{"a": 1}']), { a: 1 });
  t.equal(firstLine([]), null);
});
