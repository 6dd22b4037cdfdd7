import t from 'tap';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { createRuntime } from '../default-runtime.js';
import { testGraders } from '../testing/graders.js';

const long = 'a b '.repeat(100_000);

t.test('comparisons of long texts leave the event loop free', async (t) => {
  const graders = testGraders(t);
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 5);
  t.teardown(() => clearInterval(timer));
  const grade = await graders.grade(
    {
      type: 'text_similarity',
      name: 'r',
      input: '{{sample.output_text}}',
      reference: '{{item.a}}',
      evaluation_metric: 'rouge_l',
    },
    { item: { a: long.slice(0, 100_000) }, sample: { output_text: long.slice(0, 200_000) } },
  );
  t.match(grade, { errors: [], reward: 2 / 3 });
  t.ok(ticks > 2, `${ticks} ticks`);
});

t.test('a long text is compared in a thread, also with a short one', async (t) => {
  const runtime = createRuntime('python3', new AddressPolicy([]));
  t.teardown(() => runtime.close());
  const compare = (input: string) =>
    runtime.compare(
      'similarity',
      { metric: 'rouge_1', input, reference: '4' },
      { project: 'p', signal: new AbortController().signal },
    );
  t.equal(compare('4'), 1);
  const long = compare('4 '.repeat(5000));
  t.type(long, Promise);
  t.ok((await long) > 0);
});

t.test('a comparison that takes too long ends', async (t) => {
  const graders = testGraders(t);
  const grade = await graders.grade(
    {
      type: 'text_similarity',
      name: 'f',
      input: '{{sample.output_text}}',
      reference: '{{sample.output_text}}',
      evaluation_metric: 'fuzzy_match',
    },
    { item: {}, sample: { output_text: 'ab'.repeat(500_000) } },
  );
  t.match(grade, { reward: 0, errors: [{ grader: 'f', code: 'texts_too_complex' }] });
});
