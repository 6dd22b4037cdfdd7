import t from 'tap';
import { detailsOf, meanReward, rankOf, score, stepAfter, stepBefore, summaryOf } from './rollouts.js';

const sample = (reward: number, more: object = {}) => ({
  text: 'a',
  tokens: 2,
  truncated: false,
  reward,
  scores: { exact: reward },
  errors: [],
  ...more,
});
const group = (...samples: ReturnType<typeof sample>[]) => ({ line: 1, prompt: 'p', samples });

t.test('rewards against the mean of their group', async (t) => {
  const [bad, good] = [sample(0), sample(1)];
  t.equal(rankOf(good, group(good, bad)), 'above');
  t.equal(rankOf(bad, group(good, bad)), 'below');
  t.equal(rankOf(good, group(good, good)), 'equal');
  t.equal(rankOf(sample(0.5), group(good, bad, sample(0.5))), 'equal');
  t.equal(rankOf(sample(0.1), group(...Array(3).fill(sample(0.1)))), 'equal', 'whatever the mean rounds to');
  t.equal(meanReward([]), 0);
  t.same([0, 1, 0.5, 2 / 3, -1.23456, 1e-9].map(score), ['0', '1', '0.5', '0.667', '-1.23', '1e-9']);
});

t.test('samples in words', async (t) => {
  const errors = [{ grader: 'exact', code: 'python_failed' as const, message: 'm' }];
  const groups = [group(sample(1), sample(0, { truncated: true })), group(sample(0, { errors }), sample(0))];
  t.equal(
    summaryOf({ step: 1, call: 1, groups }),
    '2 prompts · 4 answers · mean reward 0.25 · 1 truncated · 1 with failed graders',
  );
  t.equal(summaryOf({ step: 1, call: 1, groups: [] }), '0 prompts · 0 answers · mean reward 0');
  t.equal(detailsOf(sample(1)), '2 tokens');
  t.equal(
    detailsOf(sample(1, { tokens: 1, truncated: true, scores: { a: 1, b: 0.25 } })),
    '1 token, truncated · a 1, b 0.25',
  );
});

t.test('steps that share samples', async (t) => {
  t.equal(stepBefore({ shown: 1, length: 1, done: 9 }), null);
  t.equal(stepBefore({ shown: 5, length: 2, done: 9 }), 3);
  t.equal(stepAfter({ shown: 5, length: 2, done: 9 }), 7);
  t.equal(stepAfter({ shown: 9, length: 2, done: 9 }), null, 'the last ones serve one step');
  t.equal(
    stepAfter({ shown: 10, length: 1, done: 9 }),
    null,
    'the newest are drawn before their step is done',
  );
});
