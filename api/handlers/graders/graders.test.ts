import t from 'tap';
import type { Grade, Problem } from '../../../contracts/index.js';
import { startTestStack } from '../../testing/stack.js';

const stack = await startTestStack();
t.teardown(() => stack.close());
const post = (name: string, payload: object) =>
  stack.request({ method: 'POST', url: `/v1/graders/${name}`, payload });
const exact = {
  type: 'string_check',
  name: 'exact',
  input: '{{sample.output_text}}',
  reference: '{{item.answer}}',
  operation: 'eq',
};

t.test('a grade', async (t) => {
  const reply = await post('run', { grader: exact, output_text: '4', item: { answer: '4' } });
  t.equal(reply.statusCode, 200, reply.body);
  t.match(reply.json<Grade>(), { reward: 1, scores: { exact: 1 }, errors: [], tokens: {} });
});

t.test('wrong fields are named, with pointers into the body', async (t) => {
  const multi = {
    type: 'multi',
    name: 'm',
    graders: { a: { ...exact, operation: 'is' } },
    calculate_output: 'a',
  };
  const errorsOf = async (grader: object) => {
    const reply = await post('validate', { grader });
    t.equal(reply.statusCode, 422, reply.body);
    return reply.json<Problem>().errors.map(({ pointer, code }) => `${pointer} ${code}`);
  };
  t.same(await errorsOf(multi), ['/grader/graders/a/operation unknown_value']);
  t.same(await errorsOf({ ...exact, refrence: 'x', input: '{{x}}' }), ['/grader/refrence unknown_field']);
  t.same(await errorsOf({ ...exact, input: '{{x}}' }), ['/grader/input grader_invalid']);
  t.same(await errorsOf({ ...multi, graders: { 'a-b': exact } }), ['/grader/graders/a-b wrong_format']);
  t.same(await errorsOf({ type: 'multi', name: 'm', graders: { m: multi }, calculate_output: 'm' }), [
    '/grader/graders/m/type unknown_value',
  ]);
});

t.test('grades at once are bounded for each project', async (t) => {
  const source = 'import time\ndef grade(sample, item):\n  time.sleep(1)\n  return 1';
  const grader = { type: 'python', name: 'p', source };
  const replies = await Promise.all(
    Array.from({ length: 6 }, () => post('run', { grader, output_text: '' })),
  );
  const statuses = replies.map(({ statusCode }) => statusCode).sort();
  t.same(statuses, [200, 200, 200, 200, 429, 429]);
});

t.test('a model without a worker is a failure of its grader', async (t) => {
  const grader = {
    type: 'score_model',
    name: 's',
    model: 'mdl_unknown',
    input: [{ role: 'user', content: 'x' }],
  };
  const reply = await post('run', { grader, output_text: '' });
  t.match(reply.json<Grade>(), {
    reward: 0,
    errors: [{ code: 'model_unavailable', message: /mdl_unknown/ }],
  });
});
