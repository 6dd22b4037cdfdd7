import t from 'tap';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { lrAt } from './lr-at.js';

const rates = (schedule: object, steps = 6) => {
  const lrSchedule = { warmup_steps: 2, warmup_type: 'linear', warmup_start_lr: 0, min_lr: 0, ...schedule };
  const train = {
    optimizer: { lr: 8 },
    steps,
    lr_schedule: lrSchedule,
  } as unknown as ResolvedJobSpec['train'];
  return Array.from({ length: steps }, (_, done) => Number(lrAt(train, done).toFixed(9)));
};

t.test('a rate has few digits, so that the last bit of a cosine is not in it', async (t) => {
  const train = {
    optimizer: { lr: 5e-5 },
    steps: 100,
    lr_schedule: { type: 'cosine', warmup_steps: 7, warmup_type: 'log', warmup_start_lr: 0, min_lr: 0 },
  } as unknown as ResolvedJobSpec['train'];
  for (let done = 0; done < 100; done += 1) {
    const rate = lrAt(train, done);
    t.equal(rate, Number(rate.toPrecision(12)));
  }
});

t.test('schedules of native/train/lr_schedule.h', async (t) => {
  t.same(rates({ type: 'constant' }), [4, 8, 8, 8, 8, 8]);
  t.same(rates({ type: 'linear', min_lr: 4 }), [4, 8, 8, 7, 6, 5]);
  const half = 4 * Math.SQRT1_2;
  t.same(
    rates({ type: 'cosine' }),
    [4, 8, 8, 4 + half, 4, 4 - half].map((rate) => Number(rate.toFixed(9))),
  );
  t.same(rates({ type: 'wsd', decay_steps: 2 }), [4, 8, 8, 8, 8, 4]);
  t.same(
    rates({ type: 'constant', warmup_steps: 4, warmup_type: 'log', warmup_start_lr: 2 }, 5),
    [2, 5, 6.754887502, 8, 8],
  );
});
