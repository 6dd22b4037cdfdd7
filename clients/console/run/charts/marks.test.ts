import t from 'tap';
import { marksOf } from './marks.js';

const checkpoint = (step: number, more: object = {}) => ({
  id: `c${step}`,
  step,
  pinned: false,
  damaged: false,
  ...more,
});
const rules = (keep: object = {}, earlyStopping?: object) =>
  ({
    train: { early_stopping: earlyStopping },
    checkpoint: { keep: { last: 3, best: 0, ...keep } },
  }) as Parameters<typeof marksOf>[1];
const texts = (...input: Parameters<typeof marksOf>) =>
  [...marksOf(...input)].map(([id, marks]) => `${id} ${marks.join(' ')}`.trim());

t.test('without evaluations there is a newest one, which is not damaged', async (t) => {
  const given = [checkpoint(3, { damaged: true }), checkpoint(2, { pinned: true }), checkpoint(1)];
  t.same(texts(given, rules()), ['c3 damaged', 'c2 newest pinned', 'c1']);
  t.same(texts([], rules()), []);
});

t.test(
  'the best one has the lowest loss of the first evaluation, the earlier step among equal ones',
  async (t) => {
    const given = [
      checkpoint(4, { eval_losses: { validation: 0.1, code: 9 }, damaged: true }),
      checkpoint(3, { eval_losses: { validation: 2, code: 1 } }),
      checkpoint(2, { eval_losses: { validation: 1, code: 2 } }),
      checkpoint(1, { eval_losses: { validation: 1, code: 3 } }),
      checkpoint(0),
    ];
    t.same(texts(given, rules()), ['c4 damaged', 'c3 newest', 'c2', 'c1 best', 'c0']);
    t.match(texts(given, rules({ best: 1, best_metric: 'eval_loss/code' }))[1], /c3 newest best/);
    t.match(texts(given, rules({ best: 1, best_metric: 'eval_loss' }))[3], /c1 best/);
  },
);

t.test('the best one has the highest reward', async (t) => {
  const given = [3, 2, 1].map((step) => checkpoint(step, { eval_losses: { held: step === 2 ? 0.9 : 0.1 } }));
  const spec = { ...rules(), train: { objective: { type: 'grpo' } } } as Parameters<typeof marksOf>[1];
  t.same(texts(given, spec), ['c3 newest', 'c2 best', 'c1']);
});

t.test('early stopping says which one is the best', async (t) => {
  const given = [
    checkpoint(3, { best_step: 2, eval_losses: { validation: 1 } }),
    checkpoint(2, { best_step: 2, eval_losses: { validation: 1.01 } }),
  ];
  t.same(texts(given, rules({}, { metric: 'eval_loss' })), ['c3 newest', 'c2 best']);
});
