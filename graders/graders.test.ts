import t from 'tap';
import type { Grader, SingleGrader } from '../contracts/index.js';
import { graderProblems } from './problems.js';
import { testGraders } from './testing/graders.js';

const check = (operation: 'eq' | 'ne' | 'like' | 'ilike', reference = '{{item.answer}}'): SingleGrader => ({
  type: 'string_check',
  name: operation,
  input: '{{sample.output_text}}',
  reference,
  operation,
});
const graded = { item: { answer: 'Yes' }, sample: { output_text: 'yes, Yes' } };

t.test('string checks', async (t) => {
  const graders = testGraders(t);
  const scoreOf = async (grader: Grader) => (await graders.grade(grader, graded)).reward;
  t.equal(await scoreOf(check('eq')), 0);
  t.equal(await scoreOf(check('eq', 'yes, Yes')), 1);
  t.equal(await scoreOf(check('ne')), 1);
  t.equal(await scoreOf(check('like', 's, Y')), 1);
  t.equal(await scoreOf(check('like', 'S, y')), 0);
  t.equal(await scoreOf(check('ilike', 'S, y')), 1);
});

t.test('a formula over several graders', async (t) => {
  const graders = testGraders(t);
  const multi = (formula: string): Grader => ({
    type: 'multi',
    name: 'both',
    graders: { exact: check('eq'), loose: check('ilike'), broken: check('eq', '{{item.missing}}') },
    calculate_output: formula,
  });
  const grade = await graders.grade(multi('exact + 0.5 * loose + broken'), graded);
  t.match(grade, {
    reward: 0.5,
    scores: { exact: 0, loose: 1, broken: 0 },
    errors: [{ grader: 'broken', code: 'template_variable_missing', message: /item.missing/ }],
  });
  const infinite = await graders.grade(multi('loose / exact'), graded);
  t.equal(infinite.reward, 0);
  t.match(infinite.errors, [{}, { grader: 'both', code: 'formula_not_finite', message: /Infinity/ }]);
});

t.test('everything wrong with a grader', (t) => {
  const wrong: Grader = {
    type: 'multi',
    name: 'm',
    graders: {
      a: { ...check('eq'), input: '{{answer}}', reference: '{{sample.tools}}' } as SingleGrader,
      s: {
        type: 'score_model',
        name: 's',
        model: 'm',
        input: [{ role: 'user', content: '{{x}}' }],
        range: [1, 0],
      },
    },
    calculate_output: 'a + other',
  };
  t.same(
    graderProblems(wrong).map(({ pointer, code }) => `${pointer} ${code}`),
    [
      '/graders/a/input grader_invalid',
      '/graders/a/reference grader_invalid',
      '/graders/s/input/0/content grader_invalid',
      '/graders/s/range grader_invalid',
      '/calculate_output grader_invalid',
    ],
  );
  t.same(graderProblems(check('eq')), []);
  t.end();
});
